"""ORC read without Spark: every type exactly or told, stripes, calendars."""

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc as po
import pytest

from lakewriter.errors import LakeError, SchemaIncompatibleError, SourceFailedError, ValueUnrepresentableError
from lakewriter.source.feed import open_feed
from lakewriter.source.files.orc_reader import OrcReader
from lakewriter.source.request import RowsRequest
from tests.source.files.reading import in_turn, read_with, store
from tests.source.tables import rows, table

UTC = pa.timestamp("us", "UTC")
FINER = "it is finer than microseconds; nanoseconds: truncate would cut it"


def write(path, columns, **options):
    po.write_table(pa.table(columns), path, **options)
    return store(path, path.read_bytes())


NOON = dt.datetime(2020, 1, 1, 12)
TYPES = [
    # the type that Arrow writes, a value, the column's type, its value
    (pa.bool_(), True, pa.bool_(), True),
    (pa.int8(), -7, pa.int8(), -7),
    (pa.int64(), -(2**63), pa.int64(), -(2**63)),
    (pa.float32(), 1.5, pa.float32(), 1.5),
    (pa.float64(), 5e-324, pa.float64(), 5e-324),
    (pa.decimal128(38, 2), Decimal("1.50"), pa.decimal128(38, 2), Decimal("1.50")),
    (pa.string(), "é\0", pa.string(), "é\0"),
    (pa.binary(), b"\0\xff", pa.binary(), b"\0\xff"),
    (pa.date32(), dt.date(1500, 1, 1), pa.date32(), dt.date(1500, 1, 1)),
    (pa.timestamp("us"), NOON, UTC, NOON.replace(tzinfo=dt.UTC)),
    (pa.timestamp("ns"), NOON, UTC, NOON.replace(tzinfo=dt.UTC)),
    (pa.timestamp("us", "Asia/Tokyo"), NOON, UTC, NOON.replace(tzinfo=dt.UTC)),
    (pa.list_(pa.int32()), [1, None], pa.list_(pa.field("element", pa.int32())), [1, None]),
    (pa.map_(pa.string(), pa.date32()), [("a", dt.date(1500, 1, 1))],
     pa.map_(pa.string(), pa.field("value", pa.date32())), [("a", dt.date(1500, 1, 1))]),
    (pa.struct([("a", pa.int8())]), {"a": 1}, pa.struct([("a", pa.int8())]), {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected_kind", "expected"), TYPES)
def test_types(tmp_path, kind, value, expected_kind, expected):
    file = write(tmp_path / "a", {"c": pa.array([value, None], kind)})
    reader = OrcReader()
    look = reader.look([file], "s.t", in_turn)
    assert look.schema == pa.schema([("c", expected_kind)])
    assert read_with(reader, [file]).good == [(expected,), (None,)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_stripes_are_found_behind_every_compression(tmp_path, codec):
    columns = {"n": list(range(200_000)), "s": [str(n * 7919) for n in range(200_000)]}
    file = write(tmp_path / "a", columns, compression=codec, stripe_size=100_000)
    reader = OrcReader()
    look = reader.look([file], "s.t", in_turn)
    pieces = reader.cut(look, 1, in_turn)
    assert len(pieces) == po.ORCFile(file.path).nstripes > 1
    outcome = read_with(reader, [file], 1)
    assert outcome.good == [(n, str(n * 7919)) for n in range(200_000)]
    last = pieces[-1]
    [*_, batch] = reader.read(last, pa.schema([look.schema.field("s")]))
    assert batch.column(0)[-1].as_py() == str(199_999 * 7919)
    assert batch.column(1).field("offset")[-1].as_py() == 199_999


def test_nanoseconds_are_told_or_cut(tmp_path):
    times = pa.array([0, 1_705_314_600_123_456_789, -1], pa.timestamp("ns"))
    file = write(tmp_path / "a", {"t": times})
    outcome = read_with(OrcReader(), [file])
    assert outcome.good == [(dt.datetime(1970, 1, 1, tzinfo=dt.UTC),)]
    assert outcome.bad == [
        (1, FINER, "2024-01-15 10:30:00.123456789"),
        (2, FINER, "1969-12-31 23:59:59.999999999"),
    ]
    assert [row[0].microsecond for row in read_with(OrcReader(truncates=True), [file]).good] == [0, 123456, 999999]


def micros(moment):
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


FIRST, LAST = micros(dt.datetime(1, 1, 1)), micros(dt.datetime.max)
SERIES = {
    # how values follow each other, which is how runs of them are written
    "any": lambda chance, _: chance.randint(FIRST, LAST),
    "equal": lambda *_: LAST,
    "steps": lambda _, number: LAST - LAST % 1_000_000 - number * 60_000_000,
    "steps of two": lambda chance, number: FIRST + number * chance.choice([1, 60]) * 1_000_000,
    "around 1970": lambda chance, _: chance.choice([LAST, 0, -1, 999, -500_000, -999_999, -1_000_001, FIRST]),
    "outliers": lambda chance, _: chance.choice([0] * 60 + [LAST]) + chance.randint(0, 10) * 1_000_000,
    "milliseconds": lambda chance, _: FIRST + chance.randint(0, 10**9) * 1000,
}
CODECS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("series", SERIES)
def test_years_that_arrow_cannot_hold(tmp_path, series, version):
    for seed in range(4):
        chance = random.Random(f"{series} {seed}")
        count = chance.choice([1, 3, 300, 4000])
        values = [None if chance.random() < 0.1 else SERIES[series](chance, number) for number in range(count)] + [LAST]
        columns = {"n": list(range(count + 1)), "t": pa.array(values, pa.timestamp("us"))}
        file = write(tmp_path / "a", columns, compression=chance.choice(CODECS), stripe_size=5000, file_version=version)
        reader = OrcReader()
        look = reader.look([file], "s.t", in_turn)
        batches = [batch for piece in reader.cut(look, 1, in_turn) for batch in reader.read(piece, look.schema)]
        assert [value for batch in batches for value in batch.column(1).cast(pa.int64()).to_pylist()] == values
        assert [number for batch in batches for number in batch.column(0).to_pylist()] == columns["n"]


def test_nanoseconds_beside_years_that_arrow_cannot_hold(tmp_path):
    file = write(
        tmp_path / "a", {"t": pa.array([LAST // 1_000_000], pa.timestamp("s")), "u": pa.array([7], pa.timestamp("ns"))}
    )
    assert [offset for offset, *_ in read_with(OrcReader(), [file]).bad] == [0]
    assert read_with(OrcReader(truncates=True), [file]).good == [
        (dt.datetime.max.replace(microsecond=0, tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC))
    ]


def test_years_that_arrow_cannot_hold_are_told_below_others(tmp_path):
    file = write(tmp_path / "a", {"l": pa.array([[LAST]], pa.list_(pa.timestamp("us")))})
    with pytest.raises(ValueUnrepresentableError, match=r"stripe 0, column 'l': a timestamp is beyond .*engine: spark"):
        read_with(OrcReader(), [file])


@pytest.mark.parametrize("kind", [pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())])])
def test_unions_are_refused(tmp_path, kind):
    values = pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1], pa.int8()), pa.array(["x"])], ["a", "b"]
    )
    file = write(tmp_path / "a", {"c": values})
    with pytest.raises(SchemaIncompatibleError, match=r"column 'c' is a union, which is not read\. .*engine: spark"):
        read_with(OrcReader(), [file])


@pytest.mark.parametrize("content", [b"ORC", b"no orc at all", b"ORC....\x03"])
def test_file_that_is_none_is_named(tmp_path, content):
    with pytest.raises(SourceFailedError, match=r"table 's\.t': '.*bad\.orc' (cannot be read|is not an ORC)"):
        read_with(OrcReader(), [store(tmp_path / "bad.orc", content)])


DAYS = "0001-01-01", "1000-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1900-01-01", "9999-12-31"


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize("codec", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_what_spark_wrote(spark, tmp_path, codec):
    values = ", ".join(f"(date'{day}', {number})" for number, day in enumerate(DAYS))
    spark.sql(
        f"SELECT d, timestamp'2020-01-02 03:04:05.123456' t, timestamp_ntz'1500-01-02 03:04:05.123456' n, "
        f"cast('ab' as char(4)) c, array(map('a', d)) m FROM VALUES {values} AS t(d, k) ORDER BY k"
    ).coalesce(1).write.option("compression", codec).orc(str(tmp_path / "p"))
    feed = open_feed(RowsRequest(lambda: spark, table(format="orc", path=str(tmp_path / "p"))))
    assert rows(feed) == [
        [day, "2020-01-02 03:04:05.123456+00:00", "1500-01-02 03:04:05.123456", "ab", [[["a", day]]]] for day in DAYS
    ]


MOMENTS = (
    "0001-01-01 00:00:00", "1500-02-28 12:34:56.123456", "1582-10-04 23:59:59.999999", "1582-10-15 00:00:00",
    "1677-01-01 00:00:00.000001", "1969-12-31 23:59:59.000001", "2015-01-01 00:00:00", "9999-12-31 23:59:59.999999",
)  # fmt: skip


@pytest.mark.spark
def test_moments_that_spark_wrote(spark, tmp_path):
    values = ", ".join(f"(timestamp'{moment}', {number})" for number, moment in enumerate(MOMENTS))
    written = spark.sql(f"SELECT t FROM VALUES {values}, (null, 99) AS v(t, k) ORDER BY k").coalesce(1)
    written.write.orc(str(tmp_path / "p"))
    feed = open_feed(RowsRequest(lambda: spark, table(format="orc", path=str(tmp_path / "p"))))
    assert rows(feed) == [*([f"{moment}+00:00"] for moment in MOMENTS), [None]]


TOLD = [
    # SQL that Spark writes, what is said
    (
        "SELECT struct(timestamp'9999-01-01') t",
        ValueUnrepresentableError,
        "column 't': a timestamp is beyond the years",
    ),
    ("SELECT interval '1' day i", SchemaIncompatibleError, "column 'i' is Spark's interval day, which is not read"),
    ("SELECT array(interval '1' year) i", SchemaIncompatibleError, "column 'i' is Spark's interval year"),
]


@pytest.mark.spark
@pytest.mark.parametrize(("sql", "error", "message"), TOLD)
def test_what_arrow_does_not_give_of_sparks_files_is_told(spark, tmp_path, sql, error, message):
    spark.sql(sql).coalesce(1).write.orc(str(tmp_path / "p"))
    asked = table(format="orc", path=str(tmp_path / "p"))
    with pytest.raises(LakeError) as raised:
        rows(open_feed(RowsRequest(lambda: spark, asked)))
    assert isinstance(raised.value, error)
    assert message in raised.value.message
    assert "engine: spark" in str(raised.value)
