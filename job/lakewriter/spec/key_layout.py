"""Keys from one template for the whole of them: directory and file name are concatenated, not joined.

{job_id} {date:FORMAT}   as in ``lakewriter.spec.layout``
{epoch} {epoch_micros}   the attempt's start since 1970, in milliseconds or microseconds
{millisecond}            of the attempt's start, four digits
{sync_id}                the number of the sync
{part}                   the file's number in the table's load, from the first that is free; or a UUID
{uuid}                   one UUID per file
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.spec.layout import ObjectNames, Template, file_uuid, uuid_pattern

UNIQUE: Final = frozenset({"uuid", "epoch", "epoch_micros", "job_id"})
"""Variables that no two loads share."""
MANY_OBJECTS: Final = 10_000
"""More objects than this in one place, and a file is named by a UUID instead of a number."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NEVER: Final = re.compile(r"(?!)")
_DATE_DIGITS: Final = {"%Y": r"\d{4}"}
_VALUES: Final = {
    "job_id": r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}",
    "epoch": r"\d+",
    "epoch_micros": r"\d+",
    "millisecond": r"\d{4}",
    "sync_id": r"\d+",
    "part": rf"(?P<part>\d+|{_UUID})",
    "uuid": _UUID,
}


def joined(parts: Iterable[str | tuple[str, str]]) -> Template:
    """The template of a key: literals run together, repeated ``/`` as one, none in front."""
    merged: list[str | tuple[str, str]] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    plain = [re.sub("/+", "/", part) if isinstance(part, str) else part for part in merged]
    if plain and isinstance(plain[0], str):
        plain[0] = plain[0].lstrip("/")
    return Template(tuple(part for part in plain if part))


@dataclass(frozen=True)
class KeyLayout:
    """The objects of one table, of all loads."""

    template: Template

    @property
    def varies(self) -> bool:
        """Whether no two loads can have a key in common."""
        return bool(self.template.variables & UNIQUE)

    @property
    def single_file(self) -> bool:
        """Whether nothing tells two files of a load apart, so that there may be only one."""
        return not self.template.variables & {"part", "uuid"}

    @property
    def prefix(self) -> str:
        """What all keys begin with."""
        first = self.template.parts[0] if self.template.parts else ""
        return first if isinstance(first, str) else ""

    @property
    def glob(self) -> str:
        """Matches the keys of all loads."""
        return self.template.glob

    def matcher(self) -> re.Pattern[str]:
        """Matches every key this layout gives, for whatever load, and the suffix that Airbyte puts behind a clash."""
        return _pattern(self.template, "(?:-[0-9]+)?")

    def bind(self, *, job_id: str, attempt: str, start: datetime) -> "KeyNames":
        """The names of one attempt's objects."""
        bound = (_bound(part, job_id, start) for part in self.template.parts)
        return KeyNames(joined(bound), attempt, varies=self.varies)


@dataclass(frozen=True)
class KeyNames:
    """Object keys of one table in one attempt. ``first_part`` is None where parts are named by UUIDs."""

    template: Template
    attempt: str
    varies: bool
    sync_id: int = 0
    first_part: int | None = 0

    def object_key(self, seq: int) -> str:
        """The key of file number ``seq``: the same number always gives the same key."""
        name = str(file_uuid(self.attempt, seq))
        part = name if self.first_part is None else str(self.first_part + seq)
        return self.template.render({"part": part, "uuid": name, "sync_id": str(self.sync_id)})

    @property
    def prefix(self) -> str:
        """What all keys of this attempt begin with, up to the first thing that differs between its files."""
        parts = (str(self.sync_id) if part == ("sync_id", "") else part for part in self.template.parts)
        first = next(iter(joined(parts).parts), "")
        return first if isinstance(first, str) else ""

    @property
    def location(self) -> str:
        """The directory that all keys of this attempt share, without a slash at its end."""
        return self.prefix.rpartition("/")[0]

    @property
    def shared(self) -> bool:
        """Never: see ``pattern``."""
        return False

    def pattern(self) -> re.Pattern[str]:
        """Matches the keys this attempt can make; none at all where another load could make them too."""
        if not self.varies:
            return _NEVER
        return re.compile(_pattern(self.template).pattern.replace(_UUID, uuid_pattern(self.attempt)))

    def numbered(self, keys: Iterable[str]) -> "KeyNames":
        """The same names with part numbers beyond those of ``keys``, which begin with ``prefix``."""
        taken, found = _pattern(self.template, "(?:-[0-9]+)?"), list(keys)
        if len(found) > MANY_OBJECTS:
            return replace(self, first_part=None)
        numbers = [match["part"] for key in found if (match := taken.fullmatch(key))]
        return replace(self, first_part=max((int(n) + 1 for n in numbers if n.isdigit()), default=0))


Names = ObjectNames | KeyNames
"""The names of one attempt's objects, whichever the layout."""


def _bound(part: str | tuple[str, str], job_id: str, start: datetime) -> str | tuple[str, str]:
    if isinstance(part, str):
        return part
    name, argument = part
    values = {
        "job_id": lambda: job_id,
        "date": lambda: start.strftime(argument),
        "epoch": lambda: str((start - _EPOCH) // _MILLISECOND),
        "epoch_micros": lambda: str((start - _EPOCH) // _MICROSECOND),
        "millisecond": lambda: f"{start.microsecond // 1000:04d}",
    }
    return values[name]() if name in values else part


def _pattern(template: Template, end: str = "") -> re.Pattern[str]:
    text = "".join(_anything(part) for part in template.parts)
    first, group, rest = text.partition("(?P<part>")
    return re.compile(first + group + rest.replace("(?P<part>", "(?:") + end)


def _anything(part: str | tuple[str, str]) -> str:
    if isinstance(part, str):
        return re.escape(part)
    name, argument = part
    if name != "date":
        return _VALUES[name]
    letters = re.split("(%[A-Za-z])", argument)
    return "".join(_DATE_DIGITS.get(text, r"\d{2}") if text.startswith("%") else re.escape(text) for text in letters)
