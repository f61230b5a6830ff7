"""Choose which locations of a collection become columns, under which names and types; pure."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lakewriter.cast.kind_values import ARROW
from lakewriter.documents.nesting import write_json_pointer
from lakewriter.documents.types import LOGICAL_TYPE
from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.naming import AS_TEXT
from lakewriter.spec.collection import PUBLISHED_AT, Collection, Kind, Location, LogicalType, steps

Path = tuple[str, ...]

_UUID: Final = ("_meta", "uuid")
"""A document of the vendor's platform has its UUID here, which holds the time of publication."""


@dataclass(frozen=True)
class Field:
    """One column: where its value is in a document, and what is written."""

    name: str
    path: Path
    kind: Kind
    type: pa.DataType
    key: bool
    logical_type: LogicalType | None = None

    def to_arrow(self) -> pa.Field:
        """Return the column's field in a file's schema."""
        metadata = {LOGICAL_TYPE: self.logical_type.encode()} if self.logical_type else None
        return pa.field(self.name, self.type, nullable=not self.key, metadata=metadata)


@dataclass(frozen=True)
class Chosen:
    """The columns in the order of their locations.

    ``left_out`` says which locations have none, and why; ``named`` which are included by name.
    """

    fields: tuple[Field, ...]
    left_out: tuple[str, ...]
    named: frozenset[Path] = frozenset()


@dataclass(frozen=True)
class Pins:
    """Names of a table of documents without a schema: those in use, and the one by a column's path and wanted name."""

    taken: frozenset[str]
    name_of: Callable[[Path, str], str | None]


NameFields = Callable[[Sequence[tuple[str, str]]], list[str]]
"""Name columns, each by the name that it wants and by what distinguishes it from others."""


def choose(
    table: str,
    locations: Sequence[Location],
    collection: Collection,
    *,
    seen: bool = False,
    pins: Pins | None = None,
    name_fields: NameFields | None = None,
) -> Chosen:
    """Choose keys and included fields, and by default every scalar that no included object holds.

    ``SPEC_INVALID`` for a field or a key that is not there. If ``locations`` are only those ``seen`` in one load's
    documents, a missing field is left out, and a missing key is a column in which no document has a value. ``pins`` are
    for documents without a schema: an included value is whole, whatever it is. ``name_fields`` names the columns of
    other documents.
    """
    chosen = _Choice(table, locations, collection, seen, pins).choose()
    if pins is not None:
        return replace(chosen, fields=tuple(_make_distinct(chosen.fields, pins)))
    wanted = [(f"{write_json_pointer(field.path)}#{field.name}", field.name) for field in chosen.fields]
    names = name_fields(wanted) if name_fields else AS_TEXT.make_distinct((name for _, name in wanted), ())
    named = zip(chosen.fields, names, strict=True)
    return replace(chosen, fields=tuple(replace(field, name=name) for field, name in named))


class _Choice:
    def __init__(
        self, table: str, locations: Sequence[Location], collection: Collection, seen: bool, pins: Pins | None
    ) -> None:
        self._table = table
        self._seen = seen
        self._pins = pins
        keys = dict.fromkeys(map(steps, collection.keys))
        if pins is not None:
            locations = [
                replace(location, kind=Kind.VALUE) if location.path in keys and location.kind in _OPEN else location
                for location in locations
            ]
        paths = {location.path for location in locations}
        unseen = [path for path in keys if seen and path not in paths]
        kind = Kind.STRING if pins is None else Kind.VALUE
        self._locations = [*locations, *(Location(path, kind) for path in unseen)]
        self._selection = collection.selection
        self._by_path = {location.path: location for location in self._locations}
        projected = {name: steps(pointer) for name, pointer in self._selection.projections}
        is_asked = projected.get(PUBLISHED_AT, _UUID) == _UUID and PUBLISHED_AT in {
            *projected,
            *self._selection.include,
        }
        self._has_published = is_asked and (PUBLISHED_AT,) not in self._by_path
        if self._has_published:
            projected.pop(PUBLISHED_AT, None)
        self._projected = projected
        self._by_name = {self._join(path, "/"): path for path in self._by_path} | self._projected
        self._keys = [self._find_key(pointer) for pointer in collection.keys]
        self._included = self._find_paths("include", self._selection.include)
        self._as_text = {self._included[name] for name in self._selection.as_text if name in self._included}
        self._excluded = self._find_paths("exclude", self._selection.exclude)

    def choose(self) -> Chosen:
        fields: list[Field] = []
        left_out = [f"{name} (in no document of this load{self._suggest(name)})" for name in self._list_absent()]
        for location in self._locations:
            if self._is_wanted(location):
                fields += self._make_fields(location)
            elif location.kind is not Kind.OBJECT and not self._is_below(location.path, self._included.values()):
                left_out.append(f"{'/'.join(location.path)} ({location.kind})")
        if self._has_published and PUBLISHED_AT not in self._selection.exclude:
            fields.append(Field(PUBLISHED_AT, _UUID, Kind.PUBLISHED, ARROW[Kind.PUBLISHED], key=False))
        named = frozenset(self._included.values())
        return Chosen(tuple(fields), tuple(left_out), named)

    def _list_absent(self) -> list[str]:
        return [name for name in self._selection.include if name not in self._included and name != PUBLISHED_AT]

    def _is_wanted(self, location: Location) -> bool:
        path = location.path
        if path in self._keys or path in self._included.values():
            return True
        depth = self._selection.depth
        if (depth is not None and len(path) > depth) or self._is_below(path, self._excluded.values()):
            return False
        return (location.kind.scalar or location.kind is Kind.JSON) and not self._is_below(
            path, self._included.values()
        )

    @staticmethod
    def _is_below(path: Path, others: Iterable[Path]) -> bool:
        return any(path[: len(other)] == other for other in others)

    def _make_fields(self, location: Location) -> list[Field]:
        key, kind = location.path in self._keys, self._choose_kind(location)
        logical_type: LogicalType | None = None
        if kind is Kind.DURATION:
            logical_type = "interval"
        elif kind in _JSON and "json" in self._selection.logical_types:
            logical_type = "json"
        names = self._list_names(location.path)
        return [Field(name, location.path, kind, ARROW[kind], key, logical_type) for name in names]

    def _choose_kind(self, location: Location) -> Kind:
        path, kind = location.path, location.kind
        key = path in self._keys
        if path in self._as_text:
            return Kind.TEXT
        if self._pins is not None and path in self._included.values() and kind in _OPEN and not key:
            return Kind.JSON
        is_number = key and kind in (Kind.TEXT_INTEGER, Kind.TEXT_NUMBER)
        is_span = kind is Kind.DURATION and "interval" not in self._selection.logical_types
        return Kind.STRING if is_number or is_span else kind

    def _list_names(self, path: Path) -> list[str]:
        """Return a projection's names instead of the path, unless that is included too."""
        names = [
            name for name, projected in self._projected.items() if projected == path and name not in self._excluded
        ]
        plain = "/".join(path)
        if not names or plain in self._included:
            names.append(self._join(path, self._selection.separator))
        return names

    def _join(self, path: Path, separator: str) -> str:
        """Join a path to a name. Without a schema it is a JSON pointer's, so that no two properties get the same."""
        if self._pins is None or separator != "/":
            return separator.join(path)
        return write_json_pointer(path)[1:]

    def _find_key(self, pointer: str) -> Path:
        location = self._by_path.get(steps(pointer))
        if location is None:
            raise SpecInvalidError(
                f"table {self._table!r}: documents have no key {pointer!r}{self._suggest(pointer.strip('/'))}."
            )
        if not location.kind.scalar or location.kind in (Kind.MIXED_INTEGER, Kind.MIXED_NUMBER):
            message = f"table {self._table!r}: key {pointer!r} holds {location.kind}; a key is one value of one type."
            if self._seen:
                raise ValueUnrepresentableError(message, remedy="Correct the documents, or give the schema.")
            raise SpecInvalidError(message)
        return location.path

    def _find_paths(self, what: str, names: Iterable[str]) -> Mapping[str, Path]:
        paths = {}
        for name in names:
            path = self._by_name.get(name)
            if path is None and name == PUBLISHED_AT:
                continue
            if path is None or path not in self._by_path:
                if self._seen:
                    continue
                raise SpecInvalidError(
                    f"table {self._table!r}: fields.{what} names {name!r}, which documents do not have"
                    f"{self._suggest(name)}."
                )
            if what == "exclude" and path in self._keys:
                raise SpecInvalidError(f"table {self._table!r}: fields.exclude names {name!r}, which is a key.")
            paths[name] = path
        return paths

    def _suggest(self, name: str) -> str:
        close = difflib.get_close_matches(name, list(self._by_name), 1, 0.5)
        return f"; did you mean {close[0]!r}?" if close else ""


def _make_distinct(fields: Sequence[Field], pins: Pins) -> list[Field]:
    """Make names distinct: the second of two fields of one name gets ``_1``; one that the table has keeps its name."""
    pinned_names = [pins.name_of(field.path, field.name) for field in fields]
    taken = set(pins.taken)
    result = []
    for field, pinned in zip(fields, pinned_names, strict=True):
        name, number = field.name, 0
        while pinned is None and name in taken:
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name)
        result.append(replace(field, name=pinned or name))
    return result


_OPEN: Final = (Kind.VALUE, Kind.OBJECT, Kind.ARRAY, Kind.MAP)
_JSON: Final = (*_OPEN, Kind.JSON, Kind.UNTYPED)
"""Kinds whose columns hold JSON text."""
