"""Which locations of a collection become columns, under which names and types; pure."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from job.collection import Collection, Kind, Location, steps
from job.errors import SpecInvalidError
from job.shape.typed import ARROW

Path = tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """One column: where its value is in a document, and what is written."""

    name: str
    path: Path
    kind: Kind
    type: pa.DataType
    key: bool


@dataclass(frozen=True)
class Chosen:
    """The columns in the order of their locations; ``left_out`` says which locations have none, and why."""

    fields: tuple[Field, ...]
    left_out: tuple[str, ...]


def choose(table: str, locations: Sequence[Location], collection: Collection) -> Chosen:
    """Keys and included fields, and by default every scalar that no included object holds.

    ``SPEC_INVALID`` for a field or a key that is not there.
    """
    return _Choice(table, locations, collection).made()


class _Choice:
    def __init__(self, table: str, locations: Sequence[Location], collection: Collection) -> None:
        self._table = table
        self._locations = locations
        self._selection = collection.selection
        self._by_path = {location.path: location for location in locations}
        self._projected = {name: steps(pointer) for name, pointer in self._selection.projections}
        self._by_name = {"/".join(path): path for path in self._by_path} | self._projected
        self._keys = [self._key(pointer) for pointer in collection.keys]
        self._included = self._paths("include", self._selection.include)
        self._excluded = self._paths("exclude", self._selection.exclude)

    def made(self) -> Chosen:
        fields: list[Field] = []
        left_out = []
        for location in self._locations:
            if self._wanted(location):
                fields += self._fields(location)
            elif location.kind is not Kind.OBJECT and not self._below(location.path, self._included.values()):
                left_out.append(f"{'/'.join(location.path)} ({location.kind})")
        return Chosen(tuple(_distinct(fields)), tuple(left_out))

    def _wanted(self, location: Location) -> bool:
        path = location.path
        if path in self._keys or path in self._included.values():
            return True
        if not self._selection.recommended or self._below(path, self._excluded.values()):
            return False
        return (location.kind.scalar or location.kind is Kind.JSON) and not self._below(path, self._included.values())

    @staticmethod
    def _below(path: Path, others: Iterable[Path]) -> bool:
        return any(path[: len(other)] == other for other in others)

    def _fields(self, location: Location) -> list[Field]:
        key = location.path in self._keys
        kind = location.kind
        if key and kind in (Kind.TEXT_INTEGER, Kind.TEXT_NUMBER):
            kind = Kind.STRING
        return [Field(name, location.path, kind, ARROW[kind], key) for name in self._names(location.path)]

    def _names(self, path: Path) -> list[str]:
        """A projection's own names in place of the path, unless that is included too."""
        own = [name for name, place in self._projected.items() if place == path and name not in self._excluded]
        plain = "/".join(path)
        if not own or plain in self._included:
            own.append(self._selection.separator.join(path))
        return own

    def _key(self, pointer: str) -> Path:
        location = self._by_path.get(steps(pointer))
        if location is None:
            raise SpecInvalidError(
                f"table {self._table!r}: documents have no key {pointer!r}{self._nearest(pointer.strip('/'))}."
            )
        if not location.kind.scalar:
            raise SpecInvalidError(
                f"table {self._table!r}: key {pointer!r} holds {location.kind}; a key is one value of one type."
            )
        return location.path

    def _paths(self, what: str, names: Iterable[str]) -> Mapping[str, Path]:
        found = {}
        for name in names:
            path = self._by_name.get(name)
            if path is None or path not in self._by_path:
                raise SpecInvalidError(
                    f"table {self._table!r}: fields.{what} names {name!r}, which documents do not have"
                    f"{self._nearest(name)}."
                )
            if what == "exclude" and path in self._keys:
                raise SpecInvalidError(f"table {self._table!r}: fields.exclude names {name!r}, which is a key.")
            found[name] = path
        return found

    def _nearest(self, name: str) -> str:
        close = difflib.get_close_matches(name, list(self._by_name), 1, 0.5)
        return f"; did you mean {close[0]!r}?" if close else ""


def _distinct(fields: Iterable[Field]) -> list[Field]:
    """The second of two fields of one name gets ``_1``."""
    taken: set[str] = set()
    result = []
    for field in fields:
        name, number = field.name, 0
        while name in taken:
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name)
        result.append(Field(name, field.path, field.kind, field.type, field.key))
    return result
