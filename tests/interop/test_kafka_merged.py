"""Messages of a real broker that a continuous run merges by key: tombstones delete, a run that is killed repeats
nothing, and a key keeps its order when the topic gets partitions."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import load_catalog

from tests.interop.brokers import CONNECTOR, Topics, broker, jars_of
from tests.load.lakes import BUCKET, ROOT

pytestmark = pytest.mark.timeout(900)

QUERY = """
SELECT CAST(key AS STRING) AS id, from_json(CAST(value AS STRING), 'n INT').n AS n, value IS NULL AS gone,
timestamp, partition, offset FROM m WHERE key IS NOT NULL
"""


class Lake:
    """Two tables of one topic: its messages as they are, and those that a statement reads."""

    def __init__(self, folder: Any, aws: Any, address: str) -> None:
        self._folder, self._aws = folder, aws
        options = {"kafka.bootstrap.servers": address, "subscribe": "orders", "startingOffsets": "earliest"}
        read = {"format": "kafka", "options": options | {"maxOffsetsPerTrigger": "20"}}
        destination = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1",
            "catalog": "iceberg", "database": "kafka", "tracking": ["deleted"],
        }  # fmt: skip
        merged: dict[str, Any] = {"mode": "merge", "order_by": ["timestamp", "offset"]}
        tables = [
            merged | {"table": "messages", "read": read, "primary_key": ["key"], "deleted": "value IS NULL"},
            merged | {"table": "orders", "read": {"sql": QUERY, "views": {"m": read}}, "primary_key": ["id"],
                      "deleted": "gone"},
        ]  # fmt: skip
        run = {"checkpoint": "ck", "interval_seconds": 1}
        content = {"pipeline": "kafka", "destination": destination, "tables": tables} | run
        (folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "lakewriter", "run", str(self._folder / "lake.yaml"), "--continuous", "--json"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def read(self, table: str) -> list[dict[str, Any]]:
        settings = {"s3.endpoint": self._aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        rows: list[dict[str, Any]] = (
            load_catalog("own", type="glue", **settings).load_table(("kafka", table)).scan().to_arrow().to_pylist()
        )
        return rows

    def read_values(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the number of each key, as both tables have it."""
        messages = {row["key"].decode(): json.loads(row["value"])["n"] for row in self.read("messages")}
        return messages, {row["id"]: row["n"] for row in self.read("orders")}

    def await_values(self, **expected: int) -> None:
        end: float = time.monotonic() + 240
        got: Any = None
        while time.monotonic() < end:
            try:
                got = self.read_values()
            except Exception as error:  # noqa: BLE001 - the tables are not there yet
                got = error
            if got == (expected, expected):
                return
            time.sleep(0.5)
        raise AssertionError((got, (self._folder / "log").read_text("utf-8")[-4000:]))


@pytest.fixture
def lake(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        topics = Topics(running)
        try:
            topics.make("orders", 3, retention_ms="-1")
            yield Lake(tmp_path, aws, running.address), topics
        finally:
            topics.close()


NOW = 1_790_000_000_000
"""A time in milliseconds."""


def send(topics, *messages, at=0):
    """Send key, value and partition of each message; without a value it is a tombstone."""
    topics.send(
        "orders",
        *(
            {"key": key and key.encode(), "value": None if n is None else json.dumps({"n": n}).encode(),
             "partition": partition, "timestamp": NOW + at + number}
            for number, (key, n, partition) in enumerate(messages)
        ),
    )  # fmt: skip


def test_messages_are_merged(lake):
    lake, topics = lake
    send(topics, ("a", 1, 0), ("b", 1, 1), ("c", 1, 2), ("a", 2, 0), ("b", None, 1), ("d", 1, 1), ("d", 2, 1))
    run = lake.start()
    try:
        lake.await_values(a=2, c=1, d=2)
        # Late by their times, and a delete of a key that was never there.
        send(topics, ("a", 9, 0), ("b", 9, 1), ("e", None, 2), at=-10_000)
        send(topics, ("c", 5, 2), at=1_000)
        lake.await_values(a=2, c=5, d=2)
        for number in range(30):
            send(topics, ("a", number, 0), ("f", number, 1), at=10_000 + number)
        run.send_signal(signal.SIGKILL)
        run.wait()
        # A key moves to another partition, whose offsets begin at 0.
        topics.grow("orders", 4)
        send(topics, ("a", 100, 3), ("c", None, 3), at=60_000)
        run = lake.start()
        lake.await_values(a=100, d=2, f=29)
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 0
    finally:
        run.kill()
        run.wait()
    command = [sys.executable, "-m", "lakewriter", "verify", str(lake._folder / "lake.yaml"), "--all"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
