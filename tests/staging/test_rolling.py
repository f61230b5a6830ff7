"""Cuts are the same for the same rows, however they arrive."""

from typing import Any

import pyarrow as pa
import pytest

from lakewriter.spec.specification import Limits
from lakewriter.staging.rolling import CanonicalRows, FileRows, Sized, choose_row_group_rows, measure_batch

KIB = 1024


def _column(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(range(rows), pa.int64())})


def _texts(lengths: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"s": ["x" * length for length in lengths]})


def _cut(batch: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [batch.slice(start, size) for start in range(0, batch.num_rows, size)]


def _all(rows: CanonicalRows) -> list[Sized]:
    return list(iter(lambda: rows.take(10**9), None))


@pytest.mark.parametrize("size", [1, 7, 10, 1000])
@pytest.mark.parametrize(
    ("batch", "limit", "expected"),
    [
        (_column(25), 10**6, [10, 10, 5]),
        (_column(20), 10**6, [10, 10]),
        # Eight bytes a row: 40 bytes are five rows.
        (_column(12), 40, [5, 5, 2]),
        # Text is its bytes and a four byte offset; what alone is too large comes alone.
        (_texts([6, 6, 200, 6, 6, 6, 6, 6]), 30, [2, 1, 3, 2]),
    ],
)
def test_canonical_cuts(batch: pa.RecordBatch, limit: int, expected: list[int], size: int) -> None:
    taken = _all(CanonicalRows(iter(_cut(batch, size)), batch_rows=10, batch_bytes=limit))
    assert [piece.batch.num_rows for piece in taken] == expected
    assert [piece.size for piece in taken] == [measure_batch(piece.batch) for piece in taken]
    assert pa.Table.from_batches([piece.batch for piece in taken]).equals(pa.Table.from_batches([batch]))


def test_canonical_take_less_than_a_batch() -> None:
    rows = CanonicalRows(iter([_column(15)]), batch_rows=10)
    taken = [rows.take(4), rows.take(4), rows.take(4), rows.take(99), rows.take(1)]
    assert [(t.batch["n"].to_pylist()[0], t.batch.num_rows, t.size) if t else None for t in taken] == [
        (0, 4, 32),
        (4, 4, 32),
        (8, 2, 16),
        (10, 5, 40),
        None,
    ]


VALUES: dict[str, tuple[pa.DataType, list[Any], int]] = {
    "bool": (pa.bool_(), [True, None, False, True], 4),
    "decimal": (pa.decimal128(9, 2), [1, 2, None, 3], 64),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": "xyz"}, None, {"a": 2, "b": ""}, {}],
        39,
    ),
    "list": (pa.list_(pa.string()), [["ab", "c"], None, [], ["d"]], 32),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("l", 2), ("m", 3)], None, []], 55),
    "nested": (pa.list_(pa.list_(pa.int8())), [[[1, 2], []], None, [[3]], []], 31),
    "large": (pa.large_string(), ["abc", None, "", "d"], 20),
    "null": (pa.null(), [None] * 4, 4),
}


@pytest.mark.parametrize("name", VALUES)
def test_batch_bytes_add_up(name: str) -> None:
    kind, values, expected = VALUES[name]
    batch = pa.RecordBatch.from_arrays([pa.array([*values, *values], kind)], [name]).slice(4)
    assert measure_batch(batch) == expected
    assert [measure_batch(batch.slice(0, cut)) + measure_batch(batch.slice(cut)) for cut in range(5)] == [expected] * 5


@pytest.mark.parametrize(
    ("rows", "size", "budget", "most", "expected"),
    [
        (8192, 8192 * 100, 8192 * 100, 1_000_000, 8192),
        (8192, 8192 * 100, 8192 * 350, 1_000_000, 24576),
        (10, 1000, 8192 * 350, 1_000_000, 24576),
        (8192, 8192 * 8, 192 * KIB * KIB, 1_000_000, 999_424),
        (8192, 8192 * 100, 100_000, 1_000_000, 1000),
        (1, 10**9, 10**6, 1_000_000, 1),
        (8192, 8192 * 8, 192 * KIB * KIB, 20_000, 16384),
        (8192, 8192 * 8, 192 * KIB * KIB, 500, 500),
        (8192, 8192 * 100, 100_000, 999, 999),
    ],
)
def test_row_group_rows(rows: int, size: int, budget: int, most: int, expected: int) -> None:
    limits = Limits(row_group_bytes=budget, row_group_rows=most)
    assert choose_row_group_rows(Sized(_column(rows), size), limits) == expected


def _files(batches: list[pa.RecordBatch], limits: Limits, bytes_per_row: int) -> list[tuple[int, int, int]]:
    """(rows, row groups, rows of a row group) of each file, as an encoder writing ``bytes_per_row`` gives them."""
    rows = CanonicalRows(iter(batches), batch_bytes=limits.row_group_bytes)
    found = []
    while rows.peek() is not None:
        sent = 0
        file = FileRows(rows, limits, lambda: sent)  # noqa: B023 - called in this turn only
        for batch in file.take_batches():
            sent += batch.num_rows * bytes_per_row
        found.append((file.rows, file.row_groups, file.row_group_rows))
    return found


@pytest.mark.parametrize("size", [10_000, 65_536])
@pytest.mark.parametrize(
    ("rows", "group_bytes", "target", "expected"),
    [
        # After n row groups of 8192 bytes a file goes on while (n + 0.6) * 8192 <= target.
        (40_000, 64 * KIB, 100_000, [(40_000, 5, 8192)]),
        (40_000, 64 * KIB, 20_000, [(16_384, 2, 8192), (16_384, 2, 8192), (7232, 1, 8192)]),
        (40_000, 64 * KIB, 1, [(8192, 1, 8192)] * 4 + [(7232, 1, 8192)]),
        (16_384, 64 * KIB, 1, [(8192, 1, 8192)] * 2),
        (40_000, 128 * KIB, 20_000, [(16_384, 1, 16_384), (16_384, 1, 16_384), (7232, 1, 16_384)]),
        # Row groups of fewer rows than a batch: 1000 rows of 8 bytes.
        (2500, 8000, 10**6, [(2500, 3, 1000)]),
        (2500, 8000, 2000, [(2000, 2, 1000), (500, 1, 1000)]),
    ],
)
def test_files_roll(rows: int, group_bytes: int, target: int, expected: list[tuple[int, int, int]], size: int) -> None:
    limits = Limits(row_group_bytes=group_bytes, target_file_bytes=target)
    assert _files(_cut(_column(rows), size), limits, 1) == expected


def test_files_end_early_when_rows_grow_wide() -> None:
    # Going by its first batch (4 bytes a row) the first file has row groups of 16384 rows; then rows take 4 KiB, in
    # batches of 16, and the second of these takes the row group over twice its budget of 64 KiB.
    limits = Limits(row_group_bytes=64 * KIB, target_file_bytes=10**9)
    assert _files([_texts([0] * 8192), _texts([4092] * 100)], limits, 1) == [(8224, 1, 16_384), (68, 5, 16)]
