"""Keys of a table that reads Kafka: each partition of a topic counts its messages on its own."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.source.source_options import make_reader_options
from lakewriter.spec.table_spec import Read
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
