"""Templates of object keys: literal text and variables, which an attempt and each of its files fill in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.errors import SpecInvalidError

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
CLASH: Final = "(?:-[0-9]+)?"
"""Matches the suffix that Airbyte's own connector puts behind a key that is taken."""

_VARIABLE: Final = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_DATE_DIGITS: Final = {"%Y": r"\d{4}"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Template:
    """A parsed template: no two literal parts follow each other, none of them has ``//``, the key begins without
    ``/``."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part) -> "Template":
        """Return the template of ``parts``, which are concatenated."""
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
        """Return the template that ``text`` spells; an unknown variable is ``SPEC_INVALID``."""
        parts: list[Part] = []
        end = 0
        for match in _VARIABLE.finditer(text):
            name = match[1]
            if name not in PER_FILE and name not in PER_LOAD:
                variables = ", ".join("{" + v + "}" for v in (*PER_LOAD, *PER_FILE))
                raise SpecInvalidError(f"unknown variable {match[0]!r} in {text!r}; known: {variables}.")
            parts += [text[end : match.start()], (name, match[2] or "")]
            end = match.end()
        return cls.of(*parts, text[end:])

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables used."""
        return frozenset(part[0] for part in self.parts if isinstance(part, tuple))

    @property
    def first_variable(self) -> tuple[str, str]:
        """Name and argument of the first variable, which is the partition's where folders are partitions."""
        return next(part for part in self.parts if isinstance(part, tuple))

    @property
    def glob(self) -> str:
        """The text with ``*`` for every variable."""
        return "".join(part if isinstance(part, str) else "*" for part in self.parts)

    @property
    def pattern(self) -> str:
        """The glob for readers whose ``*`` matches no slash: a date has one ``*`` for each of its folders."""
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
        """Return the same template with the attempt's values filled in; the sync's number and the file's variables
        remain.
        """
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
        """Return the text, with every remaining variable taken from ``values``."""
        return "".join(part if isinstance(part, str) else values[part[0]] for part in self.parts)

    def match_text(self, patterns: Mapping[str, str]) -> str:
        """Return a regular expression of the texts that the template gives; ``patterns`` match its other variables."""
        expressions = {**PER_LOAD, **PER_FILE, **patterns}
        return "".join(
            re.escape(part)
            if isinstance(part, str)
            else _match_date(part[1])
            if part[0] == "date"
            else expressions[part[0]]
            for part in self.parts
        )


def _match_date(letters: str) -> str:
    texts = re.split("(%[A-Za-z])", letters)
    return "".join(_DATE_DIGITS.get(text, r"\d{2}") if text.startswith("%") else re.escape(text) for text in texts)
