"""How columns are stored."""

import hashlib
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.encode.parquet_encodings import choose_encodings
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import ValueEncoding
from tests.encode.files import opened, written

D: ValueEncoding = "DELTA_BINARY_PACKED"
L: ValueEncoding = "DELTA_LENGTH_BYTE_ARRAY"
P: ValueEncoding = "DELTA_BYTE_ARRAY"
F: ValueEncoding = "BYTE_STREAM_SPLIT"
ROWS = 10_000
HASHES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(ROWS)]
# (values, without a dictionary)
COLUMNS = {
    "hash": (pa.array(HASHES), True),
    "counter": (pa.array(range(ROWS), pa.int64()), True),
    "path": (pa.array([f"https://example.com/{n * n % 997}/{n}" for n in range(ROWS)]), True),
    "price": (pa.array([n * 7919 % ROWS / 100 for n in range(ROWS)]), True),
    "wide": (pa.array([Decimal(n) for n in range(ROWS)], pa.decimal128(38, 0)), True),
    "half": (pa.array([n // 2 for n in range(ROWS)], pa.int64()), False),
    "most": (pa.array([n * 3 // 4 for n in range(ROWS)], pa.int64()), False),
    "few": (pa.array([f"n{n % 5}" for n in range(ROWS)]), False),
    "sparse": (pa.array([n if n % 3 == 0 else None for n in range(ROWS)], pa.int64()), False),
    "nothing": (pa.nulls(ROWS, pa.string()), False),
    "flag": (pa.array([True] * ROWS), False),
    "list": (pa.array([[n] for n in range(ROWS)]), False),
}
TABLE = pa.table({name: case[0] for name, case in COLUMNS.items()})


def test_columns_as_every_reader_knows_them():
    found = choose_encodings(TABLE, ())
    assert found.encodings == {}
    assert list(found.plain) == [name for name, case in COLUMNS.items() if case[1]]


# https://parquet.apache.org/docs/file-format/data-pages/encodings/ has the types of each encoding.
KNOWN: list[tuple[set[ValueEncoding], dict[str, str], list[str]]] = [
    # what the readers know, the columns that get one of these, and those left without a dictionary
    ({D}, {"counter": D, "most": D}, ["hash", "path", "price", "wide"]),
    ({L}, {"hash": L, "path": L}, ["counter", "price", "wide"]),
    ({P}, {"hash": P, "path": P}, ["counter", "price", "wide"]),
    ({F}, {"price": F}, ["hash", "counter", "path", "wide"]),
    ({D, L}, {"hash": L, "counter": D, "path": L, "most": D}, ["price", "wide"]),
    ({D, P}, {"hash": P, "counter": D, "path": P, "most": D}, ["price", "wide"]),
    ({D, L, P, F}, {"hash": L, "counter": D, "path": L, "price": F, "most": D}, ["wide"]),
]


def test_wide_columns_are_judged_by_their_first_values():
    # Of a kilobyte each, 4 MiB are as many as the least that is looked at.
    wide = [f"{n:01024}" for n in range(4096)]
    table = pa.table({"wide": wide + wide[:1] * 4096, "narrow": [*range(4096), *[0] * 4096]})
    assert list(choose_encodings(table, ()).plain) == ["wide"]


@pytest.mark.parametrize(("known", "encodings", "plain"), KNOWN)
def test_columns_as_some_readers_know_them(known, encodings, plain):
    found = choose_encodings(TABLE, known)
    assert (found.encodings, list(found.plain)) == (encodings, plain)


DAYS = [date(2024, 2, 29), date(1, 1, 1)]
TYPES = [
    # type, two values, the encoding if all are known
    (pa.int8(), [0, 1], D), (pa.int16(), [0, 1], D), (pa.int32(), [0, 1], D), (pa.int64(), [0, 1], D),
    (pa.uint32(), [0, 1], D), (pa.uint64(), [0, 1], D), (pa.date32(), DAYS, D), (pa.time32("ms"), [0, 1], D),
    (pa.time64("us"), [0, 1], D), (pa.timestamp("us", "UTC"), [0, 1], D),
    (pa.decimal128(9, 2), [Decimal(0), Decimal(1)], D), (pa.decimal128(18, 0), [Decimal(0), Decimal(1)], D),
    (pa.decimal128(19, 0), [Decimal(0), Decimal(1)], None),
    (pa.float32(), [0.0, 1.0], F), (pa.float64(), [0.0, 1.0], F),
    (pa.string(), ["a", "b"], L), (pa.binary(), [b"a", b"b"], L), (pa.bool_(), [True, False], None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "encoding"), TYPES, ids=str)
def test_encoding_of_a_type(kind, values, encoding):
    found = choose_encodings(pa.table({"a": pa.array(values, kind)}), {D, L, P, F})
    assert found.encodings == ({} if encoding is None else {"a": encoding})


def test_a_column_of_distinct_values_has_no_dictionary():
    file = opened(written(ParquetEncoding(), TABLE.schema, TABLE.to_batches(5000), ROWS))
    group = file.metadata.row_group(0)
    chunks = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    plain = [name for name, chunk in chunks.items() if not chunk.has_dictionary_page and name != "flag"]
    assert plain == [name for name, case in COLUMNS.items() if case[1]]
    assert {chunk.compression for chunk in chunks.values()} == {"GZIP"}
    assert file.read().equals(TABLE)


def test_hashes_take_half_a_byte_a_digit():
    rows = TABLE.select(["hash"])
    size = len(written(ParquetEncoding(), rows.schema, rows.to_batches(), ROWS))
    assert 32 * ROWS < size < 40 * ROWS


def test_a_dictionary_that_is_not_wanted_stays_away():
    file = opened(written(ParquetEncoding(dictionary=False), TABLE.schema, TABLE.to_batches(), ROWS))
    group = file.metadata.row_group(0)
    assert not any(group.column(i).has_dictionary_page for i in range(group.num_columns))
