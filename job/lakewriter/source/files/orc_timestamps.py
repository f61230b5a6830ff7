"""Decode a column of ORC's timestamps that Arrow's nanoseconds cannot hold, such as those of the year 9999.

See: https://orc.apache.org/specification/ORCv1/#run-length-encoding, "Timestamp Columns"
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewriter.column_types import UTC_MICROS
from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.julian_calendar import UTC_NAMES, rebase_times
from lakewriter.source.files.orc_footer import OrcFooter, list_fields, read_number, unpack
from lakewriter.source.files.stored_values import BEYOND, Conversion, Converted, as_numbers, judge_rest

Numbers = npt.NDArray[np.int64]

_TIMESTAMP, _INSTANT = 9, 18
_PRESENT, _DATA, _NANOS = 0, 1, 5
_FIRST_ENCODING, _SECOND_ENCODING = 0, 2
_EPOCH: Final = 1_420_070_400
"""The start of 2015, from which seconds are counted."""
_MOST_SECONDS: Final = 9_223_372_036_853
_WIDTHS: Final = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""The widths of numbers in bits, by their code."""


def read_seconds(source: pa.NativeFile, footer: OrcFooter, number: int, column: int) -> pa.StructArray | None:
    """Return the seconds and nanoseconds of a column's timestamps in a stripe.

    Return None for a column that is not a top-level timestamp or counts by a clock other than UTC.
    """
    kind, stripe = footer.kinds[column] if column < len(footer.kinds) else (0, 0), footer.stripes[number]
    end = stripe.start + stripe.size
    tail = list(list_fields(unpack(source.read_at(stripe.tail, end - stripe.tail), footer.codec)))
    zone = next((bytes(value).decode() for name, value in tail if name == 3 and isinstance(value, bytes)), "UTC")
    if kind[0] not in (_TIMESTAMP, _INSTANT) or (kind[0] == _TIMESTAMP and zone.lower() not in UTC_NAMES):
        return None
    encodings = [dict(list_fields(value)).get(1, 0) for name, value in tail if name == 2 and isinstance(value, bytes)]
    streams, at = dict[int, bytes](), stripe.start
    for name, value in tail:
        if name == 1 and isinstance(value, bytes):
            numbers = {key: int(item) for key, item in list_fields(value) if not isinstance(item, bytes)}
            length = numbers.get(3, 0)
            if numbers.get(2, 0) == kind[1] and numbers.get(1, 0) in (_PRESENT, _DATA, _NANOS):
                streams[numbers.get(1, 0)] = unpack(source.read_at(length, at), footer.codec)
            at += length
    is_valid = np.ones(stripe.rows, bool)
    if _PRESENT in streams:
        is_valid = np.unpackbits(_decode_bytes(streams[_PRESENT]))[: stripe.rows].astype(bool)
    read = {_FIRST_ENCODING: _list_first_runs, _SECOND_ENCODING: _list_runs}[int(encodings[kind[1]])]
    seconds = _spread_values(read(streams.get(_DATA, b""), True), is_valid) + _EPOCH
    nanos = _spread_values(read(streams.get(_NANOS, b""), False), is_valid)
    zeros = nanos & 7
    nanos = (nanos >> 3) * np.where(zeros > 0, 10 ** (zeros + 1), 1)
    # Java counts milliseconds towards 1970, and nanoseconds from the second before.
    seconds -= (seconds < 0) & (nanos > 999_999)
    return pa.StructArray.from_arrays([pa.array(seconds), pa.array(nanos)], ["s", "n"], mask=pa.array(~is_valid))


def make_conversion(*, is_julian: bool, truncates: bool) -> Conversion:
    """Return the conversion of ``read_seconds``' result to timestamps."""
    return Conversion(UTC_MICROS, partial(_take_seconds, is_julian, truncates))


def _take_seconds(is_julian: bool, truncates: bool, values: pa.StructArray) -> Converted:
    seconds, nanos = (as_numbers(member) for member in values.flatten())
    mask = values.is_null().to_numpy(zero_copy_only=False)
    beyond = np.abs(seconds) > _MOST_SECONDS
    micros = np.where(beyond | mask, 0, seconds) * 1_000_000 + nanos // 1000
    whole = pa.array(micros, pa.int64(), mask=mask)
    judged = judge_rest(whole, pa.array(nanos % 1000, pa.int64(), mask=mask), UTC_MICROS, truncates=truncates)
    rebased = rebase_times(judged.values, "UTC") if is_julian else Converted(judged.values)
    rows = np.flatnonzero(beyond & ~mask).tolist()
    faults = {row: Fault(BEYOND, f"{int(seconds[row])} s since 1970") for row in rows}
    return Converted(rebased.values, {**judged.faults, **rebased.faults, **faults}, judged.cut)


def _spread_values(runs: Iterator[Numbers], is_valid: npt.NDArray[np.bool_]) -> Numbers:
    """Return the numbers of runs at the rows that have values. Raise ``ValueError`` if their count differs."""
    numbers = np.concatenate([np.zeros(0, np.int64), *runs])
    if len(numbers) != is_valid.sum():
        raise ValueError(f"a stream of timestamps has {len(numbers)} numbers, expected {is_valid.sum()}")
    whole = np.zeros(len(is_valid), np.int64)
    whole[is_valid] = numbers
    return whole


def _decode_bytes(data: bytes) -> npt.NDArray[np.uint8]:
    parts, index = list[bytes](), 0
    while index < len(data):
        head = data[index]
        if head < 0x80:
            parts.append(data[index + 1 : index + 2] * (head + 3))
            index += 2
        else:
            parts.append(data[index + 1 : index + 1 + 256 - head])
            index += 1 + 256 - head
    return np.frombuffer(b"".join(parts), np.uint8)


def _list_first_runs(data: bytes, is_signed: bool) -> Iterator[Numbers]:
    """Yield the runs of the first encoding."""
    index = 0
    while index < len(data):
        head = data[index]
        if head < 0x80:
            step = int.from_bytes(data[index + 1 : index + 2], "big", signed=True)
            base, index = _read_one(data, index + 2, is_signed)
            yield base + step * np.arange(head + 3, dtype=np.int64)
            continue
        index, values = index + 1, list[int]()
        for _ in range(256 - head):
            value, index = _read_one(data, index, is_signed)
            values.append(value)
        yield np.array(values, np.int64)


def _list_runs(data: bytes, is_signed: bool) -> Iterator[Numbers]:
    """Yield the runs of the second encoding: a repeated number, packed ones, with patches, with steps."""
    index = 0
    while index < len(data):
        head, kind = data[index], data[index] >> 6
        if kind == 0:
            size = ((head >> 3) & 7) + 1
            value = np.array([int.from_bytes(data[index + 1 : index + 1 + size], "big")], np.uint64)
            yield np.repeat(_unfold(value, is_signed), (head & 7) + 3)
            index += 1 + size
            continue
        code, count = (head >> 1) & 31, ((head & 1) << 8 | data[index + 1]) + 1
        if kind == 1:
            packed, index = _unpack_bits(data, index + 2, _WIDTHS[code], count)
            yield _unfold(packed, is_signed)
        elif kind == 2:
            values, index = _read_patched(data, index, _WIDTHS[code], count)
            yield values
        else:
            values, index = _read_steps(data, index + 2, _WIDTHS[code] if code else 0, count, is_signed)
            yield values


def _read_patched(data: bytes, index: int, width: int, count: int) -> tuple[Numbers, int]:
    third, fourth = data[index + 2], data[index + 3]
    size, patch_width = (third >> 5) + 1, _WIDTHS[third & 31]
    base = int.from_bytes(data[index + 4 : index + 4 + size], "big")
    sign = 1 << (8 * size - 1)
    base = -(base ^ sign) if base & sign else base
    values, index = _unpack_bits(data, index + 4 + size, width, count)
    entry_width = next(bits for bits in _WIDTHS if bits >= patch_width + (fourth >> 5) + 1)
    patches, index = _unpack_bits(data, index, entry_width, fourth & 31)
    at = 0
    for entry in patches.tolist():
        at += entry >> patch_width
        if patch := entry & ((1 << patch_width) - 1):
            values[at] |= np.uint64(patch << width)
    return values.astype(np.int64) + base, index


def _read_steps(data: bytes, index: int, width: int, count: int, is_signed: bool) -> tuple[Numbers, int]:
    base, index = _read_one(data, index, is_signed)
    first, index = _read_one(data, index, True)
    steps = np.full(count - 1, first, np.int64)
    if width and count > 2:
        more, index = _unpack_bits(data, index, width, count - 2)
        steps[1:] = more.astype(np.int64) * (-1 if first < 0 else 1)
    return base + np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)]), index


def _read_one(data: bytes, index: int, is_signed: bool) -> tuple[int, int]:
    number, index = read_number(data, index)
    if is_signed:
        return (number >> 1) ^ -(number & 1), index
    # Some writers have nanoseconds below zero here, too.
    return (number - (1 << 64) if number >> 63 else number), index


def _unpack_bits(data: bytes, index: int, width: int, count: int) -> tuple[npt.NDArray[np.uint64], int]:
    """Return numbers of ``width`` bits each, and the index of the next byte."""
    size = (width * count + 7) // 8
    bits = np.unpackbits(np.frombuffer(data, np.uint8, size, index))[: width * count].reshape(count, width)
    wide = np.zeros((count, 64), np.uint8)
    wide[:, 64 - width :] = bits
    return np.packbits(wide, axis=1).view(">u8").ravel().astype(np.uint64), index + size


def _unfold(values: npt.NDArray[np.uint64], is_signed: bool) -> Numbers:
    """Return whole numbers. The last bit of signed ones is their sign."""
    if not is_signed:
        return values.astype(np.int64)
    return (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)
