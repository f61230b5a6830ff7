"""Decode whole documents into Arrow columns, every level for all rows at once.

Where all values of a column fit they are decoded together, and one by one where some do not.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from lakewriter.documents.nesting import NULL, Raw, open_object
from lakewriter.documents.parsing import NO_FIT, NULLED, TRUNCATED
from lakewriter.documents.types import DocumentType, Items, Leaf, Record, Union
from lakewriter.documents.values import RECORDS, Fault, choose_branch, decode_values, make_list, read_text
from lakewriter.spec.collection import Kind

Place = Callable[[int], tuple[int, str]]
"""The row and the path of the value at a position."""
Objects = Sequence[dict[str, msgspec.Raw] | None]

_NOTHING: Final = msgspec.Raw(NULL)
_INDEX: Final = re.compile(r"\.\[[0-9]+\]")
"""An array's element in the path of a change, as Airbyte's destinations write it: ``tags.[0].key``."""
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_ARRAYS: Final = msgspec.json.Decoder(list[list[msgspec.Raw] | None])


class Documents:
    """Builds the columns of one batch of records; ``changes`` are by row with the path of each, ``cuts`` are the row
    and the field of each time that was cut to the microsecond, ``undeclared`` counts properties by path."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.objects: Objects = [open_object(text) for text in texts]
        self.changes: dict[int, list[tuple[str, Fault]]] = {}
        self.cuts: list[tuple[int, str]] = []
        self.undeclared: Counter[str] = Counter()
        self.dropped: list[tuple[int, str]] = []

    def build_columns(self, record: Record, fields: Iterable[pa.Field], *, additional: bool = False) -> list[pa.Array]:
        """One array for each field of the record; with ``additional`` one more for what else the root has."""
        names = [name for name, _ in record.fields]
        if not additional:
            self._note_undeclared(self.objects, names, lambda row: (row, ""), declares_all=record.declares_all)
        columns = [
            self._decode(
                t, field, [each.get(name, _NOTHING) for each in self.objects if each is not None], _locate_at_root(name)
            )
            for (name, t), field in zip(record.fields, fields, strict=True)
        ]
        return [*columns, self._collect_additional(names)] if additional else columns

    def build_texts(self, names: Sequence[str]) -> list[pa.Array]:
        """The JSON text of each property; null where a record has none."""
        self._note_undeclared(self.objects, names, lambda row: (row, ""))
        present = [each for each in self.objects if each is not None]
        found = ([bytes(each[name]).decode() if name in each else None for each in present] for name in names)
        return [pa.array(texts, pa.string()) for texts in found]

    def _collect_additional(self, names: Sequence[str]) -> pa.Array:
        """The root's properties without a column of their own, as text."""
        known = set(names)
        maps = [
            [(name, read_text(bytes(raw))) for name, raw in each.items() if name not in known]
            for each in self.objects
            if each is not None
        ]
        return pa.array(maps, pa.map_(pa.string(), pa.string()))

    def _note_undeclared(
        self, objects: Objects, names: Iterable[str], place: Place, *, declares_all: bool = False
    ) -> None:
        """Note the properties that have no column: as changes where the schema declares them all the same."""
        unknown = set[str]().union(*(each for each in objects if each)).difference(names)
        if not unknown:
            return
        for position, members in enumerate(objects):
            for name in (name for name in members or () if name in unknown):
                row, path = place(position)
                full = f"{path}.{name}" if path else name
                if not declares_all:
                    self.dropped.append((row, full))
                    self.undeclared[_strip_indexes(full)] += 1
                elif members is not None and bytes(members[name]) != NULL:
                    self.changes.setdefault(row, []).append((full, Fault(position, NULLED, NO_FIT)))

    def _note_fault(self, place: Place, fault: Fault) -> None:
        row, path = place(fault.position)
        if fault.change == TRUNCATED:
            self.cuts.append((row, _strip_indexes(path)))
        else:
            self.changes.setdefault(row, []).append((path, fault))

    def _decode(self, t: DocumentType, field: pa.Field, raws: Sequence[Raw], place: Place) -> pa.Array:
        if isinstance(t, Leaf):
            return self._decode_leaf(t.kind, raws, place)
        if isinstance(t, Record):
            return self._decode_record(t, field.type, raws, place)
        if isinstance(t, Items):
            return self._decode_items(t, field.type, raws, place)
        return self._decode_union(t, field.type, raws, place)

    def _decode_leaf(self, kind: Kind, raws: Sequence[Raw], place: Place) -> pa.Array:
        decoded = decode_values(kind, raws, RECORDS)
        for fault in decoded.faults:
            self._note_fault(place, fault)
        return decoded.array

    def _decode_record(self, record: Record, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        objects = self._open_all(_OBJECTS, dict[str, msgspec.Raw], raws, place)
        names = [name for name, _ in record.fields]
        self._note_undeclared(objects, names, place, declares_all=record.declares_all)
        children = []
        for (name, member_type), field in zip(record.fields, t, strict=True):
            inner = [_NOTHING if each is None else each.get(name, _NOTHING) for each in objects]
            children.append(self._decode(member_type, field, inner, _locate_below(place, name)))
        mask = pa.array([each is None for each in objects], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _decode_items(self, items: Items, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        arrays = self._open_all(_ARRAYS, list[msgspec.Raw], raws, place)
        offsets = [0]
        for each in arrays:
            offsets.append(offsets[-1] + len(each or ()))
        flat = [raw for each in arrays for raw in each or ()]
        values = self._decode(items.item, t.value_field, flat, _locate_inside(place, offsets))
        mask = pa.array([each is None for each in arrays], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=t, mask=mask)

    def _decode_union(self, union: Union, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        chosen = [choose_branch(union, bytes(raw)) for raw in raws]
        for position, (raw, name) in enumerate(zip(raws, chosen, strict=True)):
            if name is None and bytes(raw) != NULL:
                self._note_fault(place, Fault(position, NULLED, NO_FIT))
        children = [pa.array([name or "" for name in chosen], pa.string())]
        for (name, branch_type), field in zip(union.branches, list(t)[1:], strict=True):
            mine = [raw if picked == name else _NOTHING for raw, picked in zip(raws, chosen, strict=True)]
            children.append(self._decode(branch_type, field, mine, place))
        mask = pa.array([name is None for name in chosen], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _open_all(self, decoder: msgspec.json.Decoder[Any], kind: Any, raws: Sequence[Raw], place: Place) -> Any:
        """All values at once, or one by one where some are of another kind."""
        try:
            return decoder.decode(make_list(raws))
        except msgspec.MsgspecError:
            return [self._open_one(kind, bytes(raw), place, position) for position, raw in enumerate(raws)]

    def _open_one(self, kind: Any, raw: bytes, place: Place, position: int) -> Any:
        try:
            return None if raw == NULL else msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError:
            self._note_fault(place, Fault(position, NULLED, NO_FIT))
            return None


def _locate_at_root(name: str) -> Place:
    return lambda row: (row, name)


def _locate_below(place: Place, name: str) -> Place:
    def locate(position: int) -> tuple[int, str]:
        row, path = place(position)
        return row, f"{path}.{name}"

    return locate


def _locate_inside(place: Place, offsets: Sequence[int]) -> Place:
    def locate(position: int) -> tuple[int, str]:
        owner = bisect_right(offsets, position) - 1
        row, path = place(owner)
        return row, f"{path}.[{position - offsets[owner]}]"

    return locate


def _strip_indexes(path: str) -> str:
    """A path that does not grow with the data."""
    return _INDEX.sub("[]", path)
