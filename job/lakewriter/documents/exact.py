"""Build the columns of JSON values exactly, every level for all rows at once.

One walk serves files and records. What is built on it says how values are opened and read, and what becomes of one that
does not fit: in a file its row is bad, in a vendor's record it is null, and a change with a reason says so.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from lakewriter.documents.arrow_lines import Offsets
from lakewriter.documents.types import DocumentType, Items, Map, Record

Steps = tuple[str | int, ...]
"""The names and indexes from a document to a value in it."""
Locate = Callable[[int], tuple[int, Steps]]
"""Return the row and the steps of the value at a position."""
Value = TypeVar("Value")
"""A value as it was parsed so far."""
Objects = Sequence[Mapping[str, Value] | None]


class ColumnBuilder(ABC, Generic[Value]):
    """The walk from documents to columns; ``null`` is the value of a member that an object does not have."""

    null: Any = None

    @abstractmethod
    def open_values(self, expected: type, kind: pa.DataType, values: Sequence[Value], locate: Locate) -> Sequence[Any]:
        """Return the ``dict`` or ``list`` of each value, None for null and for a value that is not as expected."""

    @abstractmethod
    def note_members(self, record: Record, kind: pa.StructType, objects: Objects[Value], locate: Locate) -> None:
        """Note the members of objects that the record has no field for."""

    @abstractmethod
    def build_leaves(self, t: DocumentType, kind: pa.DataType, values: Sequence[Value], locate: Locate) -> pa.Array:
        """Return the array of values without parts."""

    def build(self, t: DocumentType, kind: pa.DataType, values: Sequence[Value], locate: Locate) -> pa.Array:
        """Return the array of values of a type, which is stored as ``kind``."""
        if isinstance(t, Record):
            objects = self.open_values(dict, kind, values, locate)
            members = self.build_members(t, kind, objects, locate)
            mask = pa.array([value is None for value in objects], pa.bool_())
            return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
        if isinstance(t, Items):
            lists = self.open_values(list, kind, values, locate)
            ends, offsets = _count_offsets(lists)
            inner = [item for value in lists for item in value or ()]
            items = self.build(t.item, kind.value_type, inner, locate_inside(locate, ends))
            return pa.ListArray.from_arrays(offsets, items, type=kind)
        if isinstance(t, Map):
            maps = self.open_values(dict, kind, values, locate)
            ends, offsets = _count_offsets(maps)
            keys = pa.array([key for value in maps for key in value or ()], kind.key_type)
            inner = [item for value in maps for item in (value or {}).values()]
            items = self.build(t.item, kind.item_type, inner, locate_inside(locate, ends))
            return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
        return self.build_leaves(t, kind, values, locate)

    def build_members(
        self, record: Record, kind: pa.StructType, objects: Objects[Value], locate: Locate
    ) -> list[pa.Array]:
        """Return the arrays of the fields of objects."""
        self.note_members(record, kind, objects, locate)
        return [
            self.build(
                t,
                field.type,
                [self.null if members is None else members.get(name, self.null) for members in objects],
                locate_below(locate, name),
            )
            for (name, t), field in zip(record.fields, kind, strict=False)
        ]


def _count_offsets(values: Sequence[Any]) -> tuple[list[int], pa.Array]:
    """Return the start of each list among all items, and the same with null for a list that is null."""
    starts = list(accumulate((len(value or ()) for value in values), initial=0))
    is_null = np.array([*(value is None for value in values), False], np.bool_)
    return starts, pa.array(starts, pa.int32(), mask=is_null)


def locate_rows(rows: Offsets | range) -> Locate:
    """Return a function that locates documents by the numbers of their rows."""
    return lambda position: (int(rows[position]), ())


def locate_below(locate_owner: Locate, name: str) -> Locate:
    """Return a function that locates the member of a name in objects."""

    def locate(position: int) -> tuple[int, Steps]:
        row, steps = locate_owner(position)
        return row, (*steps, name)

    return locate


def locate_inside(locate_owner: Locate, starts: Sequence[int]) -> Locate:
    """Return a function that locates the items of lists, of which ``starts`` has the position of each list's first."""

    def locate(position: int) -> tuple[int, Steps]:
        owner = bisect_right(starts, position) - 1
        row, steps = locate_owner(owner)
        return row, (*steps, position - starts[owner])

    return locate


def write_path(steps: Iterable[str | int]) -> str:
    """Return a path as Airbyte's destinations write it: ``tags.[0].key``."""
    return ".".join(step if isinstance(step, str) else f"[{step}]" for step in steps)


def write_column_path(steps: Iterable[str | int]) -> str:
    """Return a path without its indexes, so that paths do not multiply with the data: ``tags[].key``."""
    return "".join(f".{step}" if isinstance(step, str) else "[]" for step in steps).removeprefix(".")
