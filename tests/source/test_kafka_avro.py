"""Events in Avro become rows, typed by the schemas of a registry or of a file.

The forms of the schemas are those of AvroData.java, which Confluent's Avro converter makes of Connect's schemas:
https://github.com/confluentinc/schema-registry/blob/master/avro-data/src/main/java/io/confluent/connect/avro/AvroData.java
"""

import base64
import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any, Final

import pytest

from lakewriter.errors import SourceFailedError, SourceUnreachableError, SpecInvalidError
from lakewriter.source.change_events.connect_schemas import describe_avro, read_row_types
from lakewriter.source.kafka_avro import AvroDecoder, _ask_registry
from lakewriter.source.request import RowsRequest
from lakewriter.source.spark_failures import Origin
from lakewriter.source.spark_rows import open_batch
from lakewriter.source.table_frames import Loaded, unfold_events
from lakewriter.spec.access import TRUSTED, SecretText
from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.table_spec import AvroValues, ColumnType, Read
from tests.source.test_change_events import make_table
from tests.source.test_kafka_values import describe
from tests.support.schema_registry import serve_registry, write_avro, write_registered

TIME: Final = "io.debezium.time"
CONNECT: Final = "org.apache.kafka.connect.data"


def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


DECIMAL: Final = {
    "type": "bytes",
    "scale": 2,
    "precision": 12,
    "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"},
    "connect.name": f"{CONNECT}.Decimal",
    "logicalType": "decimal",
}
MICROS: Final = {"type": "long", "connect.version": 1, "connect.name": f"{TIME}.MicroTimestamp"}
DATE: Final = {"type": "int", "connect.version": 1, "connect.name": f"{TIME}.Date"}
ID: Final = {"name": "id", "type": "int"}
ORDERS: Final = [
    ID,
    optional("name", "string"),
    optional("amount", DECIMAL),
    optional("paid_at", MICROS),
    optional("day", DATE),
    optional("raw", "bytes"),
    optional("price", "double"),
    optional("tags", {"type": "array", "items": ["null", "string"]}),
]


def make_envelope(*columns: Any) -> dict[str, Any]:
    """Return the schema of events as Connect's Avro converter has it: the second image refers to the first by name."""
    value = {"type": "record", "name": "Value", "fields": list(columns), "connect.name": "shop.crm.orders.Value"}
    source = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector.postgresql",
        "fields": [
            {"name": "connector", "type": "string"},
            {"name": "ts_ms", "type": "long"},
            {
                "name": "snapshot",
                "type": [
                    {
                        "type": "string",
                        "connect.version": 1,
                        "connect.parameters": {"allowed": "true,false"},
                        "connect.default": "false",
                        "connect.name": "io.debezium.data.Enum",
                    },
                    "null",
                ],
                "default": "false",
            },
            optional("lsn", "long"),
        ],
        "connect.name": "io.debezium.connector.postgresql.Source",
    }
    block = {"type": "record", "name": "block", "namespace": "event", "fields": [{"name": "id", "type": "string"}]}
    fields = [optional("before", value), optional("after", "Value"), {"name": "source", "type": source}]
    fields += [optional("transaction", block), {"name": "op", "type": "string"}, optional("ts_ms", "long")]
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.crm.orders",
        "fields": fields,
        "connect.name": "shop.crm.orders.Envelope",
    }


def make_event(op: str, lsn: int, after: object, before: object = None) -> dict[str, Any]:
    source = {"connector": "postgresql", "ts_ms": 5, "snapshot": "false", "lsn": lsn}
    return {"before": before, "after": after, "source": source, "op": op}


V1: Final = make_envelope(*ORDERS)
# A column is added, and an identifier becomes longer, while the topic goes on.
V2: Final = make_envelope({"name": "id", "type": "long"}, *ORDERS[1:], optional("status", "string"))
ANNE: Final = {
    "id": 1,
    "name": "Anne ü",
    "amount": Decimal("-12.50"),
    "paid_at": 1559033904863000,
    "day": 17000,
    "raw": b"\x00\xff",
    "price": 0.1,
    "tags": ["a", None],
}
NOTHING: Final = dict.fromkeys(ANNE)


@pytest.fixture
def registry():
    _ask_registry.cache_clear()
    with serve_registry() as registry:
        registry.add(7, V1)
        registry.add(8, V2)
        yield registry


@pytest.fixture
def open_request(spark):
    def open_request(values: AvroValues, *messages: bytes | None, keys: Sequence[bytes] = (), **source: Any):
        frame = spark.createDataFrame(list(zip_longest(messages, keys)), "value BINARY, key BINARY")
        read = Read(format="kafka", values=values)
        table = make_table(ChangeEvents(form="debezium"), read=read, **source)
        return Loaded(frame), RowsRequest(lambda: spark, table)

    return open_request


@pytest.fixture
def unfold(open_request):
    def unfold(values: AvroValues, *messages: bytes | None, **source: Any):
        """Return the rows, and the types that the events give."""
        loaded = unfold_events(*open_request(values, *messages, **source))
        rows = [describe(row.asDict(recursive=True)) for row in loaded.frame.collect()]
        return rows, {name: kind.type for name, kind in loaded.declared.items()}

    return unfold


@pytest.mark.spark
def test_values_of_a_registry(unfold, registry):
    other = make_envelope(ID)
    registry.add(9, {"type": "string"})
    registry.add(10, "", schemaType="PROTOBUF")
    registry.add(11, {"type": "no type"})
    registry.add(12, other, references=[{"name": "a", "subject": "a", "version": 1}])
    first = write_registered(7, V1, make_event("c", 1, ANNE))
    second = write_registered(8, V2, make_event("u", 2, ANNE | {"id": 2**40, "status": "new"}, ANNE))
    gone = write_registered(7, V1, make_event("d", 3, None, NOTHING | {"id": 1}))
    bad = {
        b"\x00\x00\x00\x00\x09\x02a": "schema 9 cannot be read: it is of string, expected a record",
        b"\x00\x00\x00\x00\x0a\x02a": "schema 10 of the schema registry is of type PROTOBUF, expected AVRO",
        b"\x00\x00\x00\x00\x0b\x02a": "schema 11 cannot be read: it has no type 'no type'",
        b"\x00\x00\x00\x00\x0c\x02a": "schema 12 of the schema registry refers to other schemas, which is not read",
        b"\x00\x00\x00\x00\x63\x02a": "the schema registry has no schema 99",
        first[:-3]: "its bytes are no value of schema 7",
        first + b"\0": "it has bytes behind its value of schema 7",
        b"\x00\x00\x00\x00\x07": "its bytes are no value of schema 7",
        **dict.fromkeys(
            [b"", b"\0", b'{"op": "c"}'],
            "expected Avro with its schema's id before it, as Confluent's converter writes it: a zero byte first",
        ),
        b"\x03\x00" + bytes(16): "expected Avro with its schema's id before it, as Confluent's converter writes it: a "
        "zero byte first. Values of the AWS Glue Schema Registry, with a 3 first, are not read",
    }
    rows, declared = unfold(AvroValues(registry=registry.url), first, second, gone, None, *bad)
    amount = base64.b64encode((-1250).to_bytes(2, "big", signed=True)).decode()
    anne = ANNE | {"amount": amount, "raw": "AP8=", "status": None}
    assert rows[:4] == [
        ("upsert", anne, (0, 1, 1, 0)),
        ("upsert", anne | {"id": 2**40, "status": "new"}, (0, 1, 2, 0)),
        ("delete", NOTHING | {"id": 1, "status": None}, (0, 1, 3, 0)),
        "tombstone",
    ]
    texts = {base64.b64encode(value).decode(): reason for value, reason in bad.items()}
    assert {value: reason for reason, value in rows[4:]} == texts
    assert declared == {
        "id": "bigint",
        "name": "string",
        "amount": "decimal(12,2)",
        "paid_at": "timestamp_ntz",
        "day": "date",
        "raw": "binary",
        "price": "double",
        "status": "string",
    }
    assert sorted(registry.asked) == sorted(f"/schemas/ids/{number}" for number in (7, 8, 9, 10, 11, 12, 99))


@pytest.mark.spark
def test_typed_rows_of_batches(open_request, registry):
    """The second batch has an id that was not there before: each known one is asked for once."""
    values = AvroValues(registry=registry.url)
    first, second = (
        open_request(values, write_registered(7, V1, make_event("c", 1, ANNE))),
        open_request(
            values,
            write_registered(7, V1, make_event("u", 2, ANNE)),
            write_registered(8, V2, make_event("u", 3, ANNE | {"id": 2**40, "status": "new", "price": float("nan")})),
        ),
    )
    tables = list[list[dict[str, Any]]]()
    for loaded, request in (first, second):
        feed = open_batch(loaded, request, Origin("t", "kafka"), 1)
        tables.append(feed.read_first(10).select([*ANNE, *(["status"] if tables else [])]).to_pylist())
    expected = ANNE | {"paid_at": datetime.datetime(2019, 5, 28, 8, 58, 24, 863000), "day": datetime.date(2016, 7, 18)}
    assert tables[0] == [expected]
    assert tables[1][0] == expected | {"status": None}
    assert str(tables[1][1]) == str(expected | {"id": 2**40, "status": "new", "price": float("nan")})
    assert registry.asked == ["/schemas/ids/7", "/schemas/ids/8"]


# https://debezium.io/documentation/reference/3.2/connectors/mongodb.html#mongodb-change-events-value
JSON: Final = {"type": "string", "connect.version": 1, "connect.name": "io.debezium.data.Json"}
OF_MONGODB: Final = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        optional("before", JSON),
        optional("after", JSON),
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [
            {"name": "connector", "type": "string"}, {"name": "ts_ms", "type": "long"}, {"name": "ord", "type": "int"},
            optional("wallTime", "long")]}},
        optional("op", "string"),
    ],
}  # fmt: skip
KEY: Final = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "string"}]}


@pytest.mark.spark
def test_documents_and_the_keys_of_their_messages(unfold, registry):
    """A delete is known by the message's key, in Avro or in JSON; relational tables' keys are not read."""
    registry.add(20, OF_MONGODB)
    registry.add(21, KEY)

    def make(op: str, ord_: int, after: str | None = None) -> bytes:
        source = {"connector": "mongodb", "ts_ms": 1558965508000, "ord": ord_}
        return write_registered(20, OF_MONGODB, {"source": source, "op": op, "after": after})

    key = write_registered(21, KEY, {"id": '{"$oid" : "596e275826f08b2730779e1f"}'})
    anne = make("c", 1, '{"_id" : {"$oid" : "596e275826f08b2730779e1f"}, "name": "Anne"}')
    keys = [key, key, json.dumps({"id": "7"}).encode(), key[:-1], b"\xff"]
    deletes = [make("d", number) for number in (2, 3, 4, 5)]
    columns = {"_id": ColumnType(type="string"), "name": ColumnType(type="string")}
    values = AvroValues(registry=registry.url)
    rows, declared = unfold(values, anne, *deletes, keys=keys, columns=columns, primary_key=("_id",))
    assert declared == {}
    assert rows[:3] == [
        ("upsert", {"_id": "596e275826f08b2730779e1f", "name": "Anne"}, (0, 1, 1558965508000, 10**10)),
        ("delete", {"_id": "596e275826f08b2730779e1f", "name": None}, (0, 1, 1558965508000, 2 * 10**10)),
        ("delete", {"_id": "7", "name": None}, (0, 1, 1558965508000, 3 * 10**10)),
    ]
    assert [row[0][:51] for row in rows[3:]] == ["it deletes a document and has no 'before', and its "] * 2
    registry.asked.clear()
    unfold(values, write_registered(7, V1, make_event("c", 1, ANNE)), keys=[key])
    assert registry.asked == ["/schemas/ids/7"]


@pytest.mark.spark
def test_values_of_a_file(unfold, open_request, tmp_path):
    file = tmp_path / "orders.avsc"
    file.write_text(json.dumps(V1), "utf-8")
    values = AvroValues(schema_path=str(file))
    event, framed = write_avro(V1, make_event("c", 1, ANNE)), write_registered(7, V1, make_event("c", 1, ANNE))
    rows, _ = unfold(values, event, None, framed, b"")
    assert [row[1]["id"] for row in rows[:1]] == [1]
    assert rows[1] == "tombstone"
    assert [row[0] for row in rows[2:]] == ["its bytes are no value of the schema"] * 2
    file.write_text("{", "utf-8")
    with pytest.raises(SourceFailedError, match="has no schema of its values: the schema cannot be read"):
        unfold(values, event)
    with pytest.raises(SourceFailedError, match=r"the schema of its values, .* cannot be read: "):
        unfold(AvroValues(schema_path=str(tmp_path / "absent.avsc")), event)


@pytest.mark.spark
def test_registries_that_give_no_schema(unfold, registry, monkeypatch):
    message = write_registered(7, V1, make_event("c", 1, ANNE))
    registry.login = "key:s3cret"
    monkeypatch.setenv("SR_SECRET", "s3cret")
    monkeypatch.delenv(TRUSTED, raising=False)
    with pytest.raises(SourceFailedError) as refused:
        unfold(AvroValues(registry=registry.url), message)
    assert refused.value.message == (
        f"table 't': the schema registry '{registry.url}' answers 401 Unauthorized, asked for schema 7."
    )
    signed = AvroValues(registry=registry.url, user=SecretText("key"), password=SecretText("${env:SR_SECRET}"))
    assert unfold(signed, message)[0][0][0] == "upsert"
    with pytest.raises(SpecInvalidError, match=r"the value of \$\{env:SR_SECRET\} would be sent to https://sr.example"):
        unfold(signed.model_copy(update={"registry": "https://sr.example"}), message)
    # A path that is none of a registry's: its 404 says nothing about an id.
    monkeypatch.setattr(registry, "answer", lambda *_: (404, {"message": "no such page"}))
    other = write_registered(8, V2, make_event("c", 1, ANNE | {"status": None}))
    with pytest.raises(SourceFailedError, match="answers 404 Not Found, asked for schema 8"):
        unfold(AvroValues(registry=registry.url), other)


@pytest.mark.spark
def test_registry_that_does_not_answer(unfold, registry, monkeypatch):
    monkeypatch.setattr("lakewriter.source.kafka_avro._RETRIES", 0)
    url = registry.url.rpartition(":")[0] + ":1"
    with pytest.raises(SourceUnreachableError) as caught:
        unfold(AvroValues(registry=url), write_registered(7, V1, make_event("c", 1, ANNE)))
    assert (
        caught.value.message
        == f"table 't': the schema registry '{url}' does not answer: ConnectionError, asked for schema 7."
    )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_registry(registry, monkeypatch, status):
    """It is asked again for some seconds, however long it asks to wait; then a later load may have the schema."""
    waits = list[float]()
    monkeypatch.setattr("urllib3.util.retry.time", SimpleNamespace(sleep=waits.append))
    registry.broken, registry.wait = status, 3600
    decoder = AvroDecoder(AvroValues(registry=registry.url), {}, "t", None)
    with pytest.raises(SourceUnreachableError, match=f"the schema registry '{registry.url}' answers {status} "):
        decoder._find_registered(7)
    assert registry.asked == ["/schemas/ids/7"] * 4
    assert len(waits) == 3
    assert max(waits) <= 10
    registry.broken = None
    assert decoder._find_registered(7).reason == ""


def types_of(kind: Any) -> ColumnType | None:
    envelope = make_envelope(optional("v", kind))
    return read_row_types([json.dumps(describe_avro(envelope))], "t").get("v")


# The type of each field: postgresql.html#postgresql-data-types for Debezium's names; else Avro's logical types,
# https://avro.apache.org/docs/1.12.0/specification/#logical-types
TYPES: Final = {
    "boolean": ("boolean", ColumnType(type="boolean")),
    "int16": ({"type": "int", "connect.type": "int16"}, ColumnType(type="int")),
    "long": ("long", ColumnType(type="bigint")),
    "float": ("float", ColumnType(type="float")),
    "bytes": ("bytes", ColumnType(type="binary", unit="base64")),
    "uuid": ({"type": "string", "connect.name": "io.debezium.data.Uuid"}, ColumnType(type="string")),
    "enum": ({"type": "enum", "name": "E", "symbols": ["a"]}, ColumnType(type="string")),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, ColumnType(type="binary", unit="base64")),
    "ZonedTimestamp": ({"type": "string", "connect.name": f"{TIME}.ZonedTimestamp"}, ColumnType(type="timestamp")),
    "MicroTime": ({"type": "long", "connect.name": f"{TIME}.MicroTime"}, ColumnType(type="bigint")),
    "Connect's Timestamp": (
        {"type": "long", "connect.name": f"{CONNECT}.Timestamp", "logicalType": "timestamp-millis"},
        ColumnType(type="timestamp_ntz", unit="epoch_ms"),
    ),
    "numeric, its precision unknown": (
        # AvroData.CONNECT_AVRO_DECIMAL_PRECISION_DEFAULT
        DECIMAL | {"precision": 64, "connect.parameters": {"scale": "2"}},
        ColumnType(type="decimal(38,2)", unit="base64"),
    ),
    "decimal": (
        {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 3},
        ColumnType(type="decimal(9,3)", unit="base64"),
    ),
    "date": ({"type": "int", "logicalType": "date"}, ColumnType(type="date", unit="epoch_days")),
    "timestamp-micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        ColumnType(type="timestamp", unit="epoch_us"),
    ),
    "local-timestamp-millis": (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        ColumnType(type="timestamp_ntz", unit="epoch_ms"),
    ),
    "a type in a type": ({"type": {"type": "long", "connect.name": f"{TIME}.Timestamp"}},
                         ColumnType(type="timestamp_ntz", unit="epoch_ms")),
    "map": ({"type": "map", "values": "long"}, None),
    "record": ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", TYPES)
def test_types_by_an_avro_schema(case):
    given, expected = TYPES[case]
    assert types_of(given) == expected


NO_SCHEMAS: Final = {
    "a record inside itself": (
        make_envelope(optional("v", {"type": "record", "name": "R", "fields": [optional("r", "R")]})),
        "its record 'shop.crm.orders.R' has itself inside",
    ),
    "a name that nothing has": (make_envelope(optional("v", "R")), "it has no type 'R'"),
    "no record": ({"type": "array", "items": "int"}, "it is of array, expected a record"),
}


@pytest.mark.parametrize("case", NO_SCHEMAS)
def test_schemas_that_are_not_read(case):
    schema, reason = NO_SCHEMAS[case]
    with pytest.raises(ValueError, match=reason):
        describe_avro(schema)
