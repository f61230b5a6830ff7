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
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.arrow_lines import Offsets
from lakewriter.documents.compact_text import compact_texts
from lakewriter.documents.fast_decoding import Parsed, find_parsed_type, join_texts, parse_plain
from lakewriter.documents.nesting import NULL, Raw, list_repeated, measure_packed, open_object
from lakewriter.documents.types import TEXT_MAP, DocumentType, Items, Leaf, Record, Union
from lakewriter.documents.value_changes import KEY_TWICE, NO_FIT, NULLED, TRUNCATED, Fault
from lakewriter.documents.values import (
    RECORDS,
    Decoded,
    choose_branch,
    decode_texts,
    decode_values,
    make_list,
    read_text,
)
from lakewriter.naming import AVRO_SAFE
from lakewriter.spec.collection import Kind

Locate = Callable[[int], tuple[int, str]]
"""Return the row and the path of the value at a position."""
Objects = Sequence[dict[str, msgspec.Raw] | None]

_NOTHING: Final = msgspec.Raw(NULL)
_NONE: Final = np.zeros(0, np.int64)
_INDEX: Final = re.compile(r"\.\[[0-9]+\]")
"""An array's element in the path of a change, as Airbyte's destinations write it: ``tags.[0].key``."""
_WITH_ZONE: Final[Mapping[Kind, Kind]] = {Kind.LOCAL_TIMESTAMP: Kind.TIMESTAMP, Kind.LOCAL_TIME: Kind.TIME}
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_ARRAYS: Final = msgspec.json.Decoder(list[list[msgspec.Raw] | None])


class Documents:
    """Columns of one batch of records, of which ``texts`` has the JSON.

    ``changes`` are by row with the path of each, ``cuts`` are the row and the field of each time that was cut to the
    microsecond, ``undeclared`` counts properties by path.

    The members of properties called as one of ``lifted`` are additional properties of the object that has them. Without
    ``keeps_local`` a time with a zone is converted to UTC though its type has none.
    """

    def __init__(self, texts: pa.Array, *, lifted: Sequence[str] = (), keeps_local: bool = True) -> None:
        self._texts = texts
        self._lifted, self._kinds = lifted, {} if keeps_local else _WITH_ZONE
        self.changes: dict[int, list[tuple[str, Fault]]] = {}
        self.cuts: list[tuple[int, str, str]] = []
        self.undeclared: Counter[str] = Counter()
        self.dropped: list[tuple[int, str]] = []

    def build_columns(self, record: Record, fields: Sequence[pa.Field]) -> list[pa.Array]:
        """Build one array for each field of the record, and one for its additional properties if it has them.

        Plain documents are parsed together by Arrow, the others level by level.
        """
        parsed = find_parsed_type(record)
        parts = parse_plain(join_texts(self._texts), parsed) if parsed is not None else []
        numbers = [part.numbers for part in parts]
        built = [self._convert_members(record, fields, part) for part in parts]
        others = np.setdiff1d(np.arange(len(self._texts)), np.concatenate([_NONE, *numbers]), assume_unique=True)
        if len(others) or not parts:
            locate = _locate_row(others)
            objects = self._open_documents(others, locate)
            built.append(self._decode_members(record, fields, objects, locate, partial(_locate_at_root, locate)))
        if len(built) == 1:
            return built[0]
        order = pa.array(np.argsort(np.concatenate([*numbers, others]), kind="stable"))
        return [pa.concat_arrays(arrays).take(order) for arrays in zip(*built, strict=True)]

    def _open_documents(self, rows: Offsets, locate: Locate) -> Objects:
        """Open the documents of some rows."""
        texts = compact_texts(self._texts if len(rows) == len(self._texts) else self._texts.take(pa.array(rows)))
        documents = texts.cast(pa.binary()).to_pylist()
        objects: Objects = [open_object(text) for text in documents]
        self._note_repeated(objects, documents, locate)
        return objects

    def _convert_members(self, record: Record, fields: Iterable[pa.Field], part: Parsed) -> list[pa.Array]:
        locate = _locate_row(part.numbers)
        return self._convert_objects(record, fields, part.documents, locate, partial(_locate_at_root, locate))

    def _convert_objects(
        self,
        record: Record,
        fields: Iterable[pa.Field],
        objects: pa.StructArray,
        locate: Locate,
        locate_below: Callable[[str], Locate],
    ) -> list[pa.Array]:
        """Convert the members of parsed objects; note those that are not declared."""
        members = {field.name: objects.field(index) for index, field in enumerate(objects.type)}
        for name in members.keys() - {name for name, _ in record.fields}:
            for position in np.flatnonzero(members[name].is_valid().to_numpy(zero_copy_only=False)).tolist():
                self._note_dropped(locate, position, name)
        return [
            self._convert(t, field, members[name], locate_below(name))
            for (name, t), field in zip(record.fields, fields, strict=False)
        ]

    def _convert(self, t: DocumentType, field: pa.Field, array: pa.Array, locate: Locate) -> pa.Array:
        """Convert parsed values to the type of a column."""
        if isinstance(t, Record):
            children = self._convert_objects(t, field.type, array, locate, partial(_locate_below, locate))
            return pa.StructArray.from_arrays(children, fields=list(field.type), mask=array.is_null())
        if isinstance(t, Items):
            offsets = array.offsets.to_pylist() if len(array) else [0]
            values = self._convert(t.item, field.type.value_field, array.values, _locate_inside(locate, offsets))
            return pa.ListArray.from_arrays(array.offsets, values, type=field.type, mask=array.is_null())
        assert isinstance(t, Leaf)
        if not pt.is_string(array.type):
            return array
        return self._note_faults(decode_texts(self._kinds.get(t.kind, t.kind), array, RECORDS.spelling), locate)

    def build_texts(self, names: Sequence[str]) -> list[pa.Array]:
        """Build the JSON text of each property; null for a record without it."""
        locate = _locate_row(np.arange(len(self._texts)))
        objects = self._open_documents(np.arange(len(self._texts)), locate)
        self._note_undeclared(objects, names, locate)
        present = [members for members in objects if members is not None]
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
                if not declares_all:
                    self._note_dropped(locate, position, name)
                elif members is not None and bytes(members[name]) != NULL:
                    row, path = locate(position)
                    full = f"{path}.{name}" if path else name
                    self.changes.setdefault(row, []).append((full, Fault(position, NULLED, NO_FIT)))

    def _note_dropped(self, locate: Locate, position: int, name: str) -> None:
        row, path = locate(position)
        full = f"{path}.{name}" if path else name
        self.dropped.append((row, full))
        self.undeclared[_strip_indexes(full)] += 1

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
        return self._note_faults(decode_values(self._kinds.get(kind, kind), raws, RECORDS), locate)

    def _note_faults(self, decoded: Decoded, locate: Locate) -> pa.Array:
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


def _locate_row(rows: Offsets) -> Locate:
    return lambda position: (int(rows[position]), "")


def _locate_at_root(locate_row: Locate, name: str) -> Locate:
    return lambda position: (locate_row(position)[0], name)


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
