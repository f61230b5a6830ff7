"""Keys of a table that reads Kafka: each partition of a topic counts its messages on its own."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.source.source_options import make_reader_options
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import AvroValues, Read
from tests.dialects import files

SERVERS = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
TOPIC = {"format": "kafka", "options": SERVERS}


def assign(partitions):
    return {"format": "kafka", "options": {"kafka.bootstrap.servers": "b:9092", "assign": partitions}}


CURSORS = [
    # read, cursor, whether it is taken
    (TOPIC, "offset", False),
    (TOPIC, "OFFSET", False),
    ({"sql": "SELECT * FROM t", "views": {"t": TOPIC}}, "offset", False),
    (assign('{"t":[0,1]}'), "offset", False),
    (assign('{"t":[0],"u":[0]}'), "offset", False),
    (assign('{"t":[0]}'), "offset", True),
    (TOPIC, "timestamp", True),
    ({"format": "csv", "path": "a.csv"}, "offset", True),
]


@pytest.mark.parametrize(("read", "cursor", "is_taken"), CURSORS)
def test_cursor_of_offsets(tmp_path, read, cursor, is_taken):
    lake = files.lake(tmp_path, tables=[{"table": "t", "schema": "s", "read": read, "cursor": cursor}])
    if is_taken:
        assert load_spec(lake).tables[0].cursor == cursor
        return
    with pytest.raises(SpecInvalidError, match="'offset', which each partition counts on its own"):
        load_spec(lake)


@pytest.mark.parametrize(
    ("read", "order_by", "is_taken"),
    [
        (TOPIC, ["offset"], False),
        (TOPIC, ["Offset", "timestamp"], False),
        ({"sql": "SELECT * FROM t", "views": {"t": TOPIC}}, ["offset"], False),
        (assign('{"t":[0]}'), ["offset"], True),
        (TOPIC, ["timestamp", "offset"], True),
        ({"format": "csv", "path": "a.csv"}, ["offset"], True),
    ],
)
def test_order_of_offsets(tmp_path, read, order_by, is_taken):
    """A key that moves to another partition has lower offsets there."""
    table = {"table": "t", "schema": "s", "read": read, "mode": "merge", "primary_key": ["key"], "order_by": order_by}
    destination = {
        "type": "lakewriter-s3",
        "location": "s3://acme-lake/data",
        "region": "us-east-1",
        "catalog": "iceberg",
    }
    lake = files.lake(tmp_path, tables=[table], top={"destination": destination})
    if is_taken:
        assert load_spec(lake).tables[0].order_by == tuple(order_by)
        return
    with pytest.raises(SpecInvalidError, match="order_by begins with Kafka's 'offset'"):
        load_spec(lake)


@pytest.mark.parametrize(("value", "is_told"), [(False, True), ("FALSE", True), (True, False)])
def test_loss_of_messages_is_told(tmp_path, value, is_told):
    read = {"format": "kafka", "options": SERVERS | {"failOnDataLoss": value}}
    spec = load_spec(files.lake(tmp_path, tables=[{"table": "t", "schema": "s", "read": read}]))
    assert any("'failOnDataLoss' is false" in warning for warning in spec.warnings) == is_told


OF_STREAMS = [
    # read, the options that only a stream follows; Spark's pages of both sources list them for streaming alone
    (TOPIC, ""),
    ({"format": "kafka", "options": SERVERS | {"maxOffsetsPerTrigger": 5}}, "'maxOffsetsPerTrigger'"),
    (
        {"format": "Kafka", "options": SERVERS | {"MINOFFSETSPERTRIGGER": 5, "maxTriggerDelay": "1m"}},
        "'MINOFFSETSPERTRIGGER', 'maxTriggerDelay'",
    ),
    (
        {
            "sql": "SELECT * FROM t",
            "views": {"t": {"format": "kafka", "options": SERVERS | {"minOffsetsPerTrigger": 1}}},
        },
        "'minOffsetsPerTrigger'",
    ),
    ({"format": "csv", "path": "a.csv", "options": {"header": True, "cleanSource": "delete"}}, "'cleanSource'"),
    # A driver may have a property of any name.
    ({"format": "jdbc", "options": {"url": "jdbc:x:y", "dbtable": "t", "latestFirst": True}}, ""),
]


@pytest.mark.parametrize(("read", "names"), OF_STREAMS)
def test_options_of_streams_are_told(tmp_path, read, names):
    tables = [{"table": "t", "schema": "s", "read": read}]

    def warn(**more):
        warnings = load_spec(files.lake(tmp_path, tables=tables, top=more)).warnings
        return [text for text in warnings if "without effect in a single load" in text]

    assert [names in text for text in warn()] == [True] * bool(names)
    assert warn(checkpoint="ck") == []


LEVELS = [
    # format, options, the isolation level; a consumer's own default, read_uncommitted, delivers what was aborted
    ("kafka", {}, "read_committed"),
    ("KAFKA", {"kafka.isolation.level": "read_uncommitted"}, "read_uncommitted"),
    ("kafka", {"Kafka.Isolation.Level": "read_uncommitted"}, None),
    ("jdbc", {}, None),
]


@pytest.mark.parametrize(("form", "options", "level"), LEVELS)
def test_isolation(form, options, level):
    assert make_reader_options(Read(format=form, options=options), {}).get("kafka.isolation.level") == level


MERGED = {
    "destination": {
        "type": "lakewriter-s3",
        "location": "s3://acme-lake/data",
        "region": "us-east-1",
        "catalog": "iceberg",
        "tracking": ["deleted"],
    }
}


def load_values(tmp_path, values, **more):
    table = {"table": "t", "schema": "s", "read": TOPIC | {"values": values}, "mode": "merge", "primary_key": ["id"]}
    lake = files.lake(tmp_path, tables=[table | {"envelope": "debezium"} | more], top=MERGED)
    return load_spec(lake)


URL = "https://registry.acme.example:8081"
SIGNED = {"type": "avro", "registry": f"{URL}/", "user": "key", "password": "${env:SECRET}"}
VALUES = [
    # as the file has them, as a load takes them, servers that are sent a secret
    ({"type": "avro", "registry": URL}, AvroValues(registry=URL), ()),
    (SIGNED, AvroValues(registry=URL, user=SecretText("key"), password=SecretText("${env:SECRET}")), (URL,)),
    (
        {"type": "avro", "schema": "s3://acme-schemas/t.avsc"},
        AvroValues(schema_path="s3://acme-schemas/t.avsc"),
        (),
    ),
]


@pytest.mark.parametrize(("values", "expected", "servers"), VALUES)
def test_values_in_avro(tmp_path, values, expected, servers):
    spec = load_values(tmp_path, values)
    assert (spec.tables[0].read.values, spec.servers) == (expected, servers)
    assert spec.tables[0].read.needed_paths == tuple(filter(None, (expected.schema_path,)))
    assert not any("written out" in warning for warning in spec.warnings)


def test_values_with_a_password_that_is_written_out(tmp_path):
    spec = load_values(tmp_path, SIGNED | {"password": "plain"})
    assert any("read.values.password" in text and "is written out" in text for text in spec.warnings)
    assert "plain" not in spec.model_dump_json()


NO_VALUES = [
    ({"type": "avro"}, {}, "registry"),
    ({"type": "avro", "registry": URL, "schema": "t.avsc"}, {}, "registry"),
    ({"type": "avro", "registry": URL, "user": "key"}, {}, "'user' and 'password' sign in to 'registry'"),
    ({"type": "avro", "schema": "t.avsc", "user": "k", "password": "p"}, {}, "sign in to 'registry'"),
    ({"type": "avro", "registry": "http://sr:8081", "user": "k", "password": "p"}, {}, "without TLS; expected https"),
    ({"type": "avro", "registry": "https://k:p@sr"}, {}, "a URL with a name or a password in it would be printed"),
    ({"type": "avro", "registry": "arn:aws:glue:eu-west-1:1:registry/a"}, {}, "AWS Glue Schema Registry are not read"),
    ({"type": "avro", "registry": "https://glue.eu-west-1.amazonaws.com"}, {}, "Glue Schema Registry are not read"),
    ({"type": "protobuf", "registry": URL}, {}, "avro"),
    ({"type": "avro", "registry": URL}, {"envelope": None, "order_by": ["offset2"]}, "only for 'envelope: debezium'"),
    (
        {"type": "avro", "registry": URL},
        {"read": {"format": "csv", "path": "a.csv", "values": SIGNED}},
        "only for 'format: kafka'",
    ),
    (
        {"type": "avro", "registry": URL},
        {"read": {"sql": "SELECT * FROM k", "views": {"k": TOPIC | {"values": SIGNED}}}},
        "and not for 'views'",
    ),
]


@pytest.mark.parametrize(("values", "more", "message"), NO_VALUES)
def test_values_that_are_not_taken(tmp_path, values, more, message):
    with pytest.raises(SpecInvalidError, match=message):
        load_values(tmp_path, values, **more)
