"""Where a table's objects go: a template of their keys, checked once, and rendered from values passed in.

A template is literal text with variables in braces. The variables known here are the neutral ones; a dialect
translates its vendor's spelling into them.

    {job_id}      the load's job id
    {date:FORMAT} the attempt's start, UTC, in ``strftime`` letters
    {epoch}       the attempt's start, in milliseconds since 1970; {epoch_micros} in microseconds
    {millisecond} of the attempt's start, four digits
    {sync_id}     the number of the sync
    {seq}         the file's number in the table's load, at least five digits
    {part}        the same from the first number that is free, or a UUID
    {uuid}        one UUID per file
    {backfill}    the table's backfill number, ten digits
    {generation}  the number of the table's full refresh, ten digits
    {counter}     the number of files before this one in the table's whole life, twenty digits; gaps may occur
"""

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import describe_unfit_segment, join_key

Part = str | tuple[str, str]
"""Literal text, or a variable with its argument."""

UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
PER_LOAD: Final = {
    "job_id": r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}",
    "date": "",  # By its argument.
    "epoch": r"\d+",
    "epoch_micros": r"\d+",
    "millisecond": r"\d{4}",
    "sync_id": r"\d+",
}
"""Variables that all files of an attempt have in common, with what matches their values."""
PER_FILE: Final = {
    "seq": r"\d{5,}",
    "uuid": UUID,
    "backfill": r"\d{10}",
    "generation": r"\d{10}",
    "counter": r"\d{20}",
    "part": rf"(?:\d+|{UUID})",
}
UNIQUE: Final = frozenset({"uuid", "epoch", "epoch_micros", "job_id"})
"""Variables that no two loads share."""
MANY_OBJECTS: Final = 10_000
"""Where more objects than this lie in one place, a file is named by a UUID instead of a part number."""
CLASH: Final = "(?:-[0-9]+)?"
"""Matches the suffix that Airbyte's own connector puts behind a key that is taken."""

_VARIABLE: Final = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_NEVER: Final = re.compile(r"(?!)")
_DATE_DIGITS: Final = {"%Y": r"\d{4}"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Template:
    """A parsed template: no two literal parts follow each other, none of them has ``//``, the key begins without
    ``/``."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part) -> "Template":
        """The template of ``parts``, which are concatenated."""
        merged: list[Part] = []
        for part in parts:
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            else:
                merged.append(part)
        plain = [re.sub("/+", "/", part) if isinstance(part, str) else part for part in merged]
        if plain and isinstance(plain[0], str):
            plain[0] = plain[0].lstrip("/")
        return cls(tuple(part for part in plain if part))

    @classmethod
    def parse(cls, text: str) -> "Template":
        """The template that ``text`` spells; an unknown variable is ``SPEC_INVALID``."""
        parts: list[Part] = []
        end = 0
        for match in _VARIABLE.finditer(text):
            name = match[1]
            if name not in PER_FILE and name not in PER_LOAD:
                known = ", ".join("{" + v + "}" for v in (*PER_LOAD, *PER_FILE))
                raise SpecInvalidError(f"unknown variable {match[0]!r} in {text!r}; known: {known}.")
            parts += [text[end : match.start()], (name, match[2] or "")]
            end = match.end()
        return cls.of(*parts, text[end:])

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables used."""
        return frozenset(part[0] for part in self.parts if isinstance(part, tuple))

    @property
    def glob(self) -> str:
        """The text with ``*`` for every variable."""
        return "".join(part if isinstance(part, str) else "*" for part in self.parts)

    @property
    def pattern(self) -> str:
        """The same for readers whose ``*`` matches no slash: a date has as many as it has folders."""
        return "".join(
            part if isinstance(part, str) else "/".join("*" * (part[1].count("/") + 1)) for part in self.parts
        )

    @property
    def example(self) -> str:
        """The text with a value for every variable: its literal text alone decides which segments it may have."""
        return "".join(
            part if isinstance(part, str) else _EPOCH.strftime(part[1]) if part[0] == "date" else "0"
            for part in self.parts
        )

    @property
    def start(self) -> str:
        """The literal text before the first variable."""
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""

    def bind(self, *, job_id: str, start: datetime) -> "Template":
        """The same template with the attempt's values filled in; the sync's number and the file's variables remain."""
        since = start - _EPOCH
        values = {
            "job_id": job_id,
            "epoch": str(since // timedelta(milliseconds=1)),
            "epoch_micros": str(since // timedelta(microseconds=1)),
            "millisecond": f"{start.microsecond // 1000:04d}",
        }

        def fill(part: Part) -> Part:
            if isinstance(part, str):
                return part
            return start.strftime(part[1]) if part[0] == "date" else values.get(part[0], part)

        return Template.of(*map(fill, self.parts))

    def render(self, values: Mapping[str, str]) -> str:
        """The text, with every remaining variable taken from ``values``."""
        return "".join(part if isinstance(part, str) else values[part[0]] for part in self.parts)

    def match_text(self, patterns: Mapping[str, str]) -> str:
        """A regular expression of the texts that it gives, with ``patterns`` for what matches a variable otherwise."""
        known = {**PER_LOAD, **PER_FILE, **patterns}
        return "".join(
            re.escape(part) if isinstance(part, str) else _match_date(part[1]) if part[0] == "date" else known[part[0]]
            for part in self.parts
        )


def _match_date(letters: str) -> str:
    texts = re.split("(%[A-Za-z])", letters)
    return "".join(_DATE_DIGITS.get(text, r"\d{2}") if text.startswith("%") else re.escape(text) for text in texts)


@dataclass(frozen=True)
class Layout:
    """The keys of one table's objects, of all loads: ``{directory}/{Iceberg partition}/{template}``.

    ``directory`` is the table's own, with nothing of another table in it. It is blank where the template alone says
    the whole key: other tables' objects may lie among this one's then, and are told by the template. ``depth`` is how
    many directories an Iceberg partition has. ``purged`` is a directory of which a full refresh replaces every object,
    whatever its name; blank where it replaces what matches the template. ``variants`` are the templates of the same
    keys in other file formats: what matches one of them is the table's from before its format changed.
    """

    directory: str
    template: Template
    depth: int = 0
    purged: str = ""
    variants: tuple[Template, ...] = ()

    @property
    def has_generations(self) -> bool:
        """Whether each full refresh has a folder of its own."""
        return "generation" in self.template.variables

    @property
    def varies(self) -> bool:
        """Whether no two loads can have a key in common."""
        return bool(self.template.variables & UNIQUE)

    @property
    def single_file(self) -> bool:
        """Whether nothing tells two files of a load apart, so that there may be only one."""
        return not self.template.variables & (PER_FILE.keys() - {"backfill", "generation"})

    @property
    def prefix(self) -> str:
        """What all keys begin with: the table's directory, or the template up to its first variable."""
        return f"{join_key(self.directory)}/" if self.directory else self.template.start

    @property
    def glob(self) -> str:
        """Matches the keys of all loads. The record of a directory's writers is named by it: it never changes."""
        return join_key(self.directory, "*/" * self.depth, self.template.glob)

    @property
    def example(self) -> str:
        """A key outside any partition of Iceberg."""
        return join_key(self.directory, self.template.example)

    @property
    def pattern(self) -> str:
        """The same for readers whose ``*`` matches no slash."""
        return join_key(self.directory, "*/" * self.depth, self.template.pattern)

    @property
    def key_pattern(self) -> str:
        """The regular expression of every key that may be this table's, whichever load or writer gave it."""
        return f"(?s:{re.escape(self.prefix)}.*)" if self.directory else self.template.match_text({}) + CLASH

    def matcher(self) -> re.Pattern[str]:
        """Matches every key that may be this table's, whichever load or writer gave it."""
        return re.compile(self.key_pattern)

    def make_replacement_rule(self, others: Iterable["Layout"]) -> Callable[[str], bool]:
        """Return what tells of a key whether a full refresh may replace its object, as far as the name says.

        ``others`` are the layouts of the pipeline's other tables: what is theirs by template stays, and so does a
        directory of theirs inside this one's. A directory that two tables have is neither's own.
        """
        start = self.replaced_prefix
        others = [other for other in others if other._may_share(start)]
        mine, theirs = self._match_all_formats(), [other._match_all_formats() for other in others]
        own = f"{self.purged}/"
        kept = tuple(f"{other.purged}/" for other in others if f"{other.purged}/".startswith(own))

        def may_replace(key: str) -> bool:
            if any(matcher.fullmatch(key) for matcher in theirs):
                return False
            in_own = bool(self.purged) and key.startswith(own) and not key.startswith(kept)
            return in_own or mine.fullmatch(key) is not None

        return may_replace

    def _may_share(self, prefix: str) -> bool:
        """Whether a key of this table may begin with ``prefix``: of ten thousand tables few do."""
        return any(start.startswith(prefix) or prefix.startswith(start) for start in self.starts)

    @property
    def starts(self) -> tuple[str, str]:
        """What keys of the table may begin with, those of its earlier file formats among them."""
        return self.replaced_prefix, f"{self.purged}/" if self.purged else self.prefix

    @property
    def replaced_prefix(self) -> str:
        """What all keys begin with that a full refresh may replace."""
        start = f"{self.purged}/"
        starts = [self.prefix, *(variant.start for variant in self.variants)]
        prefix = os.path.commonprefix(starts)  # noqa: RUF071 - the characters that keys share, not their directories
        return start if self.purged and prefix.startswith(start) else prefix

    def _match_all_formats(self) -> re.Pattern[str]:
        """Matches every key that may be this table's, whichever file format it had then."""
        patterns = [self.key_pattern, *(variant.match_text({}) + CLASH for variant in self.variants)]
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

    def bind(self, *, job_id: str, attempt: str, start: datetime, sync_id: int = 0, table: str = "") -> "ObjectNames":
        """The names of one attempt's objects of one table."""
        return ObjectNames(
            directory=self.directory,
            template=self.template.bind(job_id=job_id, start=start),
            attempt=attempt,
            varies=self.varies,
            depth=self.depth,
            sync_id=sync_id,
            table=table,
        )


@dataclass(frozen=True)
class ObjectNames:
    """Object keys of one table in one attempt; every value but the sync's and the file's own is filled in.

    The number of the sync stays apart, since parts are numbered beyond those of any sync in the same place.
    ``first`` is the number that the first file's name carries; without ``has_part_numbers`` a ``{part}`` is a UUID.
    ``backfill``, ``generation`` and a counter are the table's own and known when the attempt is registered. ``table``
    keeps the UUIDs of one attempt's tables apart. ``quarantine`` is the folder of its bad rows, blank without one.
    """

    directory: str
    template: Template
    attempt: str
    varies: bool
    depth: int = 0
    sync_id: int = 0
    backfill: int = 0
    generation: int = 0
    first: int = 0
    has_part_numbers: bool = True
    table: str = ""
    quarantine: str = ""

    def object_key(self, seq: int, within: str = "") -> str:
        """Return the key of file number ``seq``, ``within`` the directories of its Iceberg partition; the same each
        time. ``SPEC_INVALID`` where the values give it a segment that no key may have."""
        name, number = str(file_uuid(self.attempt, seq, self.table)), self.first + seq
        values = {
            "seq": f"{number:05d}",
            "part": str(number) if self.has_part_numbers else name,
            "uuid": name,
            "sync_id": str(self.sync_id),
            "backfill": f"{self.backfill:010d}",
            "generation": f"{self.generation:010d}",
            "counter": f"{number:020d}",
        }
        path = join_key(within, self.template.render(values))
        if fault := describe_unfit_segment(path):
            raise SpecInvalidError(f"a file would lie at {path!r} in {self.directory!r}: the key {fault}.")
        return join_key(self.directory, path)

    @property
    def has_generations(self) -> bool:
        """Whether keys carry the number of a full refresh."""
        return "generation" in self.template.variables

    @property
    def counts(self) -> bool:
        """Whether keys carry the table's counter, so that two loads could choose the same one."""
        return "counter" in self.template.variables

    @property
    def unique(self) -> bool:
        """Whether no other attempt of whatever load can make the same keys."""
        return "uuid" in self.template.variables

    @property
    def shared(self) -> bool:
        """Whether ``pattern`` matches keys of other loads too: two could choose the same counter."""
        return self.counts and not self.unique

    @property
    def prefix(self) -> str:
        """What all keys of this attempt begin with, up to the first thing that differs between its files."""
        directory = join_key(self.directory)
        values = {("sync_id", ""): str(self.sync_id)}
        if self.generation:
            values["generation", ""] = f"{self.generation:010d}"
        known = Template.of(
            *(part if isinstance(part, str) else values.get(part, part) for part in self.template.parts)
        )
        return (f"{directory}/" if directory else "") + ("" if self.depth else known.start)

    @property
    def location(self) -> str:
        """The directory that all keys of this attempt share, without a slash at its end."""
        return self.prefix.rpartition("/")[0]

    @property
    def folders(self) -> str:
        """The part of ``location`` below the table's own directory."""
        return self.location.removeprefix(join_key(self.directory)).strip("/")

    def pattern(self) -> re.Pattern[str]:
        """Matches the keys that this attempt can make, and, where the template has a job id or UUID, no other load's;
        none at all where another load could make them and no counter tells which."""
        if not self.varies and not self.counts:
            return _NEVER
        return re.compile(self._match({"uuid": (own := uuid_pattern(self.attempt)), "part": rf"(?:\d+|{own})"}))

    def number(self, backfill: int, counter: int, generation: int = 0) -> "ObjectNames":
        """The same names under the table's present numbers."""
        first = counter if self.counts else self.first
        return replace(self, backfill=backfill, generation=generation, first=first)

    def after(self, keys: Iterable[str]) -> "ObjectNames":
        """The same names, their numbers beyond those in ``keys``, which begin with ``prefix``."""
        taken = list(keys)
        if "part" in self.template.variables and len(taken) > MANY_OBJECTS:
            return replace(self, has_part_numbers=False)
        number = re.compile(self._match({"seq": r"(\d{5,})", "part": rf"(\d+|{UUID})"}) + CLASH)
        found = [match[1] for match in map(number.fullmatch, taken) if match and match.groups()]
        return replace(self, first=max((int(text) + 1 for text in found if text.isdigit()), default=self.first))

    def _match(self, patterns: Mapping[str, str]) -> str:
        directory = join_key(self.directory)
        start = re.escape(f"{directory}/" if directory else "") + "[^/]+=[^/]*/" * self.depth
        return start + self.template.match_text(patterns)


def file_uuid(attempt: str, seq: int, table: str = "") -> uuid.UUID:
    """A version 8 UUID: eight bytes from the attempt, eight from the table and the file's number in it.

    The first half tells whose upload a key belongs to when all that is left of an attempt is its record.
    """
    head = hashlib.sha256(attempt.encode()).digest()[:8]
    tail = hashlib.sha256(f"{attempt}/{table}/{seq}".encode()).digest()[:8]
    raw = bytearray(head + tail)
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(raw))


def uuid_pattern(attempt: str) -> str:
    """Matches the UUIDs of one attempt's files."""
    return re.escape(str(file_uuid(attempt, 0))[:18]) + r"-[0-9a-f]{4}-[0-9a-f]{12}"
