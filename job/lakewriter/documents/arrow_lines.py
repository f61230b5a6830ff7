"""Parse many lines of JSON at a time with Arrow, and cut out those that it refuses.

``pyarrow.json`` refuses repeated keys and all that RFC 8259 forbids, with exceptions. These are excluded here and by
the definition of a plain line: a second document on a line, ``NaN``, bytes that are not UTF-8. Other exceptions end the
process: depth, a document that is not an object, a decimal with a negative exponent.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FAST_LEVELS: Final = 256
"""The number of opening brackets in a line above which the exact parser checks its depth."""
_MOST_REFUSALS: Final = 16
_ROWS_PER_REFUSAL: Final = 256
"""A block may be refused so many times, and once more for each of so many rows, before the rest is parsed exactly."""
_FEW: Final = 16
"""The number of lines up to which a part is not halved again."""
_MOST_ALIKE: Final = 64
"""Of so many lines one may have a value of the kind that was refused, to be cut out with all of its like."""
_IN_ROW: Final = re.compile(r" in row ([0-9]+)$")
_BEHIND: Final = rb"\s*+[,}\]]"
_NAME: Final = re.compile(rb'"([^"\\]+)"\s*+:\s*\Z')
_LONGEST_NAME: Final = 80
_MOST_NAMED: Final = 4096
_CHANGED: Final = re.compile(r"Column\((?:.*/)?(.+)\) changed from \w+ to (\w+) in row", re.DOTALL)
_FIRST_BYTES: Final = {
    "string": rb'"',
    "number": rb"[-0-9]",
    "boolean": rb"[tf]",
    "object": rb"\{",
    "array": rb"\[",
}
"""The first byte of a value, by the name that pyarrow gives its kind."""
_VALUE: Final = re.compile(r"(?:couldn't parse:|\(\d+, \d+\): )([^ ]+)(?: requires .*)?$", re.DOTALL)
_FAR_PLACES: Final = re.compile(rb"[eE]-0*+(?:[2-9][0-9]|1[0-9]{2})|\.[0-9]{19}[0-9]*+[eE]-")
"""A negative exponent of 20 or more, or one behind 19 or more places: others are 38 places at most."""


@dataclass(frozen=True)
class Refusal:
    """The row that a parser refuses, or the text of a number that it does not convert, as far as it says so.

    ``alike`` finds values of the name and the kind that it refuses, which other lines may have too.
    """

    row: int | None = None
    number: bytes | None = None
    alike: re.Pattern[bytes] | None = None


ANY: Final = Refusal()


def parse_json(data: bytes, count: int, schema: pa.Schema | None) -> pa.Table | Refusal:
    """Return the ``count`` documents of plain lines, or what is refused of them."""
    leaves = () if schema is None else list_leaves(pa.struct(list(schema)))
    if any(map(pt.is_decimal, leaves)) and _has_far_places(data):
        return ANY
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, newlines_in_values=False),
        )
        # When pyarrow infers the types of lists, it leaves out the nulls before the first item.
        table.validate()
    except pa.ArrowException as error:
        row, number = _IN_ROW.search(str(error)), _VALUE.search(str(error))
        return Refusal(int(row[1]) if row else None, number[1].encode() if number else None, _find_alike(str(error)))
    except UnicodeDecodeError:
        # For a key that is not UTF-8 pyarrow's own error cannot be decoded.
        return ANY
    # Each line begins and ends as an object does: if there are as many rows as lines, each line is one row.
    return table if table.num_rows == count else ANY


def _find_alike(error: str) -> re.Pattern[bytes] | None:
    """Return the pattern of values with the name and the kind of one that is not of its column's kind."""
    changed = _CHANGED.search(error)
    if changed is None or changed[2] not in _FIRST_BYTES:
        return None
    return _make_pattern(changed[1].encode(), _FIRST_BYTES[changed[2]])


def _make_pattern(name: bytes, value: bytes) -> re.Pattern[bytes]:
    """Return the pattern of members of a name whose values begin in one way."""
    return re.compile(b'"' + re.escape(name) + rb'"\s*+:\s*+' + value)


def _has_far_places(data: bytes) -> bool:
    """Return True if a number may have more decimal places than Arrow's table of powers of ten.

    Arrow then reads behind the end of the table: ``1e-77`` becomes 0.00 as a ``decimal(10,2)``, and ``1e-10000007``
    ends the process.
    """
    return (b"e-" in data or b"E-" in data) and _FAR_PLACES.search(data) is not None


@dataclass(frozen=True)
class TextLines:
    """Lines that are not blank: their starts and ends in ``data``, without white space around them."""

    data: bytes
    starts: Offsets
    ends: Offsets

    def __len__(self) -> int:
        return len(self.starts)

    def get(self, number: int) -> bytes:
        """Return the bytes of one line."""
        return self.data[self.starts[number] : self.ends[number]]

    @cached_property
    def is_plain(self) -> Mask:
        """Return a mask of the lines that Arrow may parse."""
        codes = np.frombuffer(self.data, np.uint8)
        plain: Mask = (codes[self.starts] == ord("{")) & (codes[self.ends - 1] == ord("}"))
        if (self.ends - self.starts).max(initial=0) > 2 * _FAST_LEVELS:
            opening = np.flatnonzero((codes == ord("{")) | (codes == ord("[")))
            counts = np.searchsorted(opening, self.ends) - np.searchsorted(opening, self.starts)
            plain &= counts <= _FAST_LEVELS
        if not self.data.isascii():
            self._clear_other_bytes(plain)
        return plain

    def _clear_other_bytes(self, plain: Mask) -> None:
        try:
            self.data.decode()
        except UnicodeDecodeError:
            for number in range(len(self)):
                line = self.get(number)
                if not line.isascii():
                    plain[number] &= _is_utf8(line)

    def join(self, numbers: Offsets) -> bytes:
        """Return some lines, one after the other; blank ones may lie between."""
        if not len(numbers):
            return b""
        gaps = np.flatnonzero(np.diff(numbers) != 1) + 1
        firsts = numbers[np.concatenate([[0], gaps])]
        lasts = numbers[np.concatenate([gaps - 1, [len(numbers) - 1]])]
        runs = zip(self.starts[firsts].tolist(), self.ends[lasts].tolist(), strict=True)
        return b"\n".join(self.data[start:end] for start, end in runs)

    def find(self, number: bytes) -> Offsets:
        """Return the numbers of lines with a number of this spelling, and maybe of some with a longer one."""
        return self.find_lines(re.compile(re.escape(number) + _BEHIND))

    def list_names(self, number: bytes) -> set[bytes]:
        """Return the names of the first members that are a number of this spelling."""
        pattern, names = re.compile(re.escape(number) + _BEHIND), set[bytes]()
        for match in islice(pattern.finditer(self.data), _MOST_NAMED):
            start = match.start()
            name = _NAME.search(self.data, max(start - _LONGEST_NAME, 0), start)
            names |= {name[1]} if name else set()
        return names

    def find_lines(self, pattern: re.Pattern[bytes], most: int | None = None) -> Offsets:
        """Return the numbers of lines in which a pattern occurs, with ``most`` up to so many occurrences.

        A pattern that begins with a letter is found fastest.
        """
        offsets = np.array([match.start() for match in islice(pattern.finditer(self.data), most)], np.int64)
        return np.unique(np.searchsorted(self.starts, offsets, side="right") - 1)


def join_documents(texts: pa.Array) -> TextLines:
    """Return documents as lines; white space between their parts may be another."""
    if texts.null_count or not len(texts):
        return TextLines(b"", *(np.zeros(0, np.int64),) * 2)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts.cast(pa.binary())), b"\n")
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths + 1) - 1
    data: bytes = whole[0].as_py()
    if data.count(b"\n") >= len(texts):
        # No JSON text has a line break in it.
        data = data.replace(b"\n", b" ")
        codes = np.frombuffer(bytearray(data), np.uint8)
        codes[ends[:-1]] = ord("\n")
        data = codes.tobytes()
    return TextLines(data, ends - lengths, ends)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def list_leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield the types inside the structs and lists of a type, or the type itself."""
    if pt.is_struct(kind) or pt.is_list(kind):
        for index in range(kind.num_fields):
            yield from list_leaves(kind.field(index).type)
    else:
        yield kind


def change_leaves(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with other types inside its structs and lists, or in its stead."""
    if pt.is_struct(kind):
        return pa.struct([pa.field(field.name, change_leaves(field.type, change)) for field in kind])
    return pa.list_(change_leaves(kind.value_type, change)) if pt.is_list(kind) else change(kind)


def mask_floats(array: pa.Array, kind: pa.DataType, test: Callable[[pa.Array, pa.DataType], Mask]) -> Mask:
    """Return a mask of values that are a floating number which passes a test, or hold one.

    ``test`` gets the numbers and what ``kind`` has in their place; members that it has not are not looked at.
    """
    if pt.is_list(kind):
        return mask_lists(array, mask_floats(array.values, kind.value_type, test))
    if pt.is_floating(array.type):
        return test(array, kind)
    mask = np.zeros(len(array), np.bool_)
    for field in kind if pt.is_struct(kind) else ():
        mask |= mask_floats(array.field(field.name), field.type, test)
    return mask


def mask_lists(lists: pa.ListArray, items: Mask) -> Mask:
    """Return a mask of the lists that have an item of a mask."""
    counts, offsets = np.concatenate([[0], np.cumsum(items)]), lists.offsets.to_numpy()
    mask: Mask = counts[offsets[1:]] > counts[offsets[:-1]]
    return mask


Parsed = TypeVar("Parsed")


def parse_ranges(
    lines: TextLines, numbers: Offsets, parse: Callable[[bytes, int], Parsed | Refusal]
) -> Iterator[tuple[Offsets, Parsed]]:
    """Yield the results of ``parse`` with the numbers of their lines.

    Lines that are refused are left out, with their like if these are few. Parts that are refused without a line or a
    number are halved until few are left.
    """
    waiting, refusals = [numbers], _MOST_REFUSALS + len(numbers) // _ROWS_PER_REFUSAL
    while waiting:
        part = waiting.pop()
        if not len(part):
            continue
        parsed = parse(lines.join(part), len(part))
        if not isinstance(parsed, Refusal):
            yield part, parsed
            continue
        refusals -= 1
        if refusals < 0:
            return
        waiting += _cut_out(lines, part, parsed)


def _cut_out(lines: TextLines, part: Offsets, refusal: Refusal) -> list[Offsets]:
    """Return what is left of a part, the last range first."""
    row = refusal.row
    if row is not None and row < len(part):
        if refusal.alike is None:
            return [part[row + 1 :], part[:row]]
        return [_leave_out_alike(lines, np.delete(part, row), [refusal.alike])]
    if refusal.number is not None:
        names = lines.list_names(refusal.number)
        patterns = [_make_pattern(name, b"-?" + _describe_digits(refusal.number)) for name in names]
        rest = _leave_out_alike(lines, part, patterns)
        if len(rest) == len(part):
            rest = np.setdiff1d(part, lines.find(refusal.number), assume_unique=True)
        if len(rest) < len(part):
            return [rest]
    half = len(part) // 2
    return [part[half:], part[:half]] if len(part) > _FEW else []


def _leave_out_alike(lines: TextLines, part: Offsets, patterns: Iterable[re.Pattern[bytes]]) -> Offsets:
    """Return a part without the lines in which a pattern occurs, unless these are many: then they are not refused."""
    most = len(lines) // _MOST_ALIKE + 1
    for pattern in patterns:
        alike = lines.find_lines(pattern, most)
        if len(alike) < most:
            part = np.setdiff1d(part, alike, assume_unique=True)
    return part


def _describe_digits(number: bytes) -> bytes:
    """Return a pattern of numbers without their sign that have an exponent, as many places or as many digits."""
    if b"e" in number.lower():
        return rb"[0-9.]++[eE]"
    whole, point, fraction = number.lstrip(b"-").partition(b".")
    return rb"[0-9]++\.[0-9]{%d}" % len(fraction) if point else b"[0-9]{%d}" % len(whole)
