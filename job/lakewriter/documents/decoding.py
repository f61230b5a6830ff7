"""Batches of JSON objects as typed columns: every level of a document is decoded for all rows at once."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from lakewriter.documents.document_types import DocumentType, Items, Kind, Leaf, Record, Union
from lakewriter.documents.leaves import NO_FIT, NULL, NULLED, Change, Raw, column, value

Place = Callable[[int], tuple[int, str]]
"""The row and the path of the value at a position."""
Objects = Sequence[dict[str, msgspec.Raw] | None]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_ARRAYS: Final = msgspec.json.Decoder(list[list[msgspec.Raw] | None])


class Documents:
    """Builds the columns of one batch; ``changes`` are by row, ``undeclared`` counts properties by path."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.objects: Objects = [_OBJECT.decode(text) for text in texts]
        self.changes: dict[int, list[tuple[str, Change]]] = {}
        self.undeclared: Counter[str] = Counter()
        self.dropped: list[tuple[int, str]] = []

    def columns(self, record: Record, fields: Iterable[pa.Field], *, additional: bool = False) -> list[pa.Array]:
        """One array for each field of the record; with ``additional`` one more for what else the root has."""
        names = [name for name, _ in record.fields]
        if not additional:
            self._note_undeclared(self.objects, names, lambda row: (row, ""))
        found = [
            self._build(t, field, [each.get(name, NULL) for each in self.objects if each is not None], _at_root(name))
            for (name, t), field in zip(record.fields, fields, strict=True)
        ]
        return [*found, self._additional(names)] if additional else found

    def fragments(self, names: Sequence[str]) -> list[pa.Array]:
        """The JSON text of each property; null where a record has none."""
        self._note_undeclared(self.objects, names, lambda row: (row, ""))
        present = [each for each in self.objects if each is not None]
        found = ([bytes(each[name]).decode() if name in each else None for each in present] for name in names)
        return [pa.array(texts, pa.string()) for texts in found]

    def _additional(self, names: Sequence[str]) -> pa.Array:
        """The root's properties without a column of their own, as text."""
        known = set(names)
        maps = [
            [(name, value(Kind.STRING, bytes(raw))[0]) for name, raw in each.items() if name not in known]
            for each in self.objects
            if each is not None
        ]
        return pa.array(maps, pa.map_(pa.string(), pa.string()))

    def _note_undeclared(self, objects: Objects, names: Iterable[str], place: Place) -> None:
        unknown = set[str]().union(*(each for each in objects if each)).difference(names)
        if not unknown:
            return
        for position, each in enumerate(objects):
            for name in unknown.intersection(each or ()):
                row, path = place(position)
                full = f"{path}.{name}" if path else name
                self.dropped.append((row, full))
                self.undeclared[_without_numbers(full)] += 1

    def _changed(self, place: Place, position: int, change: Change) -> None:
        row, path = place(position)
        self.changes.setdefault(row, []).append((path, change))

    def _build(self, t: DocumentType, field: pa.Field, raws: Sequence[Raw], place: Place) -> pa.Array:
        if isinstance(t, Leaf):
            return self._leaf(t.kind, field.type, raws, place)
        if isinstance(t, Record):
            return self._record(t, field.type, raws, place)
        if isinstance(t, Items):
            return self._items(t, field.type, raws, place)
        return self._union(t, field.type, raws, place)

    def _leaf(self, kind: Kind, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        whole = column(kind, raws)
        if whole is not None:
            return whole
        values = []
        for position, raw in enumerate(raws):
            found, change = value(kind, bytes(raw))
            values.append(found)
            if change is not None:
                self._changed(place, position, change)
        return pa.array(values, t)

    def _record(self, record: Record, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        objects = self._decoded(_OBJECTS, dict[str, msgspec.Raw], raws, place)
        self._note_undeclared(objects, [name for name, _ in record.fields], place)
        children = []
        for (name, own), field in zip(record.fields, t, strict=True):
            inner = [NULL if each is None else each.get(name, NULL) for each in objects]
            children.append(self._build(own, field, inner, _below(place, name)))
        mask = pa.array([each is None for each in objects], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _items(self, items: Items, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        arrays = self._decoded(_ARRAYS, list[msgspec.Raw], raws, place)
        offsets = [0]
        for each in arrays:
            offsets.append(offsets[-1] + len(each or ()))
        flat = [raw for each in arrays for raw in each or ()]
        values = self._build(items.item, t.value_field, flat, _inside(place, offsets))
        mask = pa.array([each is None for each in arrays], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=t, mask=mask)

    def _union(self, union: Union, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        chosen = [_branch_of(union, bytes(raw)) for raw in raws]
        for position, (raw, name) in enumerate(zip(raws, chosen, strict=True)):
            if name is None and bytes(raw) != b"null":
                self._changed(place, position, Change(NULLED, NO_FIT))
        children = [pa.array([name or "" for name in chosen], pa.string())]
        for (name, own), field in zip(union.branches, list(t)[1:], strict=True):
            mine = [raw if picked == name else NULL for raw, picked in zip(raws, chosen, strict=True)]
            children.append(self._build(own, field, mine, place))
        mask = pa.array([name is None for name in chosen], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _decoded(self, decoder: msgspec.json.Decoder[Any], kind: Any, raws: Sequence[Raw], place: Place) -> Any:
        """All values at once, or one by one where some are of another kind."""
        try:
            return decoder.decode(b"[" + b",".join(raws) + b"]")
        except msgspec.MsgspecError:
            return [self._one(kind, bytes(raw), place, position) for position, raw in enumerate(raws)]

    def _one(self, kind: Any, raw: bytes, place: Place, position: int) -> Any:
        try:
            return None if raw == b"null" else msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError:
            self._changed(place, position, Change(NULLED, NO_FIT))
            return None


def _branch_of(union: Union, raw: bytes) -> str | None:
    """The branch that keeps all of a value, else one that takes it as text, else one that takes some of it; None for
    null or no branch."""
    if raw == b"null":
        return None
    name, shape = {b"{": ("object", Record), b"[": ("array", Items)}.get(raw[:1], ("", Leaf))
    branches = dict(union.branches)
    texts = [own for own, t in branches.items() if t in _TEXTS]
    typed = [own for own, t in branches.items() if isinstance(t, shape) and t not in _TEXTS]
    if whole := next((own for own in typed if _holds(branches[own], raw)), None):
        return whole
    is_string = raw.startswith(b'"')
    free = ["string"] if is_string else [name, "unknown"]
    some = typed if shape is not Leaf else []
    # Text of any other name holds what has no branch of its own.
    ordered = [*(own for own in free if own in texts), *some, *sorted(texts, key=lambda own: own != "string")]
    return next(iter(ordered), None)


_TEXTS: Final = (Leaf(Kind.STRING), Leaf(Kind.JSON))


def _holds(t: DocumentType, raw: bytes) -> bool:
    """Whether a column of the type keeps a value as it is, all of its properties included."""
    if raw == b"null":
        return True
    if isinstance(t, Leaf):
        return (t.kind is not Kind.STRING or raw.startswith(b'"')) and value(t.kind, raw)[1] is None
    if isinstance(t, Union):
        return any(_holds(own, raw) for _, own in t.branches)
    try:
        if isinstance(t, Items):
            return all(_holds(t.item, bytes(each)) for each in msgspec.json.decode(raw, type=list[msgspec.Raw]))
        fields = dict(t.fields)
        members = _OBJECT.decode(raw)
    except msgspec.MsgspecError:
        return False
    return all(name in fields and _holds(fields[name], bytes(each)) for name, each in members.items())


def _at_root(name: str) -> Place:
    return lambda row: (row, name)


def _below(place: Place, name: str) -> Place:
    def below(position: int) -> tuple[int, str]:
        row, path = place(position)
        return row, f"{path}.{name}"

    return below


def _inside(place: Place, offsets: Sequence[int]) -> Place:
    def inside(position: int) -> tuple[int, str]:
        owner = bisect_right(offsets, position) - 1
        row, path = place(owner)
        return row, f"{path}[{position - offsets[owner]}]"

    return inside


def _without_numbers(path: str) -> str:
    """A path that does not grow with the data."""
    head, *rest = path.split("[")
    return head + "".join("[]" + part.partition("]")[2] for part in rest)
