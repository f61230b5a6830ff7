"""Decode JSON values of one kind into Arrow columns, and choose the branch of a union that keeps a value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.json_text import require_shallow
from lakewriter.cast.kind_values import (
    ARROW,
    Parsed,
    parse_json_boolean,
    parse_json_integer,
    parse_json_number,
    parse_text,
    parse_usual,
)
from lakewriter.cast.spelling_table import LENIENT, MORE_THAN_ZERO, RFC_3339, MisfitError, Spelling
from lakewriter.documents.compact_text import rewrite_string
from lakewriter.documents.nesting import NULL, OPENERS, Raw, open_object
from lakewriter.documents.types import DocumentType, Items, Leaf, Record, Union
from lakewriter.documents.value_changes import CUT, CUT_TO_DAY, NO_FIT, NULLED, TOO_LARGE, TRUNCATED, Fault
from lakewriter.spec.collection import Kind


@dataclass(frozen=True)
class DecodingRules:
    """The rules in which kinds of documents differ.

    ``spelling`` is that of texts. With ``any_text`` a string column takes the JSON text of any other value,
    a column of numbers takes one from a string, and JSON comes without white space already; otherwise both are refused,
    and white space is left out here.
    """

    spelling: Spelling
    any_text: bool


RECORDS: Final = DecodingRules(LENIENT, any_text=True)
"""The documents are records of Airbyte's sources, whose destinations turn every value but strings into text.

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""
COLLECTION: Final = DecodingRules(RFC_3339, any_text=False)
"""The documents are a collection's, which its JSON Schema has validated."""


@dataclass(frozen=True)
class Decoded:
    """A column, in which a value that does not fit is null, and its faults."""

    array: pa.Array
    faults: Sequence[Fault] = ()


_STRINGS: Final = msgspec.json.Decoder(list[str | None])
_NATIVE: Final[dict[Kind, msgspec.json.Decoder[Any]]] = {
    Kind.INTEGER: msgspec.json.Decoder(list[int | None]),
    Kind.NUMBER: msgspec.json.Decoder(list[float | None]),
    Kind.BOOLEAN: msgspec.json.Decoder(list[bool | None]),
    Kind.STRING: _STRINGS,
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
"""By the kind of a number, the kind that reads it from a string."""
_QUOTED: Final = (Kind.MIXED_INTEGER, Kind.MIXED_NUMBER)
_NO_NUMBERS: Final = ("NaN", "Infinity")
"""A string column of numbers may hold these in a collection; no number may be one in a record."""


_TEXTS: Final = (Leaf(Kind.STRING), Leaf(Kind.JSON))
"""Branches that take any text."""


def decode_values(kind: Kind, raws: Sequence[Raw], rules: DecodingRules) -> Decoded:
    """Decode JSON values into a column."""
    if kind is Kind.TEXT:
        return _decode_each(kind, raws, lambda raw: (_unquote(bytes(raw)), False))
    if not kind.scalar and not rules.any_text:
        compact = (None if raw == NULL else _strip_whitespace(bytes(raw)) for raw in raws)
        return Decoded(pa.array(compact, pa.string()))
    if kind is Kind.JSON:
        written = pa.array([bytes(raw).decode() for raw in raws], pa.string())
        return Decoded(pc.if_else(pc.equal(written, "null"), pa.scalar(None, pa.string()), written))
    if kind in _NATIVE and (array := _decode_native(kind, raws)) is not None:
        return Decoded(array)
    if kind in _NATIVE or kind in _NUMBERS or not kind.scalar or kind is Kind.VALUE:
        return _decode_each(kind, raws, lambda raw: _decode_value(kind, bytes(raw), rules))
    try:
        texts = pa.array(_STRINGS.decode(make_list(raws)), pa.string())
    except msgspec.MsgspecError:
        return _decode_each(kind, raws, lambda raw: _decode_value(kind, bytes(raw), rules))
    return decode_texts(kind, texts, rules.spelling)


def _decode_native(kind: Kind, raws: Sequence[Raw]) -> pa.Array | None:
    """Decode values of JSON's own types together; None if one does not fit."""
    try:
        values = _NATIVE[kind].decode(make_list(raws))
        array = pa.array(values, ARROW[kind])
    except (msgspec.MsgspecError, OverflowError, pa.ArrowInvalid):
        return None
    return None if kind is Kind.NUMBER and _has_vanished(values, raws) else array


def _has_vanished(values: Sequence[float | None], raws: Sequence[Raw]) -> bool:
    """Return True if a number that is not zero is one as a double."""
    pairs = zip(values, raws, strict=True)
    return any(value == 0 and MORE_THAN_ZERO.match(bytes(raw).decode()) for value, raw in pairs)


def decode_texts(kind: Kind, texts: pa.Array, spelling: Spelling) -> Decoded:
    """Decode plain texts into the column of a scalar kind."""
    if kind is Kind.STRING:
        return Decoded(texts)
    kind = _AS_TEXT.get(kind, kind)
    usual = parse_usual(kind, texts)
    if usual.null_count == texts.null_count:
        return Decoded(usual)
    is_other = pc.and_(texts.is_valid(), usual.is_null())
    others = _decode_each(kind, texts.filter(is_other).to_pylist(), lambda text: parse_text(kind, text, spelling))
    if usual.null_count == len(usual) and not texts.null_count:
        return others
    rows = pc.indices_nonzero(is_other).to_pylist()
    faults = [replace(fault, position=rows[fault.position]) for fault in others.faults]
    return Decoded(pc.replace_with_mask(usual, is_other, others.array), faults)


def decode_nested_texts(kind: Kind, texts: pa.Array, rules: DecodingRules) -> Decoded:
    """Decode objects or arrays that a source has as JSON text into a column."""
    raws = [None if text is None else text.strip().encode() for text in texts.to_pylist()]

    def decode(raw: bytes) -> Parsed:
        require_shallow(raw)
        try:
            OPENERS[list if kind is Kind.ARRAY else dict].decode(raw)
        except msgspec.MsgspecError as error:
            raise MisfitError(f"it is not JSON text of one ({error})") from error
        return _decode_value(kind, raw, rules)

    return _decode_each(kind, raws, decode)


def _decode_each(kind: Kind, values: Sequence[Any], decode: Callable[[Any], Parsed]) -> Decoded:
    decoded: list[Any] = []
    faults: list[Fault] = []
    for position, value in enumerate(values):
        parsed, is_cut = None, False
        try:
            if value is not None:
                parsed, is_cut = decode(value)
        except MisfitError as error:
            faults.append(Fault(position, NULLED, TOO_LARGE if error.is_beyond else NO_FIT, str(error)))
        except ValueError as error:
            faults.append(Fault(position, NULLED, NO_FIT, str(error)))
        if is_cut:
            faults.append(Fault(position, TRUNCATED, TOO_LARGE, CUT_TO_DAY if kind is Kind.DATE else CUT))
        decoded.append(parsed)
    return Decoded(pa.array(decoded, ARROW[kind]), faults)


def _decode_value(kind: Kind, raw: bytes, rules: DecodingRules) -> Parsed:
    if raw == NULL:
        return None, False
    is_string = raw.startswith(b'"')
    if kind is Kind.VALUE:
        return _normalise_escapes(raw), False
    if not kind.scalar:
        return raw.decode() if rules.any_text else _strip_whitespace(raw), False
    if kind is Kind.STRING and rules.any_text and not is_string:
        return raw.decode(), False
    if kind in _NUMBERS and not (is_string and (kind in _QUOTED or (rules.any_text and kind in _AS_TEXT))):
        return _NUMBERS[kind](raw), False
    try:
        text = msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError as error:
        raise MisfitError(str(error)) from error
    if kind is Kind.NUMBER and text.endswith(_NO_NUMBERS):
        raise MisfitError("it is not a number")
    return (text, False) if kind is Kind.STRING else parse_text(_AS_TEXT.get(kind, kind), text, rules.spelling)


def _strip_whitespace(raw: bytes) -> str:
    """Return JSON text without white space, its numbers and the order of its members as they were."""
    return msgspec.json.format(raw, indent=-1).decode()


def _unquote(raw: bytes) -> str | None:
    """Return a string's content, None for null, and JSON text without white space for anything else."""
    if raw == NULL:
        return None
    return str(msgspec.json.decode(raw, type=str)) if raw.startswith(b'"') else _strip_whitespace(raw)


def _normalise_escapes(raw: bytes) -> str:
    """Return a string, number or boolean as JSON text.

    A string has no more escapes than it needs, so that one value has one text; a number keeps its digits.
    """
    return (rewrite_string(raw) if b"\\" in raw else raw).decode()


def choose_branch(union: Union, raw: bytes) -> str | None:
    """Return the branch that keeps all of a value, else one that takes it as text, else one that takes a part.

    None for null or no branch.
    """
    if raw == NULL:
        return None
    name, shape = {b"{": ("object", Record), b"[": ("array", Items)}.get(raw[:1], ("", Leaf))
    branches = dict(union.branches)
    if union.takes_first and raw.startswith(b'"'):
        taking = (branch for branch, t in union.branches if _keeps(t, raw) or _takes_quoted(t, raw))
        if (first := next(taking, None)) is not None:
            return first
    texts = [branch for branch, t in branches.items() if t in _TEXTS]
    typed = [branch for branch, t in branches.items() if isinstance(t, shape) and t not in _TEXTS]
    if whole := next((branch for branch in typed if _keeps(branches[branch], raw)), None):
        return whole
    is_string = raw.startswith(b'"')
    free = ["string"] if is_string else [name, "unknown"]
    some = [branch for branch in typed if shape is not Leaf or _takes_quoted(branches[branch], raw)]
    # Text of any other name holds what has no branch of its own.
    ordered = [
        *(branch for branch in free if branch in texts),
        *some,
        *sorted(texts, key=lambda branch: branch != "string"),
    ]
    return next(iter(ordered), None)


def _keeps(t: DocumentType, raw: bytes) -> bool:
    """Return whether a column of the type keeps a value as it is, all of its properties included."""
    if raw == NULL:
        return True
    if isinstance(t, Leaf):
        is_string = raw.startswith(b'"')
        if is_string and t.kind in _AS_TEXT:
            return False
        return (t.kind is not Kind.STRING or is_string) and _is_kept(t.kind, raw)
    if isinstance(t, Union):
        return any(_keeps(branch, raw) for _, branch in t.branches)
    assert isinstance(t, Items | Record)
    try:
        if isinstance(t, Items):
            return all(_keeps(t.item, bytes(item)) for item in msgspec.json.decode(raw, type=list[msgspec.Raw]))
        fields = dict(t.fields)
        members = open_object(raw)
    except msgspec.MsgspecError:
        return False
    return all(
        _keeps(fields[name], bytes(member)) if name in fields else t.additional is not None
        for name, member in members.items()
    )


def _takes_quoted(t: DocumentType, raw: bytes) -> bool:
    """Return whether a column of numbers takes a value from a string."""
    return isinstance(t, Leaf) and t.kind in _AS_TEXT and raw.startswith(b'"') and _is_kept(t.kind, raw)


def _is_kept(kind: Kind, raw: bytes) -> bool:
    try:
        return not _decode_value(kind, raw, RECORDS)[1]
    except MisfitError:
        return False


def read_text(raw: bytes) -> str | None:
    """Return the text of any value; None for a string that cannot be read."""
    try:
        text: str | None = _decode_value(Kind.STRING, raw, RECORDS)[0]
    except MisfitError:
        return None
    return text


def make_list(raws: Sequence[Raw]) -> bytes:
    """Return the JSON list of values."""
    return b"[" + b",".join(raws) + b"]"
