"""How columns are stored."""

import hashlib
from decimal import Decimal

import pyarrow as pa

from lakewriter.encode.parquet_columns import choose_encodings
from lakewriter.spec.specification import Encoding
from tests.encode.files import opened, written

ROWS = 10_000
HASHES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(ROWS)]
# (values, the DELTA encoding if asked for, without a dictionary else)
COLUMNS = {
    "hash": (pa.array(HASHES), "DELTA_LENGTH_BYTE_ARRAY", True),
    "counter": (pa.array(range(ROWS), pa.int64()), "DELTA_BINARY_PACKED", True),
    "path": (
        pa.array([f"https://example.com/{n * n % 997}/{n}" for n in range(ROWS)]),
        "DELTA_LENGTH_BYTE_ARRAY",
        True,
    ),
    "price": (pa.array([n * 7919 % ROWS / 100 for n in range(ROWS)]), None, True),
    "wide": (pa.array([Decimal(n) for n in range(ROWS)], pa.decimal128(38, 0)), None, True),
    "half": (pa.array([n // 2 for n in range(ROWS)], pa.int64()), None, False),
    "most": (pa.array([n * 3 // 4 for n in range(ROWS)], pa.int64()), "DELTA_BINARY_PACKED", False),
    "few": (pa.array([f"n{n % 5}" for n in range(ROWS)]), None, False),
    "sparse": (pa.array([n if n % 3 == 0 else None for n in range(ROWS)], pa.int64()), None, False),
    "nothing": (pa.nulls(ROWS, pa.string()), None, False),
    "flag": (pa.array([True] * ROWS), None, False),
    "list": (pa.array([[n] for n in range(ROWS)]), None, False),
}
TABLE = pa.table({name: case[0] for name, case in COLUMNS.items()})


def test_columns_as_every_reader_knows_them():
    found = choose_encodings(TABLE, delta=False)
    assert found.delta == {}
    assert list(found.plain) == [name for name, case in COLUMNS.items() if case[2]]


def test_columns_with_delta():
    found = choose_encodings(TABLE, delta=True)
    assert found.delta == {name: case[1] for name, case in COLUMNS.items() if case[1]}
    assert list(found.plain) == ["price", "wide"]


def test_a_column_of_distinct_values_has_no_dictionary():
    file = opened(written(Encoding(), TABLE.schema, TABLE.to_batches(5000), ROWS))
    group = file.metadata.row_group(0)
    chunks = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    plain = [name for name, chunk in chunks.items() if not chunk.has_dictionary_page and name != "flag"]
    assert plain == [name for name, case in COLUMNS.items() if case[2]]
    assert {chunk.compression for chunk in chunks.values()} == {"GZIP"}
    assert file.read().equals(TABLE)


def test_hashes_take_half_a_byte_a_digit():
    rows = TABLE.select(["hash"])
    size = len(written(Encoding(), rows.schema, rows.to_batches(), ROWS))
    assert 32 * ROWS < size < 40 * ROWS


def test_a_dictionary_that_is_not_wanted_stays_away():
    file = opened(written(Encoding(dictionary=False), TABLE.schema, TABLE.to_batches(), ROWS))
    group = file.metadata.row_group(0)
    assert not any(group.column(i).has_dictionary_page for i in range(group.num_columns))
