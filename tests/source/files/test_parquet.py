"""Parquet read without Spark: every type exactly or told, row groups, names, files that change."""

import datetime as dt
import io
import json
import uuid
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SchemaIncompatibleError, SourceFailedError
from lakewriter.source.bad_rows import read_cut
from lakewriter.source.files.parquet_reader import ParquetReader
from tests.source.files.reading import in_turn, read_with, store

UTC = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
FINER = "it is finer than microseconds; nanoseconds: truncate would cut it"
BEYOND = "it is beyond the range of timestamps in microseconds"
NANOS = 1_705_314_600_123_456_789
"""2024-01-15 10:30:00.123456789."""
INT96 = {"use_deprecated_int96_timestamps": True}


def write(path, columns, notes=None, **options):
    table = pa.table(columns)
    with_notes = table.replace_schema_metadata({**(table.schema.metadata or {}), **(notes or {})})
    out = io.BytesIO()
    pq.write_table(with_notes, out, **options)
    return store(path, out.getvalue())


def read(path, columns, notes=None, truncates=False, **options):
    return read_with(ParquetReader(truncates=truncates), [write(path / "a.parquet", columns, notes, **options)])


LIST = pa.list_(pa.field("element", pa.int16()))
U = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
TYPES = [
    # the type that Arrow writes, a value, the column's type, its value
    (pa.bool_(), True, pa.bool_(), True),
    (pa.int8(), -7, pa.int8(), -7),
    (pa.uint8(), 255, pa.int16(), 255),
    (pa.uint16(), 65535, pa.int32(), 65535),
    (pa.uint32(), 2**32 - 1, pa.int64(), 2**32 - 1),
    (pa.uint64(), 2**64 - 1, pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (pa.float16(), 1.5, pa.float32(), 1.5),
    (pa.float32(), 1.5, pa.float32(), 1.5),
    (pa.float64(), 5e-324, pa.float64(), 5e-324),
    (pa.decimal128(38, 9), Decimal("1.500000000"), pa.decimal128(38, 9), Decimal("1.500000000")),
    (pa.decimal256(38, 2), Decimal("1.50"), pa.decimal128(38, 2), Decimal("1.50")),
    (pa.string(), "é\0", pa.string(), "é\0"),
    (pa.large_string(), "é", pa.string(), "é"),
    (pa.string_view(), "é", pa.string(), "é"),
    (pa.json_(), '{"a": 1.10}', pa.string(), '{"a": 1.10}'),
    (pa.uuid(), U.bytes, pa.string(), str(U)),
    (pa.list_(pa.int8()), [], pa.list_(pa.field("element", pa.int8())), []),
    (pa.binary(), b"\0\xff", pa.binary(), b"\0\xff"),
    (pa.large_binary(), b"\0\xff", pa.binary(), b"\0\xff"),
    (pa.binary(2), b"\0\xff", pa.binary(), b"\0\xff"),
    (pa.dictionary(pa.int8(), pa.string()), "a", pa.string(), "a"),
    (pa.date32(), dt.date(1500, 1, 1), pa.date32(), dt.date(1500, 1, 1)),
    (pa.date64(), dt.date(9999, 12, 31), pa.date32(), dt.date(9999, 12, 31)),
    (pa.time32("s"), dt.time(12, 30), pa.string(), "12:30:00"),
    (pa.time32("ms"), dt.time(12, 30, 0, 250_000), pa.string(), "12:30:00.25"),
    (pa.time64("us"), dt.time(0, 0, 0, 1), pa.string(), "00:00:00.000001"),
    (pa.time64("ns"), 86_399_999_999_999, pa.string(), "23:59:59.999999999"),
    (pa.timestamp("s"), dt.datetime(1, 1, 1), NTZ, dt.datetime(1, 1, 1)),
    (pa.timestamp("ms"), dt.datetime(9999, 12, 31), NTZ, dt.datetime(9999, 12, 31)),
    (pa.timestamp("us"), dt.datetime(2020, 1, 1), NTZ, dt.datetime(2020, 1, 1)),
    (pa.timestamp("ns"), dt.datetime(2020, 1, 1, 0, 0, 0, 1), NTZ, dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    (pa.timestamp("ns", "Asia/Tokyo"), dt.datetime(2020, 1, 1), UTC, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    (pa.timestamp("us", "Europe/Paris"), dt.datetime(2020, 1, 1), UTC, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    (pa.duration("us"), dt.timedelta(seconds=2), pa.int64(), 2_000_000),
    (pa.null(), None, pa.null(), None),
    (pa.list_(pa.uint8()), [1, None, 255], LIST, [1, None, 255]),
    (pa.large_list(pa.uint8()), [1], LIST, [1]),
    (pa.list_(pa.uint8(), 2), [1, 2], LIST, [1, 2]),
    (pa.list_view(pa.uint8()), [1, 2], LIST, [1, 2]),
    (pa.map_(pa.string(), pa.time32("ms")), [("a", dt.time(1)), ("b", None)],
     pa.map_(pa.string(), pa.field("value", pa.string())), [("a", "01:00:00"), ("b", None)]),
    (pa.struct([("u", pa.uint8()), ("l", pa.list_(pa.timestamp("ns")))]), {"u": 1, "l": [dt.datetime(2020, 1, 1)]},
     pa.struct([("u", pa.int16()), ("l", pa.list_(pa.field("element", NTZ)))]),
     {"u": 1, "l": [dt.datetime(2020, 1, 1)]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected_kind", "expected"), TYPES)
@pytest.mark.parametrize("stores_schema", [True, False])
def test_types(tmp_path, kind, value, expected_kind, expected, stores_schema):
    columns = {"c": pa.array([value, None, value], kind)}
    file = write(tmp_path / "a", columns, store_schema=stores_schema)
    reader = ParquetReader()
    look = reader.look([file], "s.t", in_turn)
    assert look.schema == pa.schema([("c", expected_kind)])
    [batch] = [batch for piece in reader.cut(look, 100, in_turn) for batch in reader.read(piece, look.schema)]
    batch.validate(full=True)
    assert batch.column(0).to_pylist() == [expected, None, expected]
    assert [mark["offset"] for mark in batch.column(1).to_pylist()] == [0, 1, 2]


REFUSED = [
    # a column, notes in the file, what is said of it
    (pa.array([Decimal(1)], pa.decimal256(39, 0)), {}, "column 'c' is decimal(39,0), beyond 38 digits, which is"),
    (pa.array([[Decimal(1)]], pa.list_(pa.decimal256(50, 2))), {}, "column 'c' is decimal(50,2), beyond 38 digits"),
    (pa.array([1]), {"type": "interval day to second"}, "column 'c' is Spark's interval day to second, which is"),
    (pa.array([1]), {"type": {"type": "array", "elementType": "interval year"}}, "column 'c' is Spark's interval year"),
    (pa.array([{"v": 1}]), {"type": {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}},
     "column 'c' is Spark's variant"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "noted", "message"), REFUSED)
def test_types_that_are_not_read_are_named(tmp_path, column, noted, message):
    fields = {"type": "struct", "fields": [{"name": "c", **noted}]}
    notes = {"org.apache.spark.sql.parquet.row.metadata": json.dumps(fields)} if noted else {}
    with pytest.raises(SchemaIncompatibleError) as raised:
        read(tmp_path, {"c": column}, notes)
    assert raised.value.message.startswith(f"table 's.t': '{tmp_path}/a.parquet': {message}")
    assert raised.value.remedy


def ns(*values):
    return pa.array(values, pa.timestamp("ns"))


TIMES = [
    # columns, options of the writer, good values, the text and the reason of each bad one
    (ns(NANOS, None, 1000), {}, [None, dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
     [("2024-01-15 10:30:00.123456789", FINER)]),
    (ns(-1), {}, [], [("1969-12-31 23:59:59.999999999", FINER)]),
    (ns(NANOS, None), INT96, [None], [("2024-01-15 10:30:00.123456789", FINER)]),
    (ns(-1), INT96, [], [("1969-12-31 23:59:59.999999999", FINER)]),
    (ns(-(2**63) + 1), INT96, [], [("1677-09-21 00:12:43.145224193", FINER)]),
    (ns(2**63 - 1), INT96, [], [("2262-04-11 23:47:16.854775807", FINER)]),
    (ns(-1000), INT96, [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)], []),
    (pa.array([[{"t": NANOS}], [{"t": 0}], None], pa.list_(pa.struct([("t", pa.timestamp("ns"))]))), INT96,
     [[{"t": dt.datetime(1970, 1, 1, tzinfo=dt.UTC)}], None], [("2024-01-15 10:30:00.123456789", FINER)]),
    (pa.array([[("a", NANOS), ("b", 1)]], pa.map_(pa.string(), pa.timestamp("ns"))), {}, [],
     [("2024-01-15 10:30:00.123456789", FINER)]),
    (pa.array([2**62, 0], pa.int64()).view(pa.timestamp("ms")), {}, [dt.datetime(1970, 1, 1)],
     [("4611686018427387904 ms since 1970", BEYOND)]),
    (pa.array([86_400_000, 0], pa.int32()).view(pa.time32("ms")), {}, ["00:00:00"],
     [("86400000 ms", "it is not a time of day")]),
    (pa.array([b"caf\xe9", b"plain"], pa.binary()).view(pa.string()), {}, ["plain"],
     [("caf\\xe9", "byte 0xe9 is not UTF-8")]),
    (pa.array([["x"], None], pa.list_(pa.string())), {}, [["x"], None], []),
]  # fmt: skip


@pytest.mark.parametrize(("column", "options", "good", "bad"), TIMES)
def test_values_without_an_exact_one_are_told(tmp_path, column, options, good, bad):
    outcome = read(tmp_path, {"c": column}, **options)
    assert outcome.good == [(value,) for value in good]
    assert [(value, reason) for _, reason, value in outcome.bad] == bad


@pytest.mark.parametrize("options", [{}, INT96])
def test_nanoseconds_are_cut_and_counted_where_the_table_says_so(tmp_path, options):
    column = pa.array([[NANOS], [-1, 0], None], pa.list_(pa.timestamp("ns")))
    file = write(tmp_path / "a", {"n": [1, 2, 3], "c": column}, **options)
    reader = ParquetReader(truncates=True)
    look = reader.look([file], "s.t", in_turn)
    [batch] = reader.read(reader.cut(look, 1 << 20, in_turn)[0], look.schema)
    texts = batch.column(1).flatten().cast(NTZ).cast(pa.string()).to_pylist()
    assert texts == ["2024-01-15 10:30:00.123456", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000000"]
    assert read_cut(batch.schema) == {"c": 2}


DAY = 86_400_000_000
LEGACY = {"org.apache.spark.legacyDateTime": ""}
JULIAN = [
    # days since 1970 of the hybrid calendar, notes, the date: what Spark reads
    (-141_427, LEGACY, dt.date(1582, 10, 15)),
    (-141_428, LEGACY, dt.date(1582, 10, 4)),
    (-171_602, LEGACY, dt.date(1500, 2, 23)),
    (-171_604, {"org.apache.spark.version": "2.4.8"}, dt.date(1500, 2, 21)),
    (-719_164, LEGACY, dt.date(1, 1, 1)),
    (-171_604, {"org.apache.spark.version": "3.0.1"}, dt.date(1500, 3, 2)),
    (-171_596, LEGACY, None),
]


@pytest.mark.parametrize(("days", "notes", "expected"), JULIAN)
def test_days_of_the_julian_calendar_keep_their_names(tmp_path, days, notes, expected):
    times = pa.array([days * DAY + 5], pa.int64()).view(UTC)
    columns = {"d": pa.array([days], pa.int32()).view(pa.date32()), "t": times}
    outcome = read(tmp_path, columns, notes)
    if expected is None:
        assert [reason for _, reason, _ in outcome.bad] == [
            "it is a 29th of February that only the Julian calendar has"
        ]
        return
    midnight = dt.datetime(expected.year, expected.month, expected.day, 0, 0, 0, 5, dt.UTC)
    assert outcome.good == [(expected, midnight)]


def test_julian_times_of_a_zone_that_is_not_known_today_are_told(tmp_path):
    notes = LEGACY | {"org.apache.spark.timeZone": "America/New_York"}
    outcome = read(tmp_path, {"t": pa.array([-DAY * 30_000, -DAY * 20_000], UTC)}, notes)
    assert outcome.good == [(dt.datetime(1915, 3, 31, tzinfo=dt.UTC),)]
    assert outcome.bad == [
        (0, "it is before 1900, in the calendar and the time zone that Java once had", "1887-11-12 00:00:00.000000")
    ]


def test_pieces_are_row_groups(tmp_path):
    columns = {"n": list(range(1000)), "s": [str(n) * 10 for n in range(1000)]}
    file = write(tmp_path / "a", columns, row_group_size=100)
    reader = ParquetReader()
    look = reader.look([file], "s.t", in_turn)
    pieces = reader.cut(look, 1, in_turn)
    assert [(piece.rows, piece.layout.first_row) for piece in pieces] == [(100, 100 * n) for n in range(10)]
    assert [piece.rows for piece in reader.cut(look, 1 << 30, in_turn)] == [1000]
    [batch] = reader.read(pieces[3], look.schema)
    assert batch.column(0).to_pylist() == list(range(300, 400))
    assert batch.column(2).field("offset").to_pylist() == list(range(300, 400))


def test_some_columns_are_read_without_the_others(tmp_path):
    columns = {"a": [1], "b.c": [2], "b": [{"c": 3, "d": 4}], "t": ns(NANOS)}
    file = write(tmp_path / "a", columns, **INT96)
    reader = ParquetReader()
    look = reader.look([file], "s.t", in_turn)
    for names, expected in ((["b", "a"], [{"c": 3, "d": 4}, 1]), (["b.c"], [2]), ([], [])):
        schema = pa.schema([look.schema.field(name) for name in names])
        [batch] = reader.read(reader.cut(look, 1 << 20, in_turn)[0], schema)
        assert [column[0].as_py() for column in batch.columns[:-1]] == expected
        assert batch.num_rows == 1


def test_two_columns_of_one_name_are_told_apart_by_their_places(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["c", "c"])
    pq.write_table(table, tmp_path / "a")
    file = store(tmp_path / "a", (tmp_path / "a").read_bytes())
    assert read_with(ParquetReader(), [file]).good == [(1, "x")]
    other = write(tmp_path / "b", {"c": [2]})
    with pytest.raises(SchemaIncompatibleError, match=r"has several columns 'c', and .* has other columns than it"):
        read_with(ParquetReader(), [file, other])


DECLARED = [
    # the columns that are asked for, the rows of a file with a and B
    ([("B", pa.int64()), ("a", pa.int64())], [(2, 1)]),
    ([("b", pa.int64())], [(2,)]),
]


@pytest.mark.parametrize(("declared", "expected"), DECLARED)
def test_declared_columns_are_those_that_are_read(tmp_path, declared, expected):
    file = write(tmp_path / "a", {"a": [1], "B": [2]})
    outcome = read_with(ParquetReader(pa.schema(declared)), [file])
    assert outcome.good == expected


def test_declared_column_that_no_file_has_is_refused(tmp_path):
    file = write(tmp_path / "a", {"amount": [1]})
    with pytest.raises(SchemaIncompatibleError, match=r"'amont', which no file has\. The nearest is 'amount'"):
        read_with(ParquetReader(pa.schema([("amont", pa.int64())])), [file])


DAMAGED = [b"PAR1", b"no parquet at all", b"PAR1....PAR1"]


@pytest.mark.parametrize("content", DAMAGED)
def test_file_that_is_none_is_named(tmp_path, content):
    with pytest.raises(SourceFailedError, match=r"table 's\.t': '.*bad\.parquet' (cannot be read|is not a Parquet)"):
        read_with(ParquetReader(), [store(tmp_path / "bad.parquet", content)])


def test_page_whose_checksum_differs_is_refused(tmp_path):
    file = write(
        tmp_path / "a", {"n": list(range(1000))}, write_page_checksum=True, compression="none", use_dictionary=False
    )
    data = bytearray((tmp_path / "a").read_bytes())
    data[2000] ^= 1
    with pytest.raises(SourceFailedError, match="CRC checksum verification failed"):
        read_with(ParquetReader(), [store(tmp_path / "a", bytes(data))])
    assert file.size == len(data)


def test_file_that_changes_after_its_listing_is_refused(tmp_path):
    file = write(tmp_path / "a", {"n": [1]})
    reader = ParquetReader()
    look = reader.look([file], "s.t", in_turn)
    [piece] = reader.cut(look, 1, in_turn)
    write(tmp_path / "a", {"n": [2]})
    changed = replace(piece, file=replace(piece.file, version="0"))
    with pytest.raises(SourceFailedError, match="has changed since the load listed it"):
        list(reader.read(changed, look.schema))


def test_files_without_bytes_beside_others_are_noted(tmp_path):
    files = [write(tmp_path / "a", {"n": [1]}), store(tmp_path / "b", b""), store(tmp_path / "c", b"")]
    outcome = read_with(ParquetReader(), files)
    assert (outcome.good, outcome.notes) == (
        [(1,)], (f"2 files, such as '{tmp_path}/b', are empty, without any byte: no row is read of them",)
    )  # fmt: skip
    with pytest.raises(SourceFailedError, match="all 2 files are empty, without any byte"):
        read_with(ParquetReader(), files[1:])


def test_wide_rows_come_in_small_batches(tmp_path):
    rows = {"c": ["x" * 4096 + str(number) for number in range(9000)]}
    file = write(tmp_path / "a", rows, compression="zstd")
    reader = ParquetReader()
    look = reader.look([file], "s.t", in_turn)
    [piece] = reader.cut(look, 1 << 30, in_turn)
    assert max(batch.num_rows for batch in reader.read(piece, look.schema)) <= 4096


TENSOR = pa.fixed_shape_tensor(pa.int32(), [2, 2])
TENSORS = pa.ExtensionArray.from_storage(TENSOR, pa.array([[1, 2, 3, 4], None], pa.list_(pa.int32(), 4)))


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_tensor_is_a_list(tmp_path, is_inside):
    values = pa.StructArray.from_arrays([TENSORS], ["t"]) if is_inside else TENSORS
    expected = [[1, 2, 3, 4], None]
    assert read(tmp_path, {"v": values}).good == [({"t": row} if is_inside else row,) for row in expected]
