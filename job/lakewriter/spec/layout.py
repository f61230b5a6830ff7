"""Path and file name templates: parsed and checked once, rendered from values passed in; pure strings.

A template is literal text with variables in braces. The variables known here are the neutral ones; a dialect
translates its vendor's spelling into them.

    {job_id}      the load's job id
    {date:FORMAT} the attempt's start, UTC, in ``strftime`` letters
    {seq}         the file's number in the table's load, at least five digits
    {uuid}        one UUID per file
    {backfill}    the table's backfill number, ten digits
    {counter}     the number of files before this one in the table's whole life, twenty digits; gaps may occur
"""

import hashlib
import itertools
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import join_key

PER_FILE: Final = ("seq", "uuid", "backfill", "counter")
PER_LOAD: Final = ("job_id", "date")

_VARIABLE = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Template:
    """A parsed template: ``parts`` are literal strings and ``(variable, argument)`` pairs."""

    parts: tuple[str | tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> "Template":
        """``text`` taken apart; an unknown variable is ``SPEC_INVALID``."""
        parts: list[str | tuple[str, str]] = []
        end = 0
        for found in _VARIABLE.finditer(text):
            name = found[1]
            if name not in PER_FILE + PER_LOAD:
                known = ", ".join("{" + v + "}" for v in PER_LOAD + PER_FILE)
                raise SpecInvalidError(f"unknown variable {found[0]!r} in {text!r}; known: {known}.")
            if found.start() > end:
                parts.append(text[end : found.start()])
            parts.append((name, found[2] or ""))
            end = found.end()
        if end < len(text):
            parts.append(text[end:])
        return cls(tuple(parts))

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables used."""
        return frozenset(part[0] for part in self.parts if isinstance(part, tuple))

    def bind(self, *, job_id: str, start: datetime) -> "Template":
        """The same template with the load's values filled in; the file's own variables remain."""
        bound: list[str | tuple[str, str]] = []
        for part in self.parts:
            if part == ("job_id", ""):
                bound.append(job_id)
            elif isinstance(part, tuple) and part[0] == "date":
                bound.append(start.strftime(part[1]))
            else:
                bound.append(part)
        return Template(tuple(bound))

    @property
    def glob(self) -> str:
        """The text with ``*`` for every variable."""
        return "".join(part if isinstance(part, str) else "*" for part in self.parts)

    def render(self, values: Mapping[str, str] | None = None) -> str:
        """The text, with every remaining variable taken from ``values``."""
        return "".join(p if isinstance(p, str) else (values or {})[p[0]] for p in self.parts)


@dataclass(frozen=True)
class Layout:
    """Where a table's objects go: ``{directory}/{partition}/{file}{extension}``."""

    directory: str
    partition: Template
    file: Template
    extension: str
    depth: int = 0
    """Directories of Iceberg's partitions between ``partition`` and ``file``."""

    @property
    def glob(self) -> str:
        """Matches the keys of all loads."""
        return join_key(self.directory, self.partition.glob, "*/" * self.depth, self.file.glob + self.extension)

    def bind(self, *, job_id: str, attempt: str, start: datetime) -> "ObjectNames":
        """The names of one attempt's objects."""
        return ObjectNames(
            directory=self.directory,
            partition=self.partition.bind(job_id=job_id, start=start).render(),
            file=self.file.bind(job_id=job_id, start=start),
            extension=self.extension,
            attempt=attempt,
            depth=self.depth,
        )


@dataclass(frozen=True)
class ObjectNames:
    """Object keys of one table in one attempt; every value but the file's number and Iceberg partition is fixed.

    ``first`` is the number, or the counter, that the first file's name carries, ``depth`` how many directories an
    Iceberg partition has. ``backfill`` and a counter are the table's own and known when the attempt is registered.
    """

    directory: str
    partition: str
    file: Template
    extension: str
    attempt: str
    first: int = 0
    depth: int = 0
    backfill: int = 0

    def object_key(self, seq: int, within: str = "") -> str:
        """The key of file number ``seq``, ``within`` the directories of its Iceberg partition; the same each time."""
        number = self.first + seq
        values = {
            "seq": f"{number:05d}",
            "uuid": str(file_uuid(self.attempt, seq)),
            "backfill": f"{self.backfill:010d}",
            "counter": f"{number:020d}",
        }
        return join_key(self.directory, self.partition, within, self.file.render(values) + self.extension)

    @property
    def counts(self) -> bool:
        """Whether keys carry the table's counter, so that two loads could choose the same one."""
        return "counter" in self.file.variables

    def numbered(self, backfill: int, counter: int) -> "ObjectNames":
        """The same under the table's present numbers."""
        return replace(self, backfill=backfill, first=counter if self.counts else self.first)

    @property
    def location(self) -> str:
        """The directory that all of the attempt's objects of this table share, without a slash at its end."""
        return join_key(self.directory, self.partition)

    @property
    def stem(self) -> str:
        """What all of this attempt's keys for the table begin with."""
        if self.depth:
            return self.location + "/"
        fixed = itertools.takewhile(lambda part: isinstance(part, str), self.file.parts)
        return (self.location + "/" if self.location else "") + "".join(map(str, fixed))

    def after(self, keys: Iterable[str]) -> "ObjectNames":
        """The same names, their numbers beyond those in ``keys``, which this attempt could have made."""
        number = re.compile(self._pattern(r"(\d{5,})", ".*"))
        found = [int(match[1]) for match in map(number.fullmatch, keys) if match]
        return replace(self, first=max(found, default=self.first - 1) + 1)

    @property
    def unique(self) -> bool:
        """Whether no other attempt of whatever load can make the same keys."""
        return "uuid" in self.file.variables

    @property
    def shared(self) -> bool:
        """Whether ``pattern`` matches keys of other loads too: two could choose the same counter."""
        return self.counts and not self.unique

    def pattern(self) -> re.Pattern[str]:
        """Matches the keys this attempt can make, and, where the template has a job id or UUID, no other load's."""
        return re.compile(self._pattern(r"\d{5,}", uuid_pattern(self.attempt)))

    def _pattern(self, seq: str, uuid_: str) -> str:
        values = {"seq": seq, "uuid": uuid_, "backfill": r"\d{10}", "counter": r"\d{20}"}
        name = "".join(re.escape(p) if isinstance(p, str) else values[p[0]] for p in self.file.parts)
        location = re.escape(self.location + "/" if self.location else "") + "[^/]+=[^/]*/" * self.depth
        return location + name + re.escape(self.extension)


def file_uuid(attempt: str, seq: int) -> uuid.UUID:
    """A version 8 UUID: eight bytes from the attempt, eight from the file's number.

    The first half tells whose upload a key belongs to when all that is left of an attempt is its record.
    """
    head = hashlib.sha256(attempt.encode()).digest()[:8]
    tail = hashlib.sha256(f"{attempt}/{seq}".encode()).digest()[:8]
    raw = bytearray(head + tail)
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(raw))


def uuid_pattern(attempt: str) -> str:
    """Matches the UUIDs of one attempt's files."""
    return re.escape(str(file_uuid(attempt, 0))[:18]) + r"-[0-9a-f]{4}-[0-9a-f]{12}"
