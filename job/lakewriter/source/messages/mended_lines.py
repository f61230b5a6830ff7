"""Mend or refuse lines that a source wrote as messages, but that are not JSON or break the protocol.

If only values are at fault, they are replaced, and the record's ``changes`` name them. Any other line that looks like a
RECORD or a STATE fails its stream: if it were left out, a record would be lost behind the state that is saved after it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from lakewriter.cast.json_text import ESCAPES, MESSAGE_LEVELS, cut_below, describe_depth, is_too_deep
from lakewriter.documents.value_changes import NO_FIT, NULLED, TRUNCATED
from lakewriter.source.messages.lines import MESSAGE, Message, Meta, Record, StreamState, is_object
from lakewriter.spec.stream import StreamKey, stream_key

_BEGINS: Final = re.compile(rb'\s*\{\s*"(?:type"\s*:\s*"(RECORD|STATE)"|(record|state)"\s*:\s*\{)')
_PARTS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN', re.DOTALL)
"""Strings, and the numbers that Python's ``json`` writes though JSON does not have them."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
_CUT: Final = {"change": TRUNCATED, "reason": NO_FIT}
_NO_NUMBER: Final = {"change": NULLED, "reason": NO_FIT}
_CONSTANT: Final = object()
_NULL: Final = msgspec.Raw(b"null")

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True)
class Odd:
    """An odd line: its ``message`` with the paths that were mended, or the ``fault`` of a RECORD or STATE.

    ``stream`` is the stream with the fault, None if the line does not name it; ``is_record`` is true for a RECORD. A
    line that is not a message has neither.
    """

    message: Message | None = None
    mended: tuple[str, ...] = ()
    stream: StreamKey | None = None
    fault: str = ""
    is_record: bool = False


class _Identity(msgspec.Struct):
    stream: str
    namespace: str | None = None


class _State(msgspec.Struct):
    stream: StreamState


def parse_odd_line(line: bytes) -> Odd:
    """Parse a line that ``parse_line`` does not accept as a message."""
    if not line.lstrip().startswith(b"{"):
        return Odd()
    try:
        if is_too_deep(line, MESSAGE_LEVELS):
            return _parse_deep(line)
        fault = _find_fault(line)
        return _mend(line, fault)
    except msgspec.MsgspecError:
        begins = _BEGINS.match(line)
        return (
            Odd(fault=_find_fault(line), is_record=(begins[1] or begins[2]).upper() == b"RECORD") if begins else Odd()
        )


def is_cut_off(line: bytes) -> bool:
    """Return True if a line is only the beginning of a JSON object."""
    if not line.lstrip().startswith(b"{"):
        return False
    if is_too_deep(line, MESSAGE_LEVELS):
        return False
    try:
        msgspec.json.decode(line.decode(errors="replace"))
    except msgspec.MsgspecError as error:
        return "truncated" in str(error)
    return False


def _find_fault(line: bytes) -> str:
    if is_too_deep(line, MESSAGE_LEVELS):
        return describe_depth(MESSAGE_LEVELS)
    try:
        MESSAGE.decode(line)
        line.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return str(error)
    return "its data is not an object"


def _parse_deep(line: bytes) -> Odd:
    """Return the fault of a RECORD or STATE that is too deep for a decoder: its outer levels name the stream."""
    outer = _MEMBERS.decode(cut_below(line, 5))
    kind = bytes(outer.get("type", _NULL))
    if kind == b'"RECORD"':
        identity = msgspec.json.decode(outer.get("record", _NULL), type=_Identity)
        stream = stream_key(identity.namespace, identity.stream)
        return Odd(stream=stream, fault=f"its data is refused: {describe_depth()}", is_record=True)
    return (
        Odd(stream=_find_stream(outer.get("state", _NULL)), fault=describe_depth(MESSAGE_LEVELS))
        if kind == b'"STATE"'
        else Odd()
    )


def _mend(line: bytes, fault: str) -> Odd:
    text = _PARTS.sub(_replace_part, line.decode(errors="replace").encode())
    outer = _MEMBERS.decode(text)
    kind = bytes(outer.get("type", _NULL))
    if kind == b'"RECORD"':
        return _mend_record(line, outer.get("record", _NULL), fault, changed=text != line)
    if kind == b'"STATE"':
        # No value of a state is replaced: it goes back to the source, which would take it for what it wrote.
        return Odd(stream=_find_stream(outer.get("state", _NULL)), fault=fault)
    try:
        return Odd(MESSAGE.decode(text))
    except msgspec.MsgspecError:
        return Odd()


def _mend_record(line: bytes, record: msgspec.Raw, fault: str, *, changed: bool) -> Odd:
    try:
        identity = msgspec.json.decode(record, type=_Identity)
    except msgspec.MsgspecError:
        return Odd()
    stream, members = stream_key(identity.namespace, identity.stream), _MEMBERS.decode(record)
    data = members.get("data", _NULL)
    try:
        values = _load_values(line.decode()) if changed else None
    except UnicodeDecodeError:
        return Odd(stream=stream, fault=fault, is_record=True)
    if not is_object(data):
        return Odd(stream=stream, fault=fault, is_record=True)
    changes = list(_list_changes(values["record"]["data"], "")) if values else []
    meta = _merge_changes(members.get("meta", _NULL), changes)
    stated = members.get("emitted_at", _NULL)
    emitted_at = _parse_milliseconds(stated)
    mended = [change["field"] for change in changes]
    if emitted_at is None and bytes(stated) != b"null":
        mended.append("emitted_at")
    return Odd(Message("RECORD", Record(identity.stream, data, emitted_at, identity.namespace, meta)), tuple(mended))


def _replace_part(match: re.Match[bytes]) -> bytes:
    return ESCAPES.sub(_replace_half_pair, match[0]) if match[0].startswith(b'"') else b"null"


def _replace_half_pair(match: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if match[1] else match[0]


def _load_values(line: str) -> Any:
    """Load the line with Python's decoder. Numbers do not matter here, and may have too many digits for it."""
    return json.loads(
        line, strict=False, parse_constant=lambda _: _CONSTANT, parse_int=lambda _: 0, parse_float=lambda _: 0
    )


def _list_changes(value: Any, path: str) -> Iterator[dict[str, str]]:
    """Yield the paths at which the text is not what the source wrote."""
    if value is _CONSTANT:
        yield {"field": path, **_NO_NUMBER}
    elif isinstance(value, str) and _HALVES.search(value):
        yield {"field": path, **_CUT}
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _list_changes(item, f"{path}.[{position}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            plain = _HALVES.sub("\ufffd", name)
            full = f"{path}.{plain}" if path else plain
            if plain != name:
                yield {"field": full, **_CUT}
            yield from _list_changes(member, full)


def _merge_changes(supplied: msgspec.Raw, changes: list[dict[str, str]]) -> Meta | None:
    """Return the changes that the source names, then those that were made here."""
    try:
        meta = msgspec.json.decode(supplied, type=Meta | None)
    except msgspec.MsgspecError:
        meta = None
    if not changes:
        return meta
    entries: list[msgspec.Raw | dict[str, str]] = []
    if meta is not None and bytes(meta.changes).startswith(b"["):
        entries += msgspec.json.decode(meta.changes, type=list[msgspec.Raw])
    return Meta(msgspec.Raw(msgspec.json.encode([*entries, *changes])))


def _parse_milliseconds(raw: msgspec.Raw) -> int | None:
    """Parse a time in milliseconds, quoted or not; None if the text is not a number of 64 bits."""
    try:
        milliseconds = int(float(bytes(raw).strip(b'"')))
    except (ValueError, OverflowError):
        return None
    return milliseconds if -(2**63) <= milliseconds < 2**63 else None


def _find_stream(state: msgspec.Raw) -> StreamKey | None:
    try:
        return msgspec.json.decode(state, type=_State).stream.stream_descriptor.key
    except msgspec.MsgspecError:
        return None
