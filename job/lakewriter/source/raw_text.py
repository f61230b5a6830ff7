"""The bytes of text files, looked at for what Spark's readers would replace without a word.

Bytes that are not of the encoding become U+FFFD, half of a surrogate pair in JSON becomes ``?``, a number beyond the
range of a double becomes infinite: none of it can be told from what they deliver.
"""

import codecs
import heapq
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from lakewriter.documents.nesting import write_json_pointer

_BLOCK: Final = 4 * 1024 * 1024
_MOST_DIGITS: Final = 38
"""Spark's longest decimal; it reads longer integers as doubles."""
_SHOWN: Final = 40

_BOM: Final = b"\xef\xbb\xbf"

_DIGITS_AND_EXPONENTS: Final = bytes.maketrans(b"123456789+-E", b"00000000000e")
_UNUSUAL_NUMBERS: Final = (b"0" * (_MOST_DIGITS + 1), b"e000")
"""What a number that no double holds has in it, once its digits and signs are zeros."""
_REST_OF_NUMBER: Final = re.compile(rb"""([eE](?![+-]?[0-9]{3}))?[0-9.eE+-]*+([\w"'])?""")
"""From inside a number to its end. The first group is there where the exponent is short, the second where it is part
of a text, as in digests and UUIDs."""
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Escapes from left to right; the group is half of a surrogate pair alone."""
_MAYBE_HALF: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|[c-fC-F][0-9a-fA-F]{2}(?<![^\\]\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
)
"""Half of a surrogate pair without its other half beside it, or after a backslash that may take part in the escape."""
_HALF: Final = re.compile("[\ud800-\udfff]")
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NUMBERS: Final = re.compile(rb"(?<![\w.+-])-?(?:[0-9]{39,}|[0-9.]+[eE][+-]?[0-9]{3,}|[0-9]{39,}\.[0-9]+)(?![\w.])")


@dataclass(frozen=True)
class Finding:
    """What a reader would change, and the offset in the file of its first byte or of its line's."""

    offset: int
    what: str


def split_blocks(
    read: Callable[[int], bytes], place: int = 0, end: int | None = None, *, skip: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Whole lines that begin at ``place`` or later and before ``end``, many at a time, each with its offset.

    With ``skip`` the first line is another piece's.
    """
    parts: list[bytes] = []
    while block := read(_BLOCK):
        if skip:
            first = block.find(b"\n") + 1
            place += first or len(block)
            block, skip = (block[first:], False) if first else (b"", True)
        if end is not None:
            held = sum(map(len, parts))
            stop = block.find(b"\n", max(end - place - held - 1, 0)) + 1
            if place >= end or (stop and place + held + stop >= end):
                yield from _join_lines(place, [*parts, block[:stop]] if place < end else [])
                return
        cut = block.rfind(b"\n") + 1
        if cut:
            lines = b"".join([*parts, block[:cut]])
            yield place, lines
            place += len(lines)
            parts = []
        parts.append(block[cut:])
    yield from _join_lines(place, parts)


def _join_lines(place: int, parts: list[bytes]) -> Iterator[tuple[int, bytes]]:
    lines = b"".join(parts)
    if lines:
        yield place, lines


def find_in_text(place: int, lines: bytes) -> Finding | None:
    """The first bytes that are not UTF-8."""
    if lines.isascii():
        return None
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        return Finding(place + error.start, f"byte {_to_hex(lines, error)} is not UTF-8 ({error.reason})")
    return None


def find_in_encoded(read: Callable[[int], bytes], encoding: str) -> Finding | None:
    """The first bytes of a file that are not of its encoding, which is another than UTF-8."""
    decoder, place = codecs.getincrementaldecoder(encoding)("strict"), 0
    while True:
        block = read(_BLOCK)
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            what = f"byte {_to_hex(error.object, error)} is not {encoding} ({error.reason})"
            return Finding(place - held + error.start, what)
        if not block:
            return None
        place += len(block)


def _to_hex(data: bytes, error: UnicodeDecodeError) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data[error.start : max(error.end, error.start + 1)][:4])


def find_in_json(place: int, lines: bytes, kind: DataType, *, whole: bool) -> Finding | None:
    """The first value that is stored as a column of ``kind`` and would be another; ``whole`` for a document a line."""
    found = find_in_text(place, lines)
    if found is not None:
        return found
    return next((Finding(place + start, what) for start, what in _find_json_faults(lines, kind, whole=whole)), None)


def _find_json_faults(lines: bytes, kind: DataType, *, whole: bool) -> Iterator[tuple[int, str]]:
    """The offset of each line with a value that would be another, and what it is."""
    for place, line in _find_suspicious_lines(lines):
        if what := describe_json_fault(line, kind, whole=whole):
            yield place, what


def _find_suspicious_lines(lines: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines to be parsed, few of all: parsing each, or even looking at each by itself, takes as long as Spark."""
    end = 0
    for place in _find_suspicious_places(lines):
        if place >= end:
            start = max(lines.rfind(b"\n", end, place) + 1, end)
            end = lines.find(b"\n", place) + 1 or len(lines)
            yield from _split(start, lines[start:end])


def _split(place: int, lines: bytes) -> Iterator[tuple[int, bytes]]:
    for line in lines.splitlines(keepends=True):
        yield place, line
        place += len(line)


def _find_suspicious_places(lines: bytes) -> Iterator[int]:
    """Where halves of surrogate pairs and numbers beyond a double may be, in order; none is left out."""
    plain = lines.translate(_DIGITS_AND_EXPONENTS)
    places = [_find_numbers(lines, plain, part) for part in _UNUSUAL_NUMBERS if part in plain]
    # Most files have no backslash, and one byte is found ten times faster than two.
    if b"\\" in lines and (b"\\ud" in lines or b"\\uD" in lines):
        places.append(found.start() for found in _MAYBE_HALF.finditer(lines))
    return heapq.merge(*places)


def _find_numbers(lines: bytes, plain: bytes, part: bytes) -> Iterator[int]:
    place = plain.find(part)
    while place >= 0:
        rest = _REST_OF_NUMBER.match(lines, place)
        assert rest is not None
        if rest.lastindex is None:
            yield place
        place = plain.find(part, rest.end())


@dataclass(frozen=True)
class _Number:
    text: str
    is_integer: bool


def describe_json_fault(line: bytes, kind: DataType, *, whole: bool = True) -> str | None:
    """What of a JSON text cannot be stored in ``kind`` as it is, with its JSON pointer; None where all can.

    Where the text is not JSON by itself, ``whole`` or not, only its halves of surrogate pairs and numbers tell.
    """
    if whole:
        try:
            value = json.loads(
                line.removeprefix(_BOM).decode(),
                strict=False,
                parse_int=lambda text: _Number(text, is_integer=True),
                parse_float=lambda text: _Number(text, is_integer=False),
            )
            return _describe_fault(value, kind, "")
        except (ValueError, RecursionError):
            pass
    half = next((escape[0] for escape in _ESCAPES.finditer(line) if escape[1]), None)
    if half is not None:
        return f"{half.decode()} is half of a surrogate pair"
    if whole:
        return None
    numbers = (found[0].decode() for found in _NUMBERS.finditer(_STRINGS.sub(b'""', line)))
    return next((what for text in numbers if (what := _describe_number_fault(text, text.lstrip("-").isdigit()))), None)


def _describe_fault(value: Any, kind: DataType | None, pointer: str) -> str | None:
    if kind is None:
        return None
    if isinstance(value, str) and (half := _HALF.search(value)):
        return f"{pointer or 'the document'} has \\u{ord(half[0]):04x}, half of a surrogate pair"
    if isinstance(value, _Number) and isinstance(kind, DoubleType | FloatType):
        what = _describe_number_fault(value.text, value.is_integer)
        return what and f"{pointer or 'the document'}: {what}"
    if isinstance(value, dict):
        return _describe_object_fault(value, kind, pointer)
    if isinstance(value, list):
        item = kind.elementType if isinstance(kind, ArrayType) else kind
        return _find_first(_describe_fault(each, item, f"{pointer}/{place}") for place, each in enumerate(value))
    return None


def _describe_object_fault(value: dict[str, Any], kind: DataType, pointer: str) -> str | None:
    known = {field.name: field.dataType for field in kind} if isinstance(kind, StructType) else {}

    def find_kind(name: str) -> DataType | None:
        if isinstance(kind, StructType):
            return known.get(name)
        return kind.valueType if isinstance(kind, MapType) else kind

    names = _find_first(_describe_fault(name, kind, f"a name in {pointer or 'the document'}") for name in value)
    return names or _find_first(
        _describe_fault(member, find_kind(name), pointer + write_json_pointer((name,)))
        for name, member in value.items()
    )


def _find_first(faults: Iterator[str | None]) -> str | None:
    return next((fault for fault in faults if fault), None)


def _describe_number_fault(text: str, is_integer: bool) -> str | None:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
    number = float(text)
    if math.isinf(number) or (number == 0 and re.search("[1-9]", text.lower().partition("e")[0])):
        return f"{shown} is beyond the range of a double"
    # Doubles end at 309 digits, below the length that Python converts.
    if is_integer and len(text.lstrip("-")) > _MOST_DIGITS and int(number) != int(text):
        return f"{shown} has more digits than a double or a decimal"
    return None
