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


@pytest.mark.parametrize(("value", "is_told"), [(False, True), ("FALSE", True), (True, False)])
def test_loss_of_messages_is_told(tmp_path, value, is_told):
    read = {"format": "kafka", "options": SERVERS | {"failOnDataLoss": value}}
    spec = load_spec(files.lake(tmp_path, tables=[{"table": "t", "schema": "s", "read": read}]))
    assert any("'failOnDataLoss' is false" in warning for warning in spec.warnings) == is_told


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
