"""Avro files read back by fastavro and by Java's own library, which did not write them."""

import datetime as dt
import io
import json
import re
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakewriter.avro.container import write_long
from lakewriter.documents.types import KIND, ORIGINAL, RECORD, UNION, UUID, Items, Leaf, Record, Union, make_stored_type
from lakewriter.encode.avro import AvroEncoder
from lakewriter.encode.avro_schema import make_avro_schema
from lakewriter.encode.avro_values import encode_varints
from lakewriter.naming import name_avro_fields
from lakewriter.spec.collection import Kind
from lakewriter.spec.encodings import AvroEncoding

VARINTS = [
    # value, its bytes; the first seven are the specification's own
    (0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (2, "04"), (-64, "7f"), (64, "8001"), (-65, "8101"),
    (2**31, "8080808010"), (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), VARINTS)
def test_varint(value, expected):
    assert write_long(value).hex() == encode_varints(pa.array([value]))[0].as_py().hex() == expected


class File(io.BytesIO):
    """A sink."""


def written(table: pa.Table, codec: str = "null", level: int | None = None, *, checksum: bool = False) -> bytes:
    sink = File()
    AvroEncoder(AvroEncoding(codec=codec, level=level, checksum=checksum)).write(
        table.schema, iter(table.to_batches()), sink, 1000
    )
    return sink.getvalue()


def read(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


UTC = dt.UTC
NOW = dt.datetime(2021, 5, 27, 17, 16, 45, 123456, UTC)
COLUMNS = [
    # type, values, values as fastavro gives them where those differ
    (pa.bool_(), [True, False, None], None),
    (pa.int32(), [-(2**31), 2**31 - 1, None], None),
    (pa.int64(), [-(2**63), 2**63 - 1, 0, None, 127, 128], None),
    (pa.float32(), [1.5, -0.0, None], None),
    (pa.float64(), [1e308, 5e-324, None, float("inf")], None),
    (pa.decimal128(38, 9), [Decimal("-12345678901234567890123456789.123456789"), Decimal("0.000000001"), None], None),
    (pa.string(), ["", "\n\r\t\"'\\", "Zürich 日本 🎉\x00", None, "x" * 5000], None),
    (pa.binary(), [b"", bytes(range(256)), None], None),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None], None),
    (pa.time64("us"), [dt.time(0, 0), dt.time(23, 59, 59, 999999), None], None),
    (pa.timestamp("us", "UTC"), [NOW, dt.datetime(1, 1, 1, tzinfo=UTC), None], None),
    (pa.timestamp("ms", "UTC"), [NOW.replace(microsecond=123000), None], None),
    (pa.timestamp("us"), [NOW.replace(tzinfo=None), None], None),
    (pa.list_(pa.int64()), [[1, None, 3], [], None, [4]], None),
    (pa.list_(pa.list_(pa.string())), [[["a"], [], None], None, []], None),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None], [{"a": 1, "b": None}, {}, None]),
    (pa.map_(pa.int64(), pa.string()), [[(1, "x")], None], [[{"key": 1, "value": "x"}], None]),
    (pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]),
     [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}, None], None),
    (pa.list_(pa.struct([("a", pa.int64())])), [[{"a": 1}, None], None], None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "expected"), COLUMNS, ids=[str(c[0])[:40] for c in COLUMNS])
def test_values(kind, values, expected):
    table = pa.table({"n": pa.array(range(len(values)), pa.int64()), "c": pa.array(values, kind)})
    # A slice has offsets into its buffers.
    table = pa.concat_tables([table, table]).combine_chunks().slice(len(values))
    assert [row["c"] for row in read(written(table))] == (expected or values)


CODECS = [
    ("null", None), ("bzip2", None), ("snappy", None),
    *(("deflate", level) for level in range(10)),
    *(("xz", level) for level in range(10)),
    *(("zstandard", level) for level in range(-5, 23)),
]  # fmt: skip
ROWS = pa.table({"id": range(3000), "text": [f"row {n % 50} ü\n" for n in range(3000)]})
EDGES = pa.table(
    {
        "id": pa.array([2**63 - 1, -(2**63), 2**53 + 1, None, 0], pa.int64()),
        "text": ["", None, '\n"é🎉\u2028', "\\\r\n", "\x00"],
        "list": pa.array([[1, None], [], None, [-1], [2]], pa.list_(pa.int64())),
    }
)


@pytest.mark.parametrize(("codec", "level"), CODECS)
def test_codec(codec, level):
    data = written(ROWS, codec, level)
    assert read(data) == ROWS.to_pylist()
    assert fastavro.reader(io.BytesIO(data)).codec == codec


def test_zstandard_checksum():
    plain, checked = written(ROWS, "zstandard", 3), written(ROWS, "zstandard", 3, checksum=True)
    assert len(checked) == len(plain) + 4
    assert read(checked) == ROWS.to_pylist()


def test_large_batches_are_cut_into_blocks():
    table = pa.table({"text": ["x" * 100_000] * 40})
    blocks = list(fastavro.block_reader(io.BytesIO(written(table))))
    assert [block.num_records for block in blocks] == [10, 10, 10, 10]


def test_no_rows():
    assert read(written(ROWS.slice(0, 0))) == []


UNION_TYPE = pa.struct(
    [pa.field("type", pa.string(), nullable=False), ("integer", pa.int64()), ("string", pa.string())]
)


def test_union():
    field = pa.field("u", UNION_TYPE, metadata={KIND: UNION})
    values = [
        {"type": "integer", "integer": 5, "string": None},
        None,
        {"type": "string", "integer": None, "string": "x"},
    ]
    table = pa.table([pa.array(values, UNION_TYPE)], schema=pa.schema([field]))
    assert make_avro_schema(table.schema)["fields"][0]["type"] == ["null", "long", "string"]
    assert read(written(table)) == [{"u": 5}, {"u": None}, {"u": "x"}]


OBJECT = Record((("x", Leaf(Kind.INTEGER)),))
TWO_UNIONS = Record(
    (
        ("a", Union((("object", OBJECT), ("string", Leaf(Kind.STRING))))),
        ("b", Union((("object", OBJECT), ("array", Items(OBJECT))))),
        ("c", Items(Union((("object", OBJECT), ("array", Items(OBJECT)))))),
    )
)


def test_unions_with_objects_beside_each_other():
    """Avro defines a name once: that of a branch begins with its field's, as all names below a field do."""
    t = make_stored_type(TWO_UNIONS, name_avro_fields)
    a, b = {"type": "object", "object": {"x": 1}, "string": None}, {"type": "object", "object": {"x": 2}, "array": None}
    c = [b, {"type": "array", "object": None, "array": [{"x": 3}]}]
    columns = [pa.array([value], field.type) for value, field in zip((a, b, c), t, strict=True)]
    table = pa.table(columns, schema=pa.schema(list(t), metadata={RECORD: b"users"}))
    names = re.findall(r'"name": "(\w+)", "namespace": "([\w.]+)"', json.dumps(make_avro_schema(table.schema)))
    assert [f"{namespace}.{name}" for name, namespace in names] == [
        "users.a.object",
        "users.b.object",
        "users.b.array.element",
        "users.c.element.object",
        "users.c.element.array.element",
    ]
    assert read(written(table)) == [{"a": {"x": 1}, "b": {"x": 2}, "c": [{"x": 2}, [{"x": 3}]]}]


def test_schema():
    inner = pa.struct([pa.field("a_b", pa.int64(), metadata={ORIGINAL: b"a-b"})])
    fields = [pa.field("id", pa.string(), nullable=False, metadata={KIND: UUID}), pa.field("r", inner)]
    schema = pa.schema(fields, metadata={RECORD: b"users"})
    record = {
        "type": "record",
        "name": "r",
        "namespace": "users",
        "fields": [
            {"name": "a_b", "type": ["null", "long"], "doc": "_airbyte_original_name:a-b", "default": None},
        ],
    }
    assert make_avro_schema(schema) == {
        "type": "record",
        "name": "users",
        "fields": [
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "r", "type": ["null", record], "default": None},
        ],
    }
    own = uuid.UUID(int=7)
    table = pa.table([[str(own)], pa.array([{"a_b": 1}], inner)], schema=schema)
    assert read(written(table)) == [{"id": own, "r": {"a_b": 1}}]


@pytest.mark.spark
@pytest.mark.parametrize(("codec", "level"), [("null", None), ("deflate", 9), ("bzip2", None), ("xz", 0),
                                              ("zstandard", 3), ("snappy", None)])  # fmt: skip
def test_java_reads_it(spark, tmp_path, codec, level):
    (tmp_path / "a.avro").write_bytes(written(EDGES, codec, level, checksum=codec == "zstandard"))
    jvm = spark._jvm
    generic = jvm.org.apache.avro.generic.GenericDatumReader()
    with_file = jvm.org.apache.avro.file.DataFileReader.openReader(jvm.java.io.File(str(tmp_path / "a.avro")), generic)
    rows = []
    while with_file.hasNext():
        rows.append(json.loads(with_file.next().toString()))
    assert rows == EDGES.to_pylist()
