"""Decode JSON into Arrow columns: values of one kind, and whole documents, every level for all rows at once.

Where all values of a column fit they are decoded together, and one by one where some do not.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.documents.nesting import NULL, Raw, open_object, require_shallow
from lakewriter.documents.parsing import (
    LENIENT,
    NO_FIT,
    NULLED,
    RFC_3339,
    TOO_LARGE,
    TRUNCATED,
    UNREADABLE,
    Grammar,
    Parsed,
    ParseError,
    parse_json_boolean,
    parse_json_integer,
    parse_json_number,
    parse_text,
    parse_usual,
)
from lakewriter.documents.types import ARROW, DocumentType, Items, Leaf, Record, Union
from lakewriter.spec.collection import Kind


@dataclass(frozen=True)
class Profile:
    """What kinds of documents differ in.

    ``grammar`` is that of dates and times. With ``any_text`` a string column takes the JSON text of any other value,
    and what stays JSON stays as the source wrote it; otherwise it is refused, and white space is left out of JSON.
    """

    grammar: Grammar
    any_text: bool


RECORDS: Final = Profile(LENIENT, any_text=True)
"""Of Airbyte's sources, whose destinations turn what is no string into text.

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""
COLLECTION: Final = Profile(RFC_3339, any_text=False)
"""Of a collection, whose documents its JSON Schema has validated."""


@dataclass(frozen=True)
class Fault:
    """Why the value at a position is not what the source gave: a change and a reason as Airbyte's protocol names them,
    and the reason in words."""

    position: int
    change: str
    reason: str
    message: str = ""


@dataclass(frozen=True)
class Decoded:
    """A column, in which a value that does not fit is null, and what is at fault in it."""

    array: pa.Array
    faults: Sequence[Fault] = ()


_RAWS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_STRINGS: Final = msgspec.json.Decoder(list[str | None])
_NATIVE: Final[dict[Kind, msgspec.json.Decoder[Any]]] = {
    Kind.INTEGER: msgspec.json.Decoder(list[int | None]),
    Kind.NUMBER: msgspec.json.Decoder(list[float | None]),
    Kind.BOOLEAN: msgspec.json.Decoder(list[bool | None]),
    Kind.STRING: _STRINGS,
}
_NESTED: Final[dict[Kind, msgspec.json.Decoder[Any]]] = {
    Kind.OBJECT: msgspec.json.Decoder(dict[str, msgspec.Raw] | None),
    Kind.MAP: msgspec.json.Decoder(dict[str, msgspec.Raw] | None),
    Kind.ARRAY: msgspec.json.Decoder(list[msgspec.Raw] | None),
}
_NUMBERS: Final[dict[Kind, Callable[[bytes], Any]]] = {
    Kind.INTEGER: parse_json_integer,
    Kind.NUMBER: parse_json_number,
    Kind.BOOLEAN: parse_json_boolean,
    Kind.MIXED_INTEGER: parse_json_integer,
    Kind.MIXED_NUMBER: parse_json_number,
}
_AS_TEXT: Final = {
    Kind.INTEGER: Kind.TEXT_INTEGER,
    Kind.MIXED_INTEGER: Kind.TEXT_INTEGER,
    Kind.NUMBER: Kind.TEXT_NUMBER,
    Kind.MIXED_NUMBER: Kind.TEXT_NUMBER,
}
"""What a number in a string is read as."""


def decode_values(kind: Kind, raws: Sequence[Raw], profile: Profile) -> Decoded:
    """The column of JSON values."""
    if not kind.scalar and not profile.any_text:
        compact = (None if raw == NULL else _compact(bytes(raw)) for raw in raws)
        return Decoded(pa.array(compact, pa.string()))
    if kind is Kind.JSON:
        written = pa.array([bytes(raw).decode() for raw in raws], pa.string())
        return Decoded(pc.if_else(pc.equal(written, "null"), pa.scalar(None, pa.string()), written))
    if kind in _NATIVE:
        try:
            return Decoded(pa.array(_NATIVE[kind].decode(_list_of(raws)), ARROW[kind]))
        except (msgspec.MsgspecError, OverflowError, pa.ArrowInvalid):
            return _decode_each(kind, raws, lambda raw: _decode_value(kind, bytes(raw), profile))
    if kind in _NUMBERS or not kind.scalar or kind is Kind.VALUE:
        return _decode_each(kind, raws, lambda raw: _decode_value(kind, bytes(raw), profile))
    try:
        texts = pa.array(_STRINGS.decode(_list_of(raws)), pa.string())
    except msgspec.MsgspecError:
        return _decode_each(kind, raws, lambda raw: _decode_value(kind, bytes(raw), profile))
    return decode_texts(kind, texts, profile.grammar)


def decode_texts(kind: Kind, texts: pa.Array, grammar: Grammar) -> Decoded:
    """The column of a scalar kind out of plain text."""
    if kind is Kind.STRING:
        return Decoded(texts)
    kind = _AS_TEXT.get(kind, kind)
    whole = parse_usual(kind, texts)
    if whole is not None:
        return Decoded(whole)
    return _decode_each(kind, texts.to_pylist(), lambda text: parse_text(kind, text, grammar))


def decode_nested_texts(kind: Kind, texts: pa.Array, profile: Profile) -> Decoded:
    """The column of objects or arrays that a source has as JSON text."""
    raws = [None if text is None else text.strip().encode() for text in texts.to_pylist()]

    def decode(raw: bytes) -> Parsed:
        require_shallow(raw)
        try:
            _NESTED[kind].decode(raw)
        except msgspec.MsgspecError as error:
            raise ParseError(f"it is no JSON text of one ({error})") from error
        return _decode_value(kind, raw, profile)

    return _decode_each(kind, raws, decode)


def _decode_each(kind: Kind, values: Sequence[Any], decode: Callable[[Any], Parsed]) -> Decoded:
    decoded: list[Any] = []
    faults: list[Fault] = []
    for position, value in enumerate(values):
        found, is_cut = None, False
        try:
            if value is not None:
                found, is_cut = decode(value)
        except ParseError as error:
            faults.append(Fault(position, NULLED, error.reason, str(error)))
        except ValueError as error:
            faults.append(Fault(position, NULLED, NO_FIT, str(error)))
        if is_cut:
            faults.append(Fault(position, TRUNCATED, TOO_LARGE))
        decoded.append(found)
    return Decoded(pa.array(decoded, ARROW[kind]), faults)


def _decode_value(kind: Kind, raw: bytes, profile: Profile) -> Parsed:
    if raw == NULL:
        return None, False
    is_string = raw.startswith(b'"')
    if kind is Kind.VALUE:
        return _respell(raw), False
    if not kind.scalar:
        return raw.decode() if profile.any_text else _compact(raw), False
    if kind is Kind.STRING and profile.any_text and not is_string:
        return raw.decode(), False
    if kind in _NUMBERS and not (is_string and kind in (Kind.MIXED_INTEGER, Kind.MIXED_NUMBER)):
        return _NUMBERS[kind](raw), False
    try:
        text = msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError as error:
        raise ParseError(str(error), UNREADABLE if is_string else NO_FIT) from error
    return (text, False) if kind is Kind.STRING else parse_text(_AS_TEXT.get(kind, kind), text, profile.grammar)


def _compact(raw: bytes) -> str:
    """JSON text without white space, its numbers and the order of its members as they were."""
    return msgspec.json.format(raw, indent=-1).decode()


def _respell(raw: bytes) -> str:
    """A string, number or boolean as JSON text: a string with no more escapes than it needs, so that one value has one
    text; a number with its digits."""
    if b"\\" not in raw:
        return raw.decode()
    try:
        return json.dumps(msgspec.json.decode(raw, type=str), ensure_ascii=False)
    except msgspec.MsgspecError:
        # Half of a pair: there is no character for it, and the escape says what the source wrote.
        return raw.decode()


def _list_of(raws: Sequence[Raw]) -> bytes:
    return b"[" + b",".join(raws) + b"]"


Place = Callable[[int], tuple[int, str]]
"""The row and the path of the value at a position."""
Objects = Sequence[dict[str, msgspec.Raw] | None]

_NOTHING: Final = msgspec.Raw(NULL)
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
_ARRAYS: Final = msgspec.json.Decoder(list[list[msgspec.Raw] | None])


class Documents:
    """Builds the columns of one batch of records; ``changes`` are by row with the path of each, ``undeclared`` counts
    properties by path."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.objects: Objects = [open_object(text) for text in texts]
        self.changes: dict[int, list[tuple[str, Fault]]] = {}
        self.undeclared: Counter[str] = Counter()
        self.dropped: list[tuple[int, str]] = []

    def build_columns(self, record: Record, fields: Iterable[pa.Field], *, additional: bool = False) -> list[pa.Array]:
        """One array for each field of the record; with ``additional`` one more for what else the root has."""
        names = [name for name, _ in record.fields]
        if not additional:
            self._note_undeclared(self.objects, names, lambda row: (row, ""))
        found = [
            self._decode(
                t, field, [each.get(name, _NOTHING) for each in self.objects if each is not None], _at_root(name)
            )
            for (name, t), field in zip(record.fields, fields, strict=True)
        ]
        return [*found, self._additional(names)] if additional else found

    def build_texts(self, names: Sequence[str]) -> list[pa.Array]:
        """The JSON text of each property; null where a record has none."""
        self._note_undeclared(self.objects, names, lambda row: (row, ""))
        present = [each for each in self.objects if each is not None]
        found = ([bytes(each[name]).decode() if name in each else None for each in present] for name in names)
        return [pa.array(texts, pa.string()) for texts in found]

    def _additional(self, names: Sequence[str]) -> pa.Array:
        """The root's properties without a column of their own, as text."""
        known = set(names)
        maps = [
            [(name, _text_of(bytes(raw))) for name, raw in each.items() if name not in known]
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

    def _note_fault(self, place: Place, fault: Fault) -> None:
        row, path = place(fault.position)
        self.changes.setdefault(row, []).append((path, fault))

    def _decode(self, t: DocumentType, field: pa.Field, raws: Sequence[Raw], place: Place) -> pa.Array:
        if isinstance(t, Leaf):
            return self._leaf(t.kind, raws, place)
        if isinstance(t, Record):
            return self._record(t, field.type, raws, place)
        if isinstance(t, Items):
            return self._items(t, field.type, raws, place)
        return self._union(t, field.type, raws, place)

    def _leaf(self, kind: Kind, raws: Sequence[Raw], place: Place) -> pa.Array:
        decoded = decode_values(kind, raws, RECORDS)
        for fault in decoded.faults:
            self._note_fault(place, fault)
        return decoded.array

    def _record(self, record: Record, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        objects = self._open_all(_OBJECTS, dict[str, msgspec.Raw], raws, place)
        self._note_undeclared(objects, [name for name, _ in record.fields], place)
        children = []
        for (name, own), field in zip(record.fields, t, strict=True):
            inner = [_NOTHING if each is None else each.get(name, _NOTHING) for each in objects]
            children.append(self._decode(own, field, inner, _below(place, name)))
        mask = pa.array([each is None for each in objects], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _items(self, items: Items, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        arrays = self._open_all(_ARRAYS, list[msgspec.Raw], raws, place)
        offsets = [0]
        for each in arrays:
            offsets.append(offsets[-1] + len(each or ()))
        flat = [raw for each in arrays for raw in each or ()]
        values = self._decode(items.item, t.value_field, flat, _inside(place, offsets))
        mask = pa.array([each is None for each in arrays], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=t, mask=mask)

    def _union(self, union: Union, t: pa.DataType, raws: Sequence[Raw], place: Place) -> pa.Array:
        chosen = [_branch_of(union, bytes(raw)) for raw in raws]
        for position, (raw, name) in enumerate(zip(raws, chosen, strict=True)):
            if name is None and bytes(raw) != b"null":
                self._note_fault(place, Fault(position, NULLED, NO_FIT))
        children = [pa.array([name or "" for name in chosen], pa.string())]
        for (name, own), field in zip(union.branches, list(t)[1:], strict=True):
            mine = [raw if picked == name else _NOTHING for raw, picked in zip(raws, chosen, strict=True)]
            children.append(self._decode(own, field, mine, place))
        mask = pa.array([name is None for name in chosen], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)

    def _open_all(self, decoder: msgspec.json.Decoder[Any], kind: Any, raws: Sequence[Raw], place: Place) -> Any:
        """All values at once, or one by one where some are of another kind."""
        try:
            return decoder.decode(_list_of(raws))
        except msgspec.MsgspecError:
            return [self._open_one(kind, bytes(raw), place, position) for position, raw in enumerate(raws)]

    def _open_one(self, kind: Any, raw: bytes, place: Place, position: int) -> Any:
        try:
            return None if raw == b"null" else msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError:
            self._note_fault(place, Fault(position, NULLED, NO_FIT))
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
        return (t.kind is not Kind.STRING or raw.startswith(b'"')) and _is_kept(t.kind, raw)
    if isinstance(t, Union):
        return any(_holds(own, raw) for _, own in t.branches)
    try:
        if isinstance(t, Items):
            return all(_holds(t.item, bytes(each)) for each in msgspec.json.decode(raw, type=list[msgspec.Raw]))
        fields = dict(t.fields)
        members = open_object(raw)
    except msgspec.MsgspecError:
        return False
    return all(name in fields and _holds(fields[name], bytes(each)) for name, each in members.items())


def _is_kept(kind: Kind, raw: bytes) -> bool:
    try:
        return not _decode_value(kind, raw, RECORDS)[1]
    except ParseError:
        return False


def _text_of(raw: bytes) -> str | None:
    """The text of any value; None for a string that cannot be read."""
    try:
        text: str | None = _decode_value(Kind.STRING, raw, RECORDS)[0]
    except ParseError:
        return None
    return text


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
