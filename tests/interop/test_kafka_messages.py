"""Single loads of what a real broker's topics have: what lands, what is left out, and what is said about the rest.

Expectations are those of Kafka's documentation (https://kafka.apache.org/39/documentation/, "compaction" for logs whose
keys repeat, "isolation.level" of the consumer, "message.timestamp.type" of a topic) and of Spark's page on Kafka
(https://spark.apache.org/docs/4.1.1/streaming/structured-streaming-kafka-integration.html: columns and options).
"""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.interop.brokers import CONNECTOR, Topics, broker, jars_of
from tests.load.lakes import BUCKET, ROOT

pytestmark = pytest.mark.timeout(900)

ONE_OF_TWO = '{"two":[0]}'
CASES: dict[str, tuple[dict[str, Any], str, Any]] = {
    # table: the options, and for each row its offset and one column, or a part of the message of SOURCE_FAILED
    # A compacted log keeps each key's last message, at its offset, and the tombstone until it is old enough.
    "compacted": ({"subscribe": "compacted"}, "value", [(4, b"v4"), (5, b"v5"), (6, None)]),
    "tombstones": ({"subscribe": "plain"}, "value", [(0, None), (1, b""), (2, b"x"), (3, b"\xff\xfe")]),
    "keys": ({"subscribe": "plain"}, "key", [(0, b"a"), (1, b""), (2, None), (3, b"\xff")]),
    # Markers of transactions take offsets. Nothing behind an open transaction is read before it ends.
    "committed": ({"subscribe": "tx"}, "value", [(0, b"committed")]),
    "uncommitted": (
        {"subscribe": "tx", "kafka.isolation.level": "read_uncommitted"},
        "value",
        [(0, b"committed"), (2, b"aborted"), (4, b"open"), (5, b"after")],
    ),
    "headers": (
        {"subscribe": "headers", "includeHeaders": True},
        "headers",
        [
            (0, [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}, {"key": "n", "value": None}]),
            (1, None),
        ],
    ),
    "times": (
        {"subscribe": "times"},
        "timestamp",
        [
            (0, datetime(1970, 1, 1, tzinfo=UTC)),
            (1, datetime(2027, 1, 15, 8, 0, 0, 123000, tzinfo=UTC)),
            (2, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ],
    ),
    # 0 is the producer's time and 1 the broker's, which does not take the producer's.
    "created": ({"subscribe": "times", "startingTimestamp": 1_900_000_000_000}, "timestampType", [(2, 0)]),
    "appended": ({"subscribe": "appended"}, "timestampType", [(0, 1)]),
    "empty": ({"subscribe": "empty"}, "value", []),
    "large": ({"subscribe": "large"}, "value", [(0, b"a" * 1_000_000), (1, b"b" * 5_000_000), (2, b"c")]),
    "retained": ({"subscribe": "cut"}, "value", [(3, b"3"), (4, b"4"), (5, b"5")]),
    "bounded": ({"subscribe": "cut", "endingOffsets": '{"cut":{"0":5}}'}, "value", [(3, b"3"), (4, b"4")]),
    # A registry's bytes, 0 and the schema's id, are those of the value.
    "registry": ({"subscribe": "registry"}, "value", [(0, b'\0\0\0\0\7{"id":1}')]),
    "several": ({"subscribe": "two,registry"}, "value", [(0, b'\0\0\0\0\7{"id":1}'), (0, b"p0"), (0, b"p1")]),
    "pattern": ({"subscribePattern": "tw.*"}, "value", [(0, b"p0"), (0, b"p1")]),
    "one": ({"assign": ONE_OF_TWO}, "value", [(0, b"p0")]),
    "missing": ({"subscribe": "two,nowhere"}, "", "A topic of read.options 'subscribe' does not exist"),
    "passed": (
        {"subscribe": "cut", "startingOffsets": '{"cut":{"0":1}}', "kafkaConsumer.pollTimeoutMs": 20_000},
        "",
        "The topic has no such offset: its retention has removed it",
    ),
    "partial": ({"subscribe": "two", "startingOffsets": '{"two":{"0":0}}'}, "", "Give every partition of the topics"),
    "latest": ({"subscribe": "two", "startingOffsets": "latest"}, "", "A single load reads what is there"),
    "nanoseconds": ({"subscribe": "nanoseconds"}, "", "may have been sent as nanoseconds. Set startingOffsets above"),
    "absent": ({"assign": '{"two":[0,7]}'}, "", "names two/7, and 'two' has 2 partitions, counted from 0"),
    "unmatched": ({"subscribePattern": "two.+"}, "", "no topic matches read.options 'subscribePattern', 'two.+'"),
    # Below are cursors on offsets; what happens to their topics between two loads is said there.
    "anew": ({"assign": '{"anew":[0]}'}, "value", [(0, b"0")]),
    "gone": ({"assign": '{"gone":[0]}'}, "value", [(0, b"0")]),
}


def fill(topics):
    """Make the topics; return a transaction that is still open."""
    quick = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01"}
    topics.make("compacted", cleanup_policy="compact", **quick)
    for number in range(6):
        topics.send("compacted", {"value": b"v%d" % number, "key": b"k%d" % (number % 2)})
        time.sleep(0.15)
    topics.send("compacted", {"value": None, "key": b"k0"})
    topics.make("plain")
    plain = [{"value": None, "key": b"a"}, {"value": b"", "key": b""}, {"value": b"x"}]
    topics.send("plain", *plain, {"value": b"\xff\xfe", "key": b"\xff"})
    topics.make("headers")
    topics.send("headers", {"value": b"h", "headers": [("a", b"1"), ("a", b"2"), ("n", None)]}, {"value": b"none"})
    # Else the broker deletes the message of 1970, half a minute after its start.
    topics.make("times", retention_ms="-1")
    times = (0, 1_800_000_000_123, 253_402_300_799_999)
    topics.send("times", *[{"value": b"t", "timestamp": each} for each in times])
    topics.make("nanoseconds")
    topics.send("nanoseconds", {"value": b"n", "timestamp": 1_800_000_000_123_456_789})
    topics.make("appended", message_timestamp_type="LogAppendTime")
    topics.send("appended", {"value": b"x", "timestamp": 5})
    topics.make("empty", 2)
    topics.make("large", max_message_bytes="6000000")
    topics.send("large", {"value": b"a" * 1_000_000}, {"value": b"b" * 5_000_000}, {"value": b"c"})
    topics.make("cut")
    topics.send("cut", *[{"value": b"%d" % number} for number in range(6)])
    topics.drop_before("cut", 3)
    topics.make("registry")
    topics.send("registry", {"value": b'\0\0\0\0\7{"id":1}'})
    topics.make("two", 2)
    topics.send("two", {"value": b"p0"}, {"value": b"p1", "partition": 1})
    for name in ("anew", "gone"):
        topics.make(name)
        topics.send(name, {"value": b"0"})
    topics.make("tx")
    for end in ("commit", "abort"):
        producer = topics.begin(end)
        topics.send("tx", {"value": {"commit": b"committed", "abort": b"aborted"}[end]}, producer=producer)
        getattr(producer, f"{end}Transaction")()
    producer = topics.begin("open")
    topics.send("tx", {"value": b"open"}, producer=producer)
    topics.send("tx", {"value": b"after"})
    return producer


def load(folder, job, tables):
    """Run a load; return each table's result."""
    place = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1"}
    lake = {"pipeline": "kafka", "destination": place | {"partition_strategy": "load"}, "tables": tables}
    (folder / "lake.yaml").write_text(yaml.safe_dump(lake), "utf-8")
    command = [sys.executable, "-m", "lakewriter", "run", str(folder / "lake.yaml"), "--job-id", job, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr
    return {table["table"]: table for table in json.loads(done.stdout)["tables"]}


def read(aws, table, job):
    """Return the rows of a load."""
    parts = [body for key, body in sorted(aws.objects(BUCKET).items()) if f"/{table}/" in key and job in key]
    return [row for part in parts for row in pq.read_table(pa.BufferReader(part)).to_pylist()]


def show(aws, table, job, column):
    """Return offset and value of the rows, by value where partitions have the same offsets."""
    return sorted(((row["offset"], row[column]) for row in read(aws, table, job)), key=lambda row: (row[0], repr(row)))


@pytest.mark.exhaustive
def test_messages(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        topics = Topics(running)
        try:
            still_open = fill(topics)
            servers = {"kafka.bootstrap.servers": running.address}
            tables = {
                name: {"table": name, "read": {"format": "kafka", "options": servers | options}}
                for name, (options, _, _) in CASES.items()
            }
            view = {"messages": {"format": "kafka", "options": servers | {"subscribe": "plain"}}}
            sql = "SELECT CAST(key AS STRING) AS key FROM messages"
            tables["text"] = {"table": "text", "read": {"sql": sql, "views": view}}
            for name in ("one", "anew", "gone"):
                tables[name]["cursor"] = "offset"
            first = load(tmp_path, "first", list(tables.values()))
            wrong: list[Any] = []
            for name, (_, column, expected) in CASES.items():
                if isinstance(expected, str):
                    if first[name]["code"] != "SOURCE_FAILED" or expected not in first[name]["message"]:
                        wrong.append((name, first[name]))
                elif first[name]["status"] != "done" or show(aws, name, "first", column) != expected:
                    wrong.append((name, first[name], show(aws, name, "first", column) if column else None))
            assert not wrong
            assert first["text"]["code"] == "VALUE_UNREPRESENTABLE"
            assert "text of column 'key' is not UTF-8" in first["text"]["message"]
            # The same job id adds nothing; the next one reads what has been committed meanwhile.
            topics.send("two", {"value": b"next"}, {"value": b"elsewhere", "partition": 1})
            still_open.commitTransaction()
            again = load(tmp_path, "first", [tables["several"]])
            assert again["several"]["status"] == "already_done"
            assert len(read(aws, "several", "first")) == 3
            topics.delete("anew")
            topics.make("anew")
            topics.send("anew", {"value": b"new"}, {"value": b"new"})
            topics.send("gone", {"value": b"1"}, {"value": b"2"})
            topics.drop_before("gone", 2)
            second = load(tmp_path, "second", [tables[name] for name in ("one", "committed", "anew", "gone")])
            assert second["anew"]["code"] == second["gone"]["code"] == "SOURCE_FAILED"
            assert "the cursor, 0, is an offset of" in second["anew"]["message"]
            assert "gone/0 begins at 2, and the last load has read up to 0" in second["gone"]["message"]
            assert show(aws, "one", "second", "value") == [(1, b"next")]
            settled = [(0, b"committed"), (4, b"open"), (5, b"after")]
            assert show(aws, "committed", "second", "value") == settled
        finally:
            topics.close()
