"""Render the keys of a table's objects by a template that is checked once, from values passed in.

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
from datetime import datetime
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import describe_unfit_segment, join_key
from lakewriter.spec.key_template import CLASH, PER_FILE, UNIQUE, UUID, Part, Template

LONGEST_KEY: Final = 1024
"""Bytes in UTF-8. https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""
MANY_OBJECTS: Final = 10_000
"""Where more objects than this lie in one place, a file is named by a UUID instead of a part number."""
_NEVER: Final = re.compile(r"(?!)")


@dataclass(frozen=True)
class Layout:
    """The keys of one table's objects, of all loads: ``{directory}/{Iceberg partition}/{template}``.

    ``directory`` is the table's own, with nothing of another table in it. It is blank where the template alone says the
    whole key: other tables' objects may lie among this one's then, and the template tells them apart. ``depth`` is how
    many directories an Iceberg partition has. ``purged`` is a directory in which a full refresh replaces every object,
    whatever its name; if it is blank, it replaces the objects that match the template. ``variants`` are the templates
    of the same keys in other file formats: objects that match one are the table's, from before its format changed.
    ``folder`` has the files that belong to records; None if there are none.
    """

    directory: str
    template: Template
    depth: int = 0
    purged: str = ""
    variants: tuple[Template, ...] = ()
    folder: Template | None = None

    @property
    def has_generations(self) -> bool:
        """Return whether each full refresh has a folder."""
        return "generation" in self.template.variables

    @property
    def varies(self) -> bool:
        """Return whether no two loads can have a key in common."""
        return bool(self.template.variables & UNIQUE)

    @property
    def single_file(self) -> bool:
        """Return whether nothing tells two files of a load apart, so that there may be only one."""
        return not self.template.variables & (PER_FILE.keys() - {"backfill", "generation"})

    @property
    def prefix(self) -> str:
        """Return the prefix of all keys: the table's directory, or the template up to its first variable."""
        return f"{join_key(self.directory)}/" if self.directory else self.template.start

    @property
    def glob(self) -> str:
        """The glob of all loads' keys. It never changes: the record of a directory's writers is named after it."""
        return join_key(self.directory, "*/" * self.depth, self.template.glob)

    @property
    def example(self) -> str:
        """A key outside any partition of Iceberg."""
        return join_key(self.directory, self.template.example)

    @property
    def pattern(self) -> str:
        """The glob for readers whose ``*`` matches no slash."""
        return join_key(self.directory, "*/" * self.depth, self.template.pattern)

    @property
    def key_pattern(self) -> str:
        """The regular expression of every key that may be this table's, whichever load or writer gave it."""
        return f"(?s:{re.escape(self.prefix)}.*)" if self.directory else self.template.match_text({}) + CLASH

    def matcher(self) -> re.Pattern[str]:
        """Matches every key that may be this table's, whichever load or writer gave it."""
        return re.compile(self.key_pattern)

    def make_replacement_rule(self, others: Iterable["Layout"]) -> Callable[[str], bool]:
        """Return the function that says whether a refresh may replace the object of a key, as far as the name says.

        ``others`` are the layouts of the pipeline's other tables: objects that match their templates stay, and so does
        another table's directory inside this one's. A directory that two tables share belongs to neither.
        """
        start = self.replaced_prefix
        others = [other for other in others if other._may_share(start)]
        mine, theirs = self._match_all_formats(), [other._match_all_formats() for other in others]
        folder = f"{self.purged}/"
        kept_folders = tuple(f"{other.purged}/" for other in others if f"{other.purged}/".startswith(folder))

        def may_replace(key: str) -> bool:
            if any(matcher.fullmatch(key) for matcher in theirs):
                return False
            in_own = bool(self.purged) and key.startswith(folder) and not key.startswith(kept_folders)
            return in_own or mine.fullmatch(key) is not None

        return may_replace

    def _may_share(self, prefix: str) -> bool:
        """Return whether a key of this table may begin with ``prefix``: of ten thousand tables few do."""
        return any(start.startswith(prefix) or prefix.startswith(start) for start in self.starts)

    @property
    def starts(self) -> tuple[str, str]:
        """Return the prefixes that keys of the table may have, those of its earlier file formats among them."""
        return self.replaced_prefix, f"{self.purged}/" if self.purged else self.prefix

    @property
    def replaced_prefix(self) -> str:
        """Return the prefix of all keys that a full refresh may replace."""
        start = f"{self.purged}/"
        starts = [self.prefix, *(variant.start for variant in self.variants)]
        prefix = os.path.commonprefix(starts)  # noqa: RUF071 - the characters that keys share, not their directories
        return start if self.purged and prefix.startswith(start) else prefix

    def _match_all_formats(self) -> re.Pattern[str]:
        """Matches every key that may be this table's, whichever file format it had then."""
        patterns = [self.key_pattern, *(variant.match_text({}) + CLASH for variant in self.variants)]
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

    def bind(self, *, job_id: str, attempt: str, start: datetime, sync_id: int = 0, table: str = "") -> "ObjectNames":
        """Return the names of one attempt's objects of one table."""
        return ObjectNames(
            directory=self.directory,
            template=self.template.bind(job_id=job_id, start=start),
            attempt=attempt,
            varies=self.varies,
            depth=self.depth,
            sync_id=sync_id,
            table=table,
            folder=self._bind_folder(job_id, start),
        )

    def _bind_folder(self, job_id: str, start: datetime) -> Template | None:
        """Return the folder of an attempt's copied files. Where the template gives it to other loads as well, each load
        has a subfolder in it: a file may come again under its path.
        """
        if self.folder is None:
            return None
        is_own = self.folder.variables & UNIQUE
        own_parts: tuple[Part, ...] = () if is_own else (("job_id", ""), "/")
        return Template.of(*self.folder.parts, "/", *own_parts).bind(job_id=job_id, start=start)


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
    folder: Template | None = None
    """The folder of files that belong to records; None where they have none."""

    def file_key(self, path: str) -> str:
        """Return the key of a record's file whose path in the source is ``path``. ``ValueError`` for a path that names
        no file in the folder."""
        if self.folder is None:
            raise ValueError("records of this table have no files")
        plain = join_key(path)
        if not plain or (fault := describe_unfit_segment(plain)):
            raise ValueError(f"the path {fault}" if plain else "the path is blank")
        values = {"uuid": str(file_uuid(self.attempt, 0, f"{self.table}/{plain}")), "sync_id": str(self.sync_id)}
        folder = self.folder.render(values)
        key = join_key(folder, plain)
        if re.fullmatch(self._match({}) + CLASH, key):
            # The records' own files may have such a name.
            key = join_key(folder, "files", plain)
        if len(key.encode()) > LONGEST_KEY:
            raise ValueError(f"its key {key!r} has more than {LONGEST_KEY} bytes")
        return key

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
        """Return whether keys carry the number of a full refresh."""
        return "generation" in self.template.variables

    @property
    def counts(self) -> bool:
        """Return whether keys carry the table's counter, so that two loads could choose the same one."""
        return "counter" in self.template.variables

    @property
    def unique(self) -> bool:
        """Return whether no other attempt of any load can make the same keys."""
        return "uuid" in self.template.variables

    @property
    def shared(self) -> bool:
        """Return whether ``pattern`` matches keys of other loads too: two could choose the same counter."""
        return self.counts and not self.unique

    @property
    def prefix(self) -> str:
        """Return the prefix of all keys of this attempt, up to the first variable that differs between its files."""
        directory = join_key(self.directory)
        values = {("sync_id", ""): str(self.sync_id)}
        if self.generation:
            values["generation", ""] = f"{self.generation:010d}"
        constant = Template.of(
            *(part if isinstance(part, str) else values.get(part, part) for part in self.template.parts)
        )
        return (f"{directory}/" if directory else "") + ("" if self.depth else constant.start)

    @property
    def location(self) -> str:
        """The directory that all keys of this attempt share, without a slash at its end."""
        return self.prefix.rpartition("/")[0]

    @property
    def folders(self) -> str:
        """The part of ``location`` below the table's own directory."""
        return self.location.removeprefix(join_key(self.directory)).strip("/")

    def pattern(self) -> re.Pattern[str]:
        """Return what matches the keys that this attempt can make. With a job id or UUID in the template it matches no
        other load's keys. It matches nothing if another load could make the same keys and no counter tells them
        apart."""
        own_uuid, patterns = uuid_pattern(self.attempt), list[str]()
        if self.varies or self.counts:
            patterns.append(self._match({"uuid": own_uuid, "part": rf"(?:\d+|{own_uuid})"}))
        if self.folder is not None:
            patterns.append(f"(?s:{self.folder.match_text({'uuid': own_uuid})}.*)")
        return re.compile("|".join(patterns)) if patterns else _NEVER

    def number(self, backfill: int, counter: int, generation: int = 0) -> "ObjectNames":
        """Return the same names under the table's present numbers."""
        first = counter if self.counts else self.first
        return replace(self, backfill=backfill, generation=generation, first=first)

    def after(self, keys: Iterable[str]) -> "ObjectNames":
        """Return the same names, their numbers beyond those in ``keys``, which begin with ``prefix``."""
        taken = list(keys)
        if "part" in self.template.variables and len(taken) > MANY_OBJECTS:
            return replace(self, has_part_numbers=False)
        number = re.compile(self._match({"seq": r"(\d{5,})", "part": rf"(\d+|{UUID})"}) + CLASH)
        numbers = [match[1] for match in map(number.fullmatch, taken) if match and match.groups()]
        return replace(self, first=max((int(text) + 1 for text in numbers if text.isdigit()), default=self.first))

    def _match(self, patterns: Mapping[str, str]) -> str:
        directory = join_key(self.directory)
        start = re.escape(f"{directory}/" if directory else "") + "[^/]+=[^/]*/" * self.depth
        return start + self.template.match_text(patterns)


def file_uuid(attempt: str, seq: int, table: str = "") -> uuid.UUID:
    """Return a version 8 UUID: eight bytes from the attempt, eight from the table and the file's number in it.

    The first half shows whose upload a key belongs to when all that is left of an attempt is its record.
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
