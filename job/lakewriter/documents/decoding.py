"""Decode the records of a vendor into Arrow columns. A value that does not fit is null, and a change says so.

Where all values of a column fit they are decoded together, and one by one where some do not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.arrow_lines import Offsets, join_documents
from lakewriter.documents.compact_text import compact_texts
from lakewriter.documents.exact import (
    ColumnBuilder,
    Locate,
    Objects,
    locate_below,
    locate_inside,
    locate_rows,
    write_column_path,
    write_path,
)
from lakewriter.documents.fast_decoding import find_parsed_type, parse_plain
from lakewriter.documents.nesting import NULL, OPENERS, Raw, list_repeated, measure_packed, open_object
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

_NOTHING: Final = msgspec.Raw(NULL)
_NONE: Final = np.zeros(0, np.int64)
_WITH_ZONE: Final[Mapping[Kind, Kind]] = {Kind.LOCAL_TIMESTAMP: Kind.TIMESTAMP, Kind.LOCAL_TIME: Kind.TIME}
_DECODERS: Final[Mapping[type, msgspec.json.Decoder[Any]]] = {
    dict: msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None]),
    list: msgspec.json.Decoder(list[list[msgspec.Raw] | None]),
}


class Documents(ColumnBuilder[msgspec.Raw]):
    """Columns of one batch of records, of which ``texts`` has the JSON.

    ``changes`` are by row with the path of each, ``cuts`` are the row and the field of each time that was cut to the
    microsecond, ``dropped`` the row and the path of each property without a column, and ``undeclared`` counts these by
    the path without indexes.

    The members of properties called as one of ``lifted`` are additional properties of the object that has them. Without
    ``keeps_local`` a time with a zone is converted to UTC though its type has none.
    """

    null = _NOTHING

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
        parsed, kind = find_parsed_type(record), pa.struct(fields)
        parts = parse_plain(join_documents(self._texts), parsed) if parsed is not None else []
        numbers = [part.numbers for part in parts]
        built = [self._convert_objects(record, kind, part.documents, locate_rows(part.numbers)) for part in parts]
        others = np.setdiff1d(np.arange(len(self._texts)), np.concatenate([_NONE, *numbers]), assume_unique=True)
        if len(others) or not parts:
            locate = locate_rows(others)
            built.append(self.build_members(record, kind, self._open_documents(others, locate), locate))
        if len(built) == 1:
            return built[0]
        order = pa.array(np.argsort(np.concatenate([*numbers, others]), kind="stable"))
        return [pa.concat_arrays(arrays).take(order) for arrays in zip(*built, strict=True)]

    def _open_documents(self, rows: Offsets, locate: Locate) -> Objects[msgspec.Raw]:
        """Open the documents of some rows, and note their repeated keys."""
        texts = compact_texts(self._texts if len(rows) == len(self._texts) else self._texts.take(pa.array(rows)))
        documents = texts.cast(pa.binary()).to_pylist()
        objects = [open_object(text) for text in documents]
        self._note_repeated(objects, documents, locate)
        return objects

    def _convert_objects(
        self, record: Record, kind: pa.StructType, objects: pa.StructArray, locate: Locate
    ) -> list[pa.Array]:
        """Convert the members of parsed objects; note those that are not declared."""
        members = {field.name: objects.field(index) for index, field in enumerate(objects.type)}
        for name in members.keys() - {name for name, _ in record.fields}:
            for position in np.flatnonzero(members[name].is_valid().to_numpy(zero_copy_only=False)).tolist():
                self._note_dropped(locate, position, name)
        return [
            self._convert(t, field.type, members[name], locate_below(locate, name))
            for (name, t), field in zip(record.fields, kind, strict=False)
        ]

    def _convert(self, t: DocumentType, kind: pa.DataType, array: pa.Array, locate: Locate) -> pa.Array:
        """Convert parsed values to the type of a column."""
        if isinstance(t, Record):
            children = self._convert_objects(t, kind, array, locate)
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
        if isinstance(t, Items):
            offsets = array.offsets.to_pylist() if len(array) else [0]
            values = self._convert(t.item, kind.value_type, array.values, locate_inside(locate, offsets))
            return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
        assert isinstance(t, Leaf)
        if not pt.is_string(array.type):
            return array
        return self._note_faults(decode_texts(self._kinds.get(t.kind, t.kind), array, RECORDS.spelling), locate)

    def build_texts(self, names: Sequence[str]) -> list[pa.Array]:
        """Build the JSON text of each property; null for a record without it."""
        rows = np.arange(len(self._texts))
        locate = locate_rows(rows)
        objects = self._open_documents(rows, locate)
        self._note_undeclared(objects, names, locate)
        present = [members for members in objects if members is not None]
        columns = (
            [bytes(members[name]).decode() if name in members else None for members in present] for name in names
        )
        return [pa.array(texts, pa.string()) for texts in columns]

    def note_members(self, record: Record, kind: pa.StructType, objects: Objects[msgspec.Raw], locate: Locate) -> None:
        """See ``ColumnBuilder``."""
        if record.additional is None:
            self._note_undeclared(objects, [n for n, _ in record.fields], locate, declares_all=record.declares_all)

    def build_members(
        self, record: Record, kind: pa.StructType, objects: Objects[msgspec.Raw], locate: Locate
    ) -> list[pa.Array]:
        """Build the fields of objects, and that of their additional properties."""
        if record.additional is None:
            return super().build_members(record, kind, objects, locate)
        names = [name for name, _ in record.fields]
        objects = _take_written_names(objects, names)
        return [*super().build_members(record, kind, objects, locate), self._collect_additional(objects, names)]

    def _collect_additional(self, objects: Objects[msgspec.Raw], names: Sequence[str]) -> pa.Array:
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
        self, objects: Objects[msgspec.Raw], names: Iterable[str], locate: Locate, *, declares_all: bool = False
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
                    self._note_change(locate_below(locate, name), Fault(position, NULLED, NO_FIT))

    def _note_dropped(self, locate: Locate, position: int, name: str) -> None:
        row, steps = locate_below(locate, name)(position)
        self.dropped.append((row, write_path(steps)))
        self.undeclared[write_column_path(steps)] += 1

    def _note_repeated(self, objects: Objects[msgspec.Raw], raws: Sequence[Raw], locate: Locate) -> None:
        """Note the keys that an object has several times, of which the last value counts."""
        opened = [members for members in objects if members]
        if sum(len(raw) for raw, members in zip(raws, objects, strict=True) if members) == measure_packed(opened):
            # None is longer than its members: most records are without white space.
            return
        for position, (members, raw) in enumerate(zip(objects, raws, strict=True)):
            for name in list_repeated(raw, members) if members else ():
                self._note_change(locate_below(locate, name), Fault(position, TRUNCATED, KEY_TWICE))

    def _note_change(self, locate: Locate, fault: Fault) -> None:
        row, steps = locate(fault.position)
        self.changes.setdefault(row, []).append((write_path(steps), fault))

    def _note_fault(self, locate: Locate, fault: Fault) -> None:
        if fault.change != TRUNCATED:
            self._note_change(locate, fault)
            return
        row, steps = locate(fault.position)
        self.cuts.append((row, write_column_path(steps), fault.message))

    def build(self, t: DocumentType, kind: pa.DataType, values: Sequence[msgspec.Raw], locate: Locate) -> pa.Array:
        """Build the array of values of a type."""
        if isinstance(t, Union):
            return self._build_union(t, kind, values, locate)
        return super().build(t, kind, values, locate)

    def build_leaves(
        self, t: DocumentType, kind: pa.DataType, values: Sequence[msgspec.Raw], locate: Locate
    ) -> pa.Array:
        """See ``ColumnBuilder``."""
        assert isinstance(t, Leaf)
        return self._note_faults(decode_values(self._kinds.get(t.kind, t.kind), values, RECORDS), locate)

    def _note_faults(self, decoded: Decoded, locate: Locate) -> pa.Array:
        for fault in decoded.faults:
            self._note_fault(locate, fault)
        return decoded.array

    def _build_union(self, union: Union, kind: pa.DataType, raws: Sequence[msgspec.Raw], locate: Locate) -> pa.Array:
        chosen = [choose_branch(union, bytes(raw)) for raw in raws]
        for position, (raw, name) in enumerate(zip(raws, chosen, strict=True)):
            if name is None and bytes(raw) != NULL:
                self._note_fault(locate, Fault(position, NULLED, NO_FIT))
        children = [pa.array([name or "" for name in chosen], pa.string())]
        for (name, branch_type), field in zip(union.branches, list(kind)[1:], strict=True):
            mine = [raw if picked == name else _NOTHING for raw, picked in zip(raws, chosen, strict=True)]
            children.append(self.build(branch_type, field.type, mine, locate))
        mask = pa.array([name is None for name in chosen], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)

    def open_values(
        self, expected: type, kind: pa.DataType, values: Sequence[msgspec.Raw], locate: Locate
    ) -> Sequence[Any]:
        """Open all values at once, or one by one if some are of another kind."""
        opened: Sequence[Any]
        try:
            opened = _DECODERS[expected].decode(make_list(values))
        except msgspec.MsgspecError:
            opened = [self._open_one(expected, bytes(raw), locate, position) for position, raw in enumerate(values)]
        if expected is dict:
            self._note_repeated(opened, values, locate)
        return opened

    def _open_one(self, expected: type, raw: bytes, locate: Locate, position: int) -> Any:
        try:
            return OPENERS[expected].decode(raw)
        except msgspec.MsgspecError:
            self._note_fault(locate, Fault(position, NULLED, NO_FIT))
            return None


def _take_written_names(objects: Objects[msgspec.Raw], names: Sequence[str]) -> Objects[msgspec.Raw]:
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
