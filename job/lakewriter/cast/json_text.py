"""Parse one JSON document exactly by RFC 8259, and bound how deep it nests before anything decodes it.

Numbers keep their text, and ambiguous documents are refused. A decoder calls itself once a level and ends with
RecursionError where the interpreter's limit is reached: at another depth on another thread, and as no error of the
value. So one depth is decided on here, for files, messages and texts alike, and room is made to decode it.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

LEVELS: Final = 994
"""Objects and arrays inside one another that a document may have, itself included.

Jackson, which Spark and Athena read JSON with, takes 1,000; a message and a line of a file put up to six around it.
"""
MESSAGE_LEVELS: Final = LEVELS + 2
"""An Airbyte message may nest two levels deeper than its record's data."""

_FRAMES: Final = 4000
"""The interpreter's recursion limit is four times what a document takes, as a caller may be a thousand calls deep, and
a walk through values takes more than one call a level.
"""
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)', re.DOTALL)
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_OPENS: Final = ord("[")
_ROUNDS: Final = 20
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))

sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))


def is_too_deep(text: str | bytes, levels: int = LEVELS) -> bool:
    """Return whether JSON text nests more than so many levels; text that is no JSON may be either."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    rest = _STRINGS.sub(b"", raw).translate(_AS_ARRAYS, _OTHERS)
    rounds = min(_ROUNDS, levels)
    for _ in range(rounds):
        # The innermost of all branches: what is wide and not deep is empty soon.
        rest = rest.replace(b"[]", b"")
    level = rounds
    for mark in rest:
        level += 1 if mark == _OPENS else -1
        if level > levels:
            return True
    return False


def describe_depth(levels: int = LEVELS) -> str:
    """Return the fault of a text that nests too deep."""
    return f"it nests more than {levels} levels deep"


def cut_below(text: bytes, levels: int) -> bytes:
    """Return JSON text with null for all that lies deeper than so many levels."""
    pieces: list[bytes] = []
    level = end = 0
    for match in _PARTS.finditer(text):
        mark = match[0]
        if mark in b"[{":
            level += 1
            if level == levels + 1:
                pieces += [text[end : match.start()], b"null"]
        elif mark in b"]}":
            if level == levels + 1:
                end = match.end()
            level -= 1
    return b"".join([*pieces, text[end:]]) if level <= levels else b"".join(pieces)


_PARTS: Final = re.compile(_STRINGS.pattern + rb"|[\[\]{}]", re.DOTALL)


def require_shallow(text: str | bytes) -> str | bytes:
    """Return ``text``, which a decoder takes; ``ValueError`` if it nests too deep for one."""
    if is_too_deep(text):
        raise ValueError(describe_depth())
    return text


_SHOWN: Final = 40
ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Escapes from left to right. The group is a lone half of a pair, as in a text that was cut inside an emoji."""
_MESSAGES: Final = {
    "Expecting value": "no value",
    "Expecting property name enclosed in double quotes": "no key in double quotes",
    "Expecting ':' delimiter": "no ':'",
    "Expecting ',' delimiter": "neither ',' nor the end of the object or array",
    "Unterminated string starting at": "a text without its closing quote",
    "Invalid control character at": "a control character that is not written as an escape,",
}
"""The messages of Python's parser, and ours in their stead; a position follows."""


class DocumentError(ValueError):
    """A fault of a document, whose text completes "it is no document: "."""


class NumberText(str):
    """A number as it is written."""

    __slots__ = ()


def parse_document(raw: bytes, *, takes_nan: bool = False) -> Any:
    """Return the value of a JSON text: objects as dicts, numbers as their text. Raise ``DocumentError`` for other
    texts.

    With ``takes_nan`` ``NaN``, ``Infinity`` and ``-Infinity`` are numbers, as Spark's option defines it.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(f"byte {raw[error.start]:#04x} at its byte {error.start} is not UTF-8") from error
    if b"\\u" in raw and (half := next((match[1] for match in ESCAPES.finditer(raw) if match[1]), None)):
        raise DocumentError(f"\\{half.decode()} is half of a surrogate pair, which is no character")
    if is_too_deep(raw):
        raise DocumentError(describe_depth())
    try:
        return (_LENIENT if takes_nan else _STRICT).decode(text)
    except json.JSONDecodeError as error:
        raise DocumentError(_describe(error, text)) from error


def describe_value(value: Any) -> str:
    """Return the kind of a value, in words for a user."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = write_text(value) if isinstance(value, (bool, NumberText)) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def write_text(value: Any) -> str:
    """Return the compact JSON text of a value, numbers with their digits and keys in their order."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, dict):
        mark = "{"
        for key, member in value.items():
            parts.append(f"{mark}{json.dumps(key, ensure_ascii=False)}:")
            _write(member, parts)
            mark = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        mark = "["
        for member in value:
            parts.append(mark)
            _write(member, parts)
            mark = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(value if isinstance(value, NumberText) else json.dumps(value, ensure_ascii=False))


def _describe(error: json.JSONDecodeError, text: str) -> str:
    position = f"character {error.pos + 1}"
    if error.msg == "Extra data":
        behind = text[error.pos : error.pos + _SHOWN]
        return f"behind the document, at {position}, is {behind!r}"
    if error.pos >= len(text.rstrip()):
        return f"it breaks off at {position}"
    return f"there is {_MESSAGES.get(error.msg, error.msg)} at {position}"


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DocumentError(f"the key {describe_value(twice)} is twice in one object")
    return made


def _refuse_constant(text: str) -> None:
    raise DocumentError(f"{text} is no number of JSON")


def _make_decoder(parse_constant: Any) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_make_object, parse_float=NumberText, parse_int=NumberText, parse_constant=parse_constant
    )


_STRICT: Final = _make_decoder(_refuse_constant)
_LENIENT: Final = _make_decoder(NumberText)
