"""Describe a collection of documents, and choose which of its locations become columns; pure values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Kind(StrEnum):
    """The kind of a document's value or of a location of documents, and so of what its column stores.

    A ``timestamp`` and a ``time`` are in UTC, the ``local`` ones have no zone. ``text_integer`` and ``text_number``
    are numbers written as strings, ``mixed_integer`` and ``mixed_number`` are written either way; ``json`` is a value
    of several types, ``untyped`` of any; ``object`` has declared properties, ``map`` has none. ``value`` is a string,
    number or boolean of documents without a schema, as JSON text; ``text`` is a string as it is and anything else as
    JSON text; ``duration`` is a time span of months, days and milliseconds, and ``published`` the time in a UUID.
    """

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"
    LOCAL_TIMESTAMP = "local_timestamp"
    LOCAL_TIME = "local_time"
    DURATION = "duration"
    PUBLISHED = "published"
    BINARY = "binary"
    TEXT_INTEGER = "text_integer"
    TEXT_NUMBER = "text_number"
    MIXED_INTEGER = "mixed_integer"
    MIXED_NUMBER = "mixed_number"
    JSON = "json"
    UNTYPED = "untyped"
    OBJECT = "object"
    MAP = "map"
    ARRAY = "array"
    VALUE = "value"
    TEXT = "text"

    @property
    def scalar(self) -> bool:
        """One value of one type."""
        return self not in (Kind.JSON, Kind.UNTYPED, Kind.OBJECT, Kind.MAP, Kind.ARRAY, Kind.TEXT)


PUBLISHED_AT: Final = "flow_published_at"
"""The field that has the time in a document's UUID."""

LogicalType = Literal["json", "interval"]
"""A Parquet type that few readers know. Without it the column is plain text."""


@dataclass(frozen=True)
class Location:
    """A place in every document, by the property names that lead to it."""

    path: tuple[str, ...]
    kind: Kind


@dataclass(frozen=True)
class Selection:
    """The locations that become columns, by field name: a location's path joined by ``/``, or a projection's own name.

    Other locations do only if their path has at most ``depth`` names; None sets no limit. ``projections`` are
    ``(field, JSON pointer)``. Fields of ``as_text`` are strings, whatever the schema says; JSON and durations are
    strings, too, where ``logical_types`` does not have them.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    separator: str = "/"
    projections: tuple[tuple[str, str], ...] = ()
    as_text: tuple[str, ...] = ()
    logical_types: frozenset[LogicalType] = frozenset()


@dataclass(frozen=True)
class Collection:
    """Documents that become rows. ``keys`` are JSON pointers.

    ``column`` is the source's column that holds them as JSON text; without it the source's rows are the documents.
    Without ``locations`` the documents themselves show what they hold, and the table keeps it.
    """

    keys: tuple[str, ...]
    column: str | None = None
    locations: tuple[Location, ...] | None = None
    selection: Selection = Selection()


def steps(pointer: str) -> tuple[str, ...]:
    """Return the property names in a JSON pointer; a text without a slash in front is taken as if it had one."""
    names = pointer.removeprefix("/").split("/")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in names)
