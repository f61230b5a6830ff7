"""Decode whole documents into Arrow columns, every level for all rows at once.

Where all values of a column fit they are decoded together, and one by one where some do not.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa

from lakewriter.documents.nesting import NULL, Raw, list_repeated, measure_packed, open_object
from lakewriter.documents.types import TEXT_MAP, DocumentType, Items, Leaf, Record, Union
from lakewriter.documents.value_changes import KEY_TWICE, NO_FIT, NULLED, TRUNCATED, Fault
from lakewriter.documents.values import RECORDS, choose_branch, decode_values, make_list, read_text
from lakewriter.naming import AVRO_SAFE
from lakewriter.spec.collection import Kind

Locate = Callable[[int], tuple[int, str]]
"""Return the row and the path of the value at a position."""
Objects = Sequence[dict[str, msgspec.Raw] | None]

_NOTHING: Final = msgspec.Raw(NULL)
_INDEX: Final = re.compile(r"\.\[[0-9]+\]")
"""An array's element in the path of a change, as Airbyte's destinations write it: ``tags.[0].key``."""
_WITH_ZONE: Final[Mapping[Kind, Kind]] = {Kind.LOCAL_TIMESTAMP: Kind.TIMESTAMP, Kind.LOCAL_TIME: Kind.TIME}
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_ARRAYS: Final = msgspec.json.Decoder(list[list[msgspec.Raw] | None])


class Documents:
    """Columns of one batch of records.

    ``changes`` are by row with the path of each, ``cuts`` are the row and the field of each time that was cut to the
    microsecond, ``undeclared`` counts properties by path.

    The members of properties called as one of ``lifted`` are additional properties of the object that has them. Without
    ``keeps_local`` a time with a zone is converted to UTC though its type has none.
    """

    def __init__(self, texts: Iterable[bytes], *, lifted: Sequence[str] = (), keeps_local: bool = True) -> None:
        documents = list(texts)
        self.objects: Objects = [open_object(text) for text in documents]
        self._lifted, self._kinds = lifted, {} if keeps_local else _WITH_ZONE
        self.changes: dict[int, list[tuple[str, Fault]]] = {}
        self.cuts: list[tuple[int, str, str]] = []
        self.undeclared: Counter[str] = Counter()
        self.dropped: list[tuple[int, str]] = []
        self._note_repeated(self.objects, documents, lambda row: (row, ""))

    def build_columns(self, record: Record, fields: Iterable[pa.Field]) -> list[pa.Array]:
        """Build one array for each field of the record, and one for its additional properties if it has them."""
        return self._decode_members(record, fields, self.objects, lambda row: (row, ""), _locate_at_root)

    def build_texts(self, names: Sequence[str]) -> list[pa.Array]:
        """Build the JSON text of each property; null for a record without it."""
        self._note_undeclared(self.objects, names, lambda row: (row, ""))
        present = [members for members in self.objects if members is not None]
        columns = (
            [bytes(members[name]).decode() if name in members else None for members in present] for name in names
        )
        return [pa.array(texts, pa.string()) for texts in columns]

    def _decode_members(
        self,
        record: Record,
        fields: Iterable[pa.Field],
        objects: Objects,
        locate: Locate,
        locate_below: Callable[[str], Locate],
    ) -> list[pa.Array]:
        """Decode the fields of objects; ``locate_below`` says where the values of one are."""
        names = [name for name, _ in record.fields]
        if record.additional is None:
            self._note_undeclared(objects, names, locate, declares_all=record.declares_all)
        else:
            objects = _take_written_names(objects, names)
        columns = [
            self._decode(
                t,
                field,
                [_NOTHING if members is None else members.get(name, _NOTHING) for members in objects],
                locate_member,
            )
            for (name, t), field, locate_member in zip(record.fields, fields, map(locate_below, names), strict=False)
        ]
        return columns if record.additional is None else [*columns, self._collect_additional(objects, names)]

    def _collect_additional(self, objects: Objects, names: Sequence[str]) -> pa.Array:
        """Collect the properties without a field, as text; null for an object that has none, and for null."""
        fields = set(names)
        maps = [dict(self._list_others(members, fields)) if members else {} for members in objects]
        return pa.array([list(properties.items()) or None for properties in maps], TEXT_MAP)

    def _list_others(self, members: Mapping[str, msgspec.Raw], fields: Set[str]) -> Iterator[tuple[str, str]]:
        for name, member in members.items():
            if name in fields or (raw := bytes(member)) == NULL:
                continue
            if name in self._lifted and raw.startswith(b"{"):
                yield from self._list_others(open_object(raw), frozenset())
            else:
                yield name, read_text(raw) or ""

    def _note_undeclared(
        self, objects: Objects, names: Iterable[str], locate: Locate, *, declares_all: bool = False
    ) -> None:
        """Note the properties that have no column: as changes where the schema declares them all the same."""
        unknown = set[str]().union(*(members for members in objects if members)).difference(names)
        if not unknown:
            return
        for position, members in enumerate(objects):
            for name in (name for name in members or () if name in unknown):
                row, path = locate(position)
                full = f"{path}.{name}" if path else name
                if not declares_all:
                    self.dropped.append((row, full))
                    self.undeclared[_strip_indexes(full)] += 1
                elif members is not None and bytes(members[name]) != NULL:
                    self.changes.setdefault(row, []).append((full, Fault(position, NULLED, NO_FIT)))

    def _note_repeated(self, objects: Objects, raws: Sequence[Raw], locate: Locate) -> None:
        """Note the keys that an object has several times, of which the last value counts."""
        opened = [members for members in objects if members]
        if sum(len(raw) for raw, members in zip(raws, objects, strict=True) if members) == measure_packed(opened):
            # None is longer than its members: most records are without white space.
            return
        for position, (members, raw) in enumerate(zip(objects, raws, strict=True)):
            for name in list_repeated(raw, members) if members else ():
                row, path = locate(position)
                full = f"{path}.{name}" if path else name
                self.changes.setdefault(row, []).append((full, Fault(position, TRUNCATED, KEY_TWICE)))

    def _note_fault(self, locate: Locate, fault: Fault) -> None:
        row, path = locate(fault.position)
        if fault.change == TRUNCATED:
            self.cuts.append((row, _strip_indexes(path), fault.message))
        else:
            self.changes.setdefault(row, []).append((path, fault))

    def _decode(self, t: DocumentType, field: pa.Field, raws: Sequence[Raw], locate: Locate) -> pa.Array:
        if isinstance(t, Leaf):
            return self._decode_leaf(t.kind, raws, locate)
        if isinstance(t, Record):
            return self._decode_record(t, field.type, raws, locate)
        if isinstance(t, Items):
            return self._decode_items(t, field.type, raws, locate)
        return self._decode_union(t, field.type, raws, locate)

    def _decode_leaf(self, kind: Kind, raws: Sequence[Raw], locate: Locate) -> pa.Array:
        decoded = decode_values(self._kinds.get(kind, kind), raws, RECORDS)
        for fault in decoded.faults:
            self._note_fault(locate, fault)
        return decoded.array

    def _decode_record(self, record: Record, t: pa.DataType, raws: Sequence[Raw], locate: Locate) -> pa.Array:
        objects = self._open_all(_OBJECTS, dict[str, msgspec.Raw], raws, locate)
        self._note_repeated(objects, raws, locate)
        children = self._decode_members(record, t, objects, locate, partial(_locate_below, locate))
        mask = pa.array([members is None for members in objects], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _decode_items(self, items: Items, t: pa.DataType, raws: Sequence[Raw], locate: Locate) -> pa.Array:
        arrays = self._open_all(_ARRAYS, list[msgspec.Raw], raws, locate)
        offsets = [0]
        for items_of_row in arrays:
            offsets.append(offsets[-1] + len(items_of_row or ()))
        flat = [raw for items_of_row in arrays for raw in items_of_row or ()]
        values = self._decode(items.item, t.value_field, flat, _locate_inside(locate, offsets))
        mask = pa.array([items_of_row is None for items_of_row in arrays], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=t, mask=mask)

    def _decode_union(self, union: Union, t: pa.DataType, raws: Sequence[Raw], locate: Locate) -> pa.Array:
        chosen = [choose_branch(union, bytes(raw)) for raw in raws]
        for position, (raw, name) in enumerate(zip(raws, chosen, strict=True)):
            if name is None and bytes(raw) != NULL:
                self._note_fault(locate, Fault(position, NULLED, NO_FIT))
        children = [pa.array([name or "" for name in chosen], pa.string())]
        for (name, branch_type), field in zip(union.branches, list(t)[1:], strict=True):
            mine = [raw if picked == name else _NOTHING for raw, picked in zip(raws, chosen, strict=True)]
            children.append(self._decode(branch_type, field, mine, locate))
        mask = pa.array([name is None for name in chosen], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _open_all(self, decoder: msgspec.json.Decoder[Any], kind: Any, raws: Sequence[Raw], locate: Locate) -> Any:
        """Decode all values at once, or one by one if some are of another kind."""
        try:
            return decoder.decode(make_list(raws))
        except msgspec.MsgspecError:
            return [self._open_one(kind, bytes(raw), locate, position) for position, raw in enumerate(raws)]

    def _open_one(self, kind: Any, raw: bytes, locate: Locate, position: int) -> Any:
        try:
            return None if raw == NULL else msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError:
            self._note_fault(locate, Fault(position, NULLED, NO_FIT))
            return None


def _take_written_names(objects: Objects, names: Sequence[str]) -> Objects:
    """Return objects whose properties have the declared name where they have the one that it is written under."""
    declared = dict(zip((AVRO_SAFE.make(name) for name in names), names, strict=True))
    strange = {name for members in objects if members for name in members}.difference(names)
    other = {name: declared[written] for name in strange if (written := AVRO_SAFE.make(name)) in declared}
    if not other:
        return objects
    return [
        members and {name if other.get(name, name) in members else other[name]: raw for name, raw in members.items()}
        for members in objects
    ]


def _locate_at_root(name: str) -> Locate:
    return lambda row: (row, name)


def _locate_below(locate_owner: Locate, name: str) -> Locate:
    def locate(position: int) -> tuple[int, str]:
        row, path = locate_owner(position)
        return row, f"{path}.{name}"

    return locate


def _locate_inside(locate_owner: Locate, offsets: Sequence[int]) -> Locate:
    def locate(position: int) -> tuple[int, str]:
        owner = bisect_right(offsets, position) - 1
        row, path = locate_owner(owner)
        return row, f"{path}.[{position - offsets[owner]}]"

    return locate


def _strip_indexes(path: str) -> str:
    """Return a path without its indexes, so that paths do not multiply with the data."""
    return _INDEX.sub("[]", path)
