"""Convert values as a file stores them to those of a table's columns: exactly, or as a fault of the row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import UTC_MICROS
from lakewriter.nested_arrays import compute_flat_offsets, list_map_entries
from lakewriter.source.files.charsets import Charset, explain_bad_text, show_text
from lakewriter.source.files.file_reader import Fault

MICROS: Final = pa.timestamp("us")
FINER: Final = "it is finer than microseconds; nanoseconds: truncate would cut it"
BEYOND: Final = "it is beyond the range of timestamps in microseconds"
_NO_TIME: Final = "it is not a time of day"
_DAY: Final = 86_400
_UUID_BYTES: Final = 16
_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)
_DASHES: Final = (8, 13, 18, 23)


@dataclass(frozen=True)
class Converted:
    """Converted values.

    ``faults`` are those without an exact value, by their indexes, at which the values are arbitrary. ``cut`` counts
    times that lost nanoseconds.
    """

    values: pa.Array
    faults: Mapping[int, Fault] = field(default_factory=dict)
    cut: int = 0


Convert = Callable[..., Converted]
"""A function of the array of a leaf; of several arrays, if a leaf is read several times."""


@dataclass(frozen=True)
class Conversion:
    """The conversion of stored values to those of ``kind``.

    A leaf is converted by ``convert``, or by Arrow's cast if that loses nothing; a nested value by the conversions
    ``inside``.
    """

    kind: pa.DataType
    convert: Convert | None = None
    inside: tuple["Conversion", ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if Arrow's cast converts the values, and bytes that are not text are the only faults."""
        return self.convert in (None, take_text) and all(child.is_plain for child in self.inside)


def convert_column(conversion: Conversion, name: str, readings: Sequence[pa.Array]) -> Converted:
    """Return the values of a column, null if they have a fault; ``readings`` are one or more arrays of the same
    values.
    """
    converted = _convert(conversion, readings)
    if not converted.faults:
        return converted
    mask = np.zeros(len(converted.values), bool)
    mask[list(converted.faults)] = True
    values = pc.if_else(pa.array(mask), pa.scalar(None, conversion.kind), converted.values)
    faults = {row: Fault(fault.reason, fault.value, name) for row, fault in converted.faults.items()}
    return Converted(values, faults, converted.cut)


def _convert(conversion: Conversion, readings: Sequence[pa.Array]) -> Converted:
    values = unwrap(readings[0])
    if conversion.is_plain and len(readings) == 1:
        try:
            cast = values if values.type.equals(conversion.kind) else values.cast(conversion.kind)
            cast.validate(full=True)
            return Converted(cast)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Arrow casts no struct or list with an extension type inside.
            if not conversion.inside and conversion.convert is None:
                raise
    if not conversion.inside:
        convert = conversion.convert or (lambda array, *_: Converted(array.cast(conversion.kind)))
        return convert(*(unwrap(reading) for reading in readings))
    if pt.is_struct(conversion.kind):
        return _convert_structs(conversion, values, readings)
    return _convert_lists(conversion, [_to_lists(unwrap(reading)) for reading in readings])


def unwrap(values: pa.Array) -> pa.Array:
    """Return the storage of an extension type, or the values of a dictionary."""
    if isinstance(values, pa.ExtensionArray):
        return unwrap(values.storage)
    return values.dictionary_decode() if pt.is_dictionary(values.type) else values


def _convert_structs(conversion: Conversion, values: pa.Array, readings: Sequence[pa.Array]) -> Converted:
    members = zip(*(unwrap(reading).flatten() for reading in readings), strict=True)
    inside = [_convert(child, arrays) for child, arrays in zip(conversion.inside, members, strict=True)]
    whole = pa.StructArray.from_arrays(
        [member.values for member in inside], fields=list(conversion.kind), mask=values.is_null()
    )
    faults = {row: fault for member in reversed(inside) for row, fault in member.faults.items()}
    return Converted(whole, faults, sum(member.cut for member in inside))


def _to_lists(values: pa.Array) -> pa.Array:
    if pt.is_map(values.type):
        return list_map_entries(values)
    return values if pt.is_list(values.type) else values.cast(pa.list_(values.type.value_type))


def _convert_lists(conversion: Conversion, readings: Sequence[pa.Array]) -> Converted:
    lists = readings[0]
    is_map = pt.is_map(conversion.kind)
    flat = [reading.flatten() for reading in readings]
    parts = list(zip(*(entries.flatten() for entries in flat), strict=True)) if is_map else [tuple(flat)]
    inside = [_convert(child, arrays) for child, arrays in zip(conversion.inside, parts, strict=True)]
    make = pa.MapArray.from_arrays if is_map else pa.ListArray.from_arrays
    whole = make(
        compute_flat_offsets(lists), *(child.values for child in inside), type=conversion.kind, mask=lists.is_null()
    )
    faults: dict[int, Fault] = {}
    if any(child.faults for child in inside):
        parents = pc.list_parent_indices(lists).to_pylist()
        for child in inside:
            for row, fault in child.faults.items():
                faults.setdefault(parents[row], fault)
    return Converted(whole, faults, sum(child.cut for child in inside))


def take_text(values: pa.Array) -> Converted:
    """Convert bytes to text. Bytes that are not UTF-8 are faults, which show them escaped."""
    raw = values.cast(pa.binary())
    faults, texts = {}, raw.to_pylist()
    for row, value in enumerate(texts):
        if value is not None and (reason := explain_bad_text(value, Charset())):
            faults[row] = Fault(reason, show_text(value, Charset()))
            texts[row] = b""
    return Converted(pa.array(texts, pa.binary()).cast(pa.string()), faults)


def write_uuids(values: pa.Array) -> Converted:
    """Write 16 bytes each as the text of a UUID."""
    data = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    first = values.offset * _UUID_BYTES
    rows = data[first : first + len(values) * _UUID_BYTES].reshape(-1, _UUID_BYTES)
    digits = _HEX[rows].reshape(len(values), 2 * _UUID_BYTES)
    text = np.full((len(values), 36), ord("-"), np.uint8)
    text[:, [index for index in range(36) if index not in _DASHES]] = digits
    texts = pa.FixedSizeBinaryArray.from_buffers(pa.binary(36), len(values), [None, pa.py_buffer(text.tobytes())])
    return Converted(pc.if_else(values.is_valid(), texts.cast(pa.binary()).cast(pa.string()), None))


def write_times(values: pa.Array) -> Converted:
    """Write times of day as ``12:30:00.25``, with as many digits as they have."""
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
    numbers = _view(values)
    is_other = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, _DAY * ticks))
    faults = {
        row: Fault(_NO_TIME, f"{numbers[row].as_py()} {values.type.unit}")
        for row in pc.indices_nonzero(pc.fill_null(is_other, False)).to_pylist()
    }
    if faults:
        values = pc.if_else(is_other, pa.scalar(0, numbers.type), numbers).view(values.type)
    texts = values.cast(pa.string())
    return Converted(pc.replace_substring_regex(texts, r"(?:\.0+|(\.[0-9]*[1-9])0*)\z", r"\1"), faults)


def write_intervals(values: pa.Array) -> Converted:
    """Write Parquet's intervals, three counts of months, days and milliseconds, as ISO 8601."""
    texts = [None if value is None else _write_interval(value) for value in values.to_pylist()]
    return Converted(pa.array(texts, pa.string()))


def _write_interval(value: bytes) -> str:
    months, days, millis = (int.from_bytes(value[index : index + 4], "little") for index in (0, 4, 8))
    seconds = f"{millis // 1000}.{millis % 1000:03d}".rstrip("0").rstrip(".")
    return f"P{months}M{days}DT{seconds}S"


def _view(values: pa.Array) -> pa.Array:
    return values.view(pa.int32() if pt.is_time32(values.type) else pa.int64())


def take_millis(values: pa.Array) -> Converted:
    """Return times of seconds or milliseconds in microseconds."""
    factor = {"s": 10**6, "ms": 10**3}[values.type.unit]
    numbers, most = values.view(pa.int64()), (2**63 - 1) // factor
    bounds = pc.min_max(numbers).as_py()
    faults: dict[int, Fault] = {}
    if bounds["min"] is not None and (bounds["min"] < -most or bounds["max"] > most):
        is_beyond = pc.fill_null(pc.or_(pc.less(numbers, -most), pc.greater(numbers, most)), False)
        for row in pc.indices_nonzero(is_beyond).to_pylist():
            faults[row] = Fault(BEYOND, f"{numbers[row].as_py()} {values.type.unit} since 1970")
        numbers = pc.if_else(is_beyond, 0, numbers)
    return Converted(pc.multiply(numbers, factor).view(_micros(values.type)), faults)


def _micros(kind: pa.DataType) -> pa.DataType:
    return UTC_MICROS if kind.tz else MICROS


def take_nanos(values: pa.Array, *, truncates: bool) -> Converted:
    """Return times of nanoseconds in microseconds. A finer time is cut if it ``truncates``, else a fault."""
    numbers = values.view(pa.int64())
    whole, rest = floor_micros(numbers)
    return judge_rest(whole, rest, _micros(values.type), truncates=truncates)


def floor_micros(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the whole microseconds of nanoseconds, and the remaining nanoseconds."""
    data = numbers.to_numpy(zero_copy_only=False) if not numbers.null_count else pc.fill_null(numbers, 0).to_numpy()
    whole = data // 1000
    mask = numbers.is_null().to_numpy(zero_copy_only=False) if numbers.null_count else None
    return pa.array(whole, pa.int64(), mask=mask), pa.array(data - whole * 1000, pa.int64(), mask=mask)


def judge_rest(whole: pa.Array, rest: pa.Array, kind: pa.DataType, *, truncates: bool) -> Converted:
    """Return microseconds as times, with the faults of those that have remaining nanoseconds."""
    is_finer = pc.fill_null(pc.not_equal(rest, 0), False)
    values = whole.view(kind)
    count = pc.sum(is_finer).as_py() or 0
    if not count or truncates:
        return Converted(values, {}, count)
    texts = whole.view(MICROS).cast(pa.string())
    faults = {
        row: Fault(FINER, f"{texts[row].as_py()}{rest[row].as_py():03d}")
        for row in pc.indices_nonzero(is_finer).to_pylist()
    }
    return Converted(values, faults)


def as_numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the integers of dates or times, 0 for nulls."""
    numbers = values.view(pa.int32() if pt.is_date32(values.type) else pa.int64()).cast(pa.int64())
    return np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)
