"""Avro read without Spark: every type exactly or told, blocks and where files are cut, what fastavro and Java wrote."""

import datetime as dt
import io
import json
import random
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewriter.errors import SchemaIncompatibleError, SourceFailedError
from lakewriter.source.files import avro_blocks
from lakewriter.source.files.avro_blocks import ByteReader
from lakewriter.source.files.avro_reader import AvroReader
from lakewriter.source.files.spark_options import take_options
from tests.source.files.reading import hold, in_turn, read_with, store

UTC = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
FINER = "it is finer than microseconds; nanoseconds: truncate would cut it"
NOON = dt.datetime(2020, 1, 1, 12)


def write(kind, values, *, codec="null", interval=16_000, meta=None):
    """The bytes of a file of one column ``c`` whose values are written without regard to logical types."""
    schema = {"type": "record", "name": "top", "namespace": "a.b", "fields": [{"name": "c", "type": kind}]}
    out = io.BytesIO()
    fastavro.writer(
        out, drop_logical(schema), [{"c": value} for value in values], codec, interval, sync_marker=b"M" * 16
    )
    # The schema that is told: with logical types, in a header of the same entries.
    body = out.getvalue()
    end = body.index(b"M" * 16)
    entries = {
        "avro.codec": codec.encode(),
        "avro.schema": json.dumps(schema).encode(),
        **{name: value.encode() for name, value in (meta or {}).items()},
    }
    return b"Obj\x01" + write_entries(entries) + body[end:]


def write_entries(entries):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema({"type": "map", "values": "bytes"}), entries)
    return out.getvalue()


def drop_logical(kind):
    if isinstance(kind, dict):
        return {name: drop_logical(value) for name, value in kind.items() if name not in ("logicalType", "precision")}
    return [drop_logical(part) for part in kind] if isinstance(kind, list) else kind


def logical(kind, meaning, **more):
    return {"type": kind, "logicalType": meaning, **more}


def fixed(size, meaning, **more):
    return logical("fixed", meaning, name="f", size=size, **more)


def micros(moment):
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


UUID = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
LIST = pa.list_(pa.field("element", pa.string()))
TYPES = [
    # the type in the file, a value as it is stored, the column's type, its value
    ("boolean", True, pa.bool_(), True),
    ("int", -(2**31), pa.int32(), -(2**31)),
    ("long", 2**63 - 1, pa.int64(), 2**63 - 1),
    ("float", 1.5, pa.float32(), 1.5),
    ("double", 5e-324, pa.float64(), 5e-324),
    ("bytes", b"\0\xff", pa.binary(), b"\0\xff"),
    ("string", "é\0", pa.string(), "é\0"),
    ("null", None, pa.null(), None),
    (["null", "string"], "x", pa.string(), "x"),
    (["long"], 7, pa.int64(), 7),
    (["int", "null", "long"], 2**40, pa.int64(), 2**40),
    (["float", "double"], 0.1, pa.float64(), 0.1),
    (["null", "int", "string"], "x", pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
     {"member0": None, "member1": "x"}),
    (["boolean", "null"], None, pa.bool_(), None),
    ({"type": "enum", "name": "e", "symbols": ["RED", "GREEN"]}, "GREEN", pa.string(), "GREEN"),
    ({"type": "fixed", "name": "f", "size": 3}, b"\0\1\2", pa.binary(), b"\0\1\2"),
    ({"type": "array", "items": ["null", "string"]}, ["a", None], LIST, ["a", None]),
    ({"type": "map", "values": "int"}, {"k": 1}, pa.map_(pa.string(), pa.field("value", pa.int32())), [("k", 1)]),
    ({"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}, {"x": 1},
     pa.struct([("x", pa.int32())]), {"x": 1}),
    (logical("bytes", "decimal", precision=38, scale=2), b"\xff\x6a", pa.decimal128(38, 2), Decimal("-1.50")),
    (logical("bytes", "decimal", precision=4), b"\0\0\0\0" * 9 + b"\x01", pa.decimal128(4, 0), Decimal(1)),
    (fixed(20, "decimal", precision=38), (10**38 - 1).to_bytes(20, "big"), pa.decimal128(38, 0), Decimal(10**38 - 1)),
    (logical("string", "uuid"), str(UUID), pa.string(), str(UUID)),
    (fixed(16, "uuid"), UUID.bytes, pa.string(), str(UUID)),
    (fixed(12, "duration"), b"\3\0\0\0\2\0\0\0\xdc\5\0\0", pa.string(), "P3M2DT1.5S"),
    (logical("int", "date"), -719_162, pa.date32(), dt.date(1, 1, 1)),
    (logical("int", "time-millis"), 45_000_250, pa.string(), "12:30:00.25"),
    (logical("long", "time-micros"), 45_000_000_001, pa.string(), "12:30:00.000001"),
    (logical("long", "timestamp-millis"), micros(NOON) // 1000, UTC, NOON.replace(tzinfo=dt.UTC)),
    (logical("long", "timestamp-micros"), micros(dt.datetime.max), UTC, dt.datetime.max.replace(tzinfo=dt.UTC)),
    (logical("long", "timestamp-nanos"), micros(NOON) * 1000, UTC, NOON.replace(tzinfo=dt.UTC)),
    (logical("long", "local-timestamp-millis"), micros(NOON) // 1000, LOCAL, NOON),
    (logical("long", "local-timestamp-micros"), micros(dt.datetime(1, 1, 1)), LOCAL, dt.datetime(1, 1, 1)),
    (logical("long", "local-timestamp-nanos"), micros(NOON) * 1000, LOCAL, NOON),
    # What a specification does not know of a type is ignored.
    (logical("string", "unheard"), "x", pa.string(), "x"),
    (logical("long", "date"), 5, pa.int64(), 5),
    (fixed(3, "uuid"), b"abc", pa.binary(), b"abc"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected_kind", "expected"), TYPES)
def test_types(kind, value, expected_kind, expected):
    file, reader = hold(write(kind, [value])), AvroReader()
    assert reader.look([file], "s.t", in_turn).schema == pa.schema([("c", expected_kind)])
    assert read_with(reader, [file]).good == [(expected,)]


@pytest.mark.parametrize(("kind", "value", "expected_kind", "expected"), TYPES)
def test_types_below_others(kind, value, expected_kind, expected):
    inner = {"type": "record", "name": "in", "fields": [{"name": "x", "type": kind}]}
    file = hold(write({"type": "map", "values": {"type": "array", "items": ["null", inner]}}, [{"k": [{"x": value}]}]))
    assert read_with(AvroReader(), [file]).good == [([("k", [{"x": expected}])],)]


YEAR_20000 = 568_971_820_800_000_000


def test_years_beyond_9999():
    file, reader = hold(write(logical("long", "timestamp-micros"), [YEAR_20000])), AvroReader()
    look = reader.look([file], "s.t", in_turn)
    [batch] = reader.read(reader.cut(look, 100_000, in_turn)[0], look.schema)
    assert batch.column(0).cast(pa.int64()).to_pylist() == [YEAR_20000]


BAD = [
    # the type in the file, a value as it is stored, what is said, and how the value is shown
    (logical("long", "timestamp-nanos"), 1_705_314_600_123_456_789, FINER, "2024-01-15 10:30:00.123456789"),
    (logical("long", "timestamp-millis"), 2**62, "it is beyond the range of timestamps in microseconds",
     "4611686018427387904 ms since 1970"),
    (logical("int", "time-millis"), 86_400_000, "it is not a time of day", "86400000 ms"),
    (logical("bytes", "decimal", precision=2), b"\x64", "it has more digits than its type", "100E-0"),
    (logical("bytes", "decimal", precision=2), b"", "it has no byte, and is not a number", ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "reason", "shown"), BAD)
def test_value_without_an_exact_one_is_a_bad_row(kind, value, reason, shown):
    file = hold(write(["null", kind], [None, value, None]))
    outcome = read_with(AvroReader(), [file])
    assert (outcome.good, outcome.bad) == ([(None,), (None,)], [(1, reason, shown)])


def test_text_that_is_none_is_a_bad_row():
    content = write("string", ["caf_", "ok"]).replace(b"caf_", b"caf\xe9")
    outcome = read_with(AvroReader(), [hold(content)])
    assert outcome.good == [("ok",)]
    assert [(offset, shown) for offset, _, shown in outcome.bad] == [(0, "caf\\xe9")]


def test_nanoseconds_are_cut_where_the_table_says_so():
    file = hold(write(logical("long", "timestamp-nanos"), [1_705_314_600_123_456_789, -1]))
    good = read_with(AvroReader(truncates=True), [file]).good
    assert [row[0].microsecond for row in good] == [123456, 999999]


NODE = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
REFUSED = [
    # the type in the file, what is said
    (logical("bytes", "decimal", precision=39), r"'c' is decimal\(39,0\), beyond 38 digits"),
    (logical("bytes", "decimal", precision=2, scale=3), "'c' is a decimal of 2 digits, 3 of them behind the point"),
    (logical("bytes", "big-decimal"), "'c' is a decimal whose scale differs from value to value"),
    (NODE, r"'c' is a record 'a\.b\.node' that has itself inside"),
    ({"type": "int", "spark.sql.catalyst.type": "interval year"}, "'c' is Spark's interval year"),
]


@pytest.mark.parametrize(("kind", "message"), REFUSED)
def test_types_that_are_not_read(kind, message):
    value = {"next": None} if kind is NODE else 1 if kind["type"] == "int" else b"\1"
    with pytest.raises(
        SchemaIncompatibleError, match=rf"table 's\.t': 'x\.avro': column {message}.*not read"
    ) as raised:
        AvroReader().look([hold(write(kind, [value]), "x.avro")], "s.t", in_turn)
    assert "engine: spark" in raised.value.remedy or "Write it" in raised.value.remedy


def test_rows_that_are_no_records():
    out = io.BytesIO()
    fastavro.writer(out, "long", [1, 2])
    with pytest.raises(SchemaIncompatibleError, match=r"'x\.avro': its rows are .*long.*, expected records"):
        AvroReader().look([hold(out.getvalue(), "x.avro")], "s.t", in_turn)


def test_names_with_namespaces():
    inner = {"type": "enum", "name": "x.E", "symbols": ["A"]}
    record = {"type": "record", "name": "R", "namespace": "y", "fields": [
        {"name": "one", "type": inner}, {"name": "two", "type": "x.E"},
        {"name": "s", "type": {"type": "fixed", "name": "S", "size": 1}}, {"name": "t", "type": "S"},
    ]}  # fmt: skip
    value = {"one": "A", "two": "A", "s": b"1", "t": b"2"}
    assert read_with(AvroReader(), [hold(write(record, [value]))]).good == [(value,)]


def test_two_names_that_differ_by_case():
    schema = {"type": "record", "name": "r", "fields": [{"name": "Id", "type": "int"}, {"name": "id", "type": "int"}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"Id": 1, "id": 2}])
    one = hold(out.getvalue(), "1.avro")
    other = hold(write("int", [3]).replace(b'"c"', b'"k"'), "2.avro")
    outcome = read_with(AvroReader(), [one, other])
    assert (outcome.names, outcome.good) == (["Id", "id", "k"], [(1, 2, None), (None, None, 3)])


def test_declared_columns_alone():
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": "int"} for n in "abc"]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"a": 1, "b": 2, "c": 3}])
    assert read_with(AvroReader(pa.schema([("c", pa.int32()), ("A", pa.int32())])), [hold(out.getvalue())]).good == [
        (3, 1)
    ]


CODECS = ["null", "deflate", "snappy", "bzip2", "zstandard", "xz"]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 500, 5000, 1 << 30])
def test_pieces_are_all_rows_once(codec, size):
    values = [f"{number}-{number * 7919}" for number in range(3000)]
    file, reader = hold(write("string", values, codec=codec, interval=700)), AvroReader()
    look = reader.look([file], "s.t", in_turn)
    pieces = reader.cut(look, size, in_turn)
    assert (len(pieces) > 1) == (file.size > size)
    assert read_with(reader, [file], size).good == [(value,) for value in values]
    rows = [mark["offset"] for piece in pieces for batch in reader.read(piece, look.schema)
            for mark in batch.column(1).to_pylist()]  # fmt: skip
    assert rows == list(range(3000))


@pytest.mark.parametrize("size", [1, 100, 1000, 4000])
def test_marker_within_a_row_misleads_nobody(size):
    # A file of the same marker as a value of the other: its blocks look like those of the file around it.
    inner = write("string", [f"inner {number}" for number in range(200)], interval=100)
    values = [inner, b"M" * 16, b"x" * 300 + inner + b"M" * 16]
    file = hold(write("bytes", values * 3, interval=1))
    assert read_with(AvroReader(), [file], size).good == [(value,) for value in values * 3]


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 300), st.integers(1, 200), st.sampled_from(CODECS))
@settings(max_examples=30, deadline=None)
def test_cuts_anywhere(lengths, size, interval, codec):
    values = ["M" * length for length in lengths]
    file = hold(write("string", values, codec=codec, interval=interval))
    assert read_with(AvroReader(), [file], size).good == [(value,) for value in values]


BLOCKS = write("string", [f"{number}" * 20 for number in range(100)], interval=200)
MARKERS = [place for place in range(len(BLOCKS)) if BLOCKS.startswith(b"M" * 16, place)]
HEAD = MARKERS[0] + 16
DAMAGED = [
    # the file, what is said
    (BLOCKS[:-1], rf"'x\.avro' cannot be read: the block at byte {MARKERS[-2] + 16}: it ends in the middle"),
    (BLOCKS[: MARKERS[3] + 17], rf"the block at byte {MARKERS[3] + 16}: it ends in the middle of a block"),
    (BLOCKS[: MARKERS[2]] + b"N" + BLOCKS[MARKERS[2] + 1 :],
     rf"the block at byte {MARKERS[1] + 16} has other bytes behind it, at byte {MARKERS[2]}, than the sync marker"),
    (BLOCKS + BLOCKS, rf"the block at byte {len(BLOCKS)}"),
    (BLOCKS + b"\x01\x02", rf"the block at byte {len(BLOCKS)}: it says that it has -1 rows"),
    (BLOCKS[:HEAD] + b"\x7f" + BLOCKS[HEAD + 1 :], rf"the block at byte {HEAD}: it says that it has -64 rows"),
    (BLOCKS[: HEAD + 3] + b"\x00" + BLOCKS[HEAD + 4 :], rf"the block at byte {HEAD} is damaged"),
    (BLOCKS[:20], r"'x\.avro' cannot be read: it ends in the middle of a block"),
    (b"Obj\x01\0" + b"M" * 16, r"'x\.avro': its header has no schema"),
    (b"PAR1 and so on", r"table 's\.t': 'x\.avro' is not an Avro file: it is a Parquet file"),
    (b"a,b\n1,2\n", r"table 's\.t': 'x\.avro' is not an Avro file: it begins with"),
    (b"", r"table 's\.t': 'x\.avro' is empty, without any byte"),
    (write("string", ["a"]).replace(b"null", b"brot"), r"its codec is 'brot', expected null, deflate"),
]  # fmt: skip


@pytest.mark.parametrize("size", [300, 1 << 30])
@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_damage_is_told_with_its_place(content, message, size):
    with pytest.raises((SourceFailedError, SchemaIncompatibleError), match=message):
        read_with(AvroReader(), [hold(content, "x.avro")], size)


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_bytes_are_told_or_other_values(codec):
    """``snappy``, ``bzip2`` and ``xz`` have checksums; of the others other values may come, never other rows."""
    values = [f"{number}" * 30 for number in range(40)]
    content, chance = write("string", values, codec=codec), random.Random(codec)
    start = content.index(b"M" * 16) + 16
    for _ in range(60):
        place = chance.randrange(start, len(content))
        damaged = content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
        try:
            outcome = read_with(AvroReader(), [hold(damaged)])
        except SourceFailedError:
            continue
        assert codec in ("null", "deflate", "zstandard") or [row[0] for row in outcome.good] == values
        assert len(outcome.good) + len(outcome.bad) == 40


def test_file_without_rows_and_one_without_bytes():
    empty, none = hold(write("int", []), "1.avro"), hold(b"", "2.avro")
    outcome = read_with(AvroReader(), [empty, none, hold(write("long", [1]), "3.avro")])
    assert (outcome.names, outcome.good) == (["c"], [(1,)])
    assert any("'2.avro' is empty" in note for note in outcome.notes)
    assert any("column 'c' is int in '1.avro', bigint in '3.avro'" in note for note in outcome.notes)


def test_long_header(monkeypatch):
    monkeypatch.setattr(avro_blocks, "_FIRST_BYTES", 10)
    file = hold(write("int", list(range(10)), meta={"note": "x" * 5000}, interval=1))
    assert read_with(AvroReader(), [file], 50).good == [(n,) for n in range(10)]


def test_file_that_changes_is_told(tmp_path):
    reader, path = AvroReader(), tmp_path / "a.avro"
    file = store(path, write("int", list(range(1000)), interval=100))
    look = reader.look([file], "s.t", in_turn)
    pieces = reader.cut(look, 200, in_turn)
    path.write_bytes(write("int", list(range(1000)), interval=90))
    with pytest.raises(SourceFailedError, match="has changed since the load listed it"):
        list(reader.read(pieces[1], look.schema))


SPARK = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
JULIAN = [
    # type, stored, the notes' time zone, the value: the day that Java's hybrid calendar calls so
    (logical("int", "date"), -171_655, "UTC", dt.date(1500, 1, 1)),
    (logical("long", "timestamp-micros"), -171_655 * 86_400_000_000, "UTC", dt.datetime(1500, 1, 1, tzinfo=dt.UTC)),
    (logical("long", "local-timestamp-micros"), micros(dt.datetime(1500, 1, 1)), "UTC", dt.datetime(1500, 1, 1)),
    (logical("int", "date"), 18_262, "Asia/Tokyo", dt.date(2020, 1, 1)),
]


@pytest.mark.parametrize(("kind", "value", "zone", "expected"), JULIAN)
def test_days_that_spark_counted_by_the_julian_calendar(kind, value, zone, expected):
    meta = SPARK | {"org.apache.spark.timeZone": zone}
    assert read_with(AvroReader(), [hold(write(kind, [value], meta=meta))]).good == [(expected,)]


def test_options_of_sparks_reader():
    take_options("avro", {"ignoreExtension": "true", "mode": "FAILFAST", "datetimeRebaseMode": "CORRECTED"}, "s.t")
    for name in ("avroSchema", "avroSchemaUrl", "recursiveFieldMaxDepth", "enableStableIdentifiersForUnionType"):
        with pytest.raises(Exception, match=rf"{name} is .*engine: spark"):
            take_options("avro", {name: "1"}, "s.t")


def test_random_rows_of_fastavro():
    """Random schemas and values, by fastavro's own writer and reader."""
    for seed in range(40):
        chance = random.Random(seed)
        schema = make_record(chance, 0)
        rows = [make_value(chance, schema) for _ in range(30)]
        out = io.BytesIO()
        fastavro.writer(out, schema, rows, chance.choice(CODECS), chance.choice([1, 100, 10_000]))
        out.seek(0)
        read: Any = fastavro.reader(out)
        expected = [tuple(expect(row[f["name"]], f["type"]) for f in schema["fields"]) for row in read]
        assert read_with(AvroReader(), [hold(out.getvalue())], chance.choice([50, 1000, 10**6])).good == expected


def make_kind(chance, depth):
    plain = ["boolean", "int", "long", "double", "string", "bytes"]
    if depth > 2 or chance.random() < 0.6:
        return chance.choice(plain)
    shape = chance.choice(["array", "map", "record", "union"])
    if shape == "record":
        return make_record(chance, depth + 1)
    if shape == "union":
        return ["null", chance.choice(plain)]
    return {"type": shape, {"array": "items", "map": "values"}[shape]: make_kind(chance, depth + 1)}


def make_record(chance, depth):
    fields = [{"name": f"n{place}", "type": make_kind(chance, depth)} for place in range(chance.randint(1, 4))]
    return {"type": "record", "name": f"r{chance.randrange(10**9)}", "fields": fields}


def make_value(chance, kind):
    if isinstance(kind, list):
        return None if chance.random() < 0.5 else make_value(chance, kind[1])
    name = kind["type"] if isinstance(kind, dict) else kind
    count = chance.randint(0, 3)
    makers = {
        "boolean": lambda: chance.random() < 0.5,
        "int": lambda: chance.choice([0, -1, 2**31 - 1, -(2**31), chance.randrange(1000)]),
        "long": lambda: chance.choice([0, -1, 2**63 - 1, -(2**63), chance.randrange(10**12)]),
        "double": lambda: chance.choice([0.0, -1e300, 5e-324, float("inf"), chance.random()]),
        "string": lambda: chance.choice(["", "a", "é\0", "\U0001f600" * 40]),
        "bytes": lambda: chance.randbytes(chance.randint(0, 40)),
        "array": lambda: [make_value(chance, kind["items"]) for _ in range(count)],
        "map": lambda: {f"k{place}": make_value(chance, kind["values"]) for place in range(count)},
        "record": lambda: {each["name"]: make_value(chance, each["type"]) for each in kind["fields"]},
    }
    return makers[name]()


def expect(value, kind):
    """A value of fastavro's as Arrow gives it: maps are lists of pairs."""
    if isinstance(kind, list):
        kind = kind[1]
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "array":
        return [expect(item, kind["items"]) for item in value]
    if kind["type"] == "map":
        return [(key, expect(item, kind["values"])) for key, item in value.items()]
    return {each["name"]: expect(value[each["name"]], each["type"]) for each in kind["fields"]}


JAVA = {
    "type": "record", "name": "top", "namespace": "n.s", "fields": [
        {"name": "id", "type": "long"},
        {"name": "t", "type": ["null", {"type": "string", "avro.java.string": "String"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "u", "type": ["int", "string", "E"]},
        {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "E"}}},
        {"name": "r", "type": ["null", {"type": "record", "name": "R", "fields": [{"name": "x", "type": "float"}]}]},
    ],
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("codec", CODECS)
def test_what_javas_library_wrote(spark, tmp_path, codec):
    """Avro's own library, which is among Spark's jars, also cuts arrays and maps into blocks of its own."""
    avro, path, values = spark._jvm.org.apache.avro, tmp_path / "a.avro", random.Random(codec)
    schema = getattr(avro, "Schema$Parser")().parse(json.dumps(JAVA))
    writer = avro.file.DataFileWriter(avro.generic.GenericDatumWriter(schema)).setSyncInterval(200)
    writer.setCodec(avro.file.CodecFactory.fromString(codec))
    writer.create(schema, spark._jvm.java.io.File(str(path)))
    expected = []
    for number in range(40):
        text = values.choice([None, "", "é\0"])
        union: dict[str, Any] = values.choice([{"int": 5}, {"string": "x"}, {"n.s.E": "B"}])
        record = values.choice([None, {"n.s.R": {"x": 0.5}}])
        lists = {"k": ["A"] * values.randrange(4)}
        row = {"id": number, "t": None if text is None else {"string": text}, "at": number * 1_000_000, "e": "A",
               "u": union, "m": lists, "r": record}  # fmt: skip
        decoder = avro.io.DecoderFactory.get().jsonDecoder(schema, json.dumps(row))
        writer.append(avro.generic.GenericDatumReader(schema).read(None, decoder))
        members = {name: union.get(key) for name, key in zip(UNION, ("int", "string", "n.s.E"), strict=True)}
        moment = dt.datetime(1970, 1, 1, 0, 0, number, tzinfo=dt.UTC)
        expected.append((number, text, moment, "A", members, list(lists.items()), record and record["n.s.R"]))
    writer.close()
    assert read_with(AvroReader(), [store(path, path.read_bytes())], 300).good == expected


UNION = ("member0", "member1", "member2")


def test_length_beyond_the_file_is_not_read():
    """What looks like a marker may be part of a row, and a length behind it any number."""
    asked = []

    def stream():
        for block in (b"ab", b"cd", b"ef"):
            asked.append(block)
            yield block

    reader = ByteReader(stream(), 100, 106)
    assert (reader.read(1), reader.read(6), asked) == (b"a", b"", [b"ab"])
    assert (reader.read(5), reader.at, reader.read(1)) == (b"bcdef", 106, b"")
