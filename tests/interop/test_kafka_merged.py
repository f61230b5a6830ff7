"""Messages of a real broker that a continuous run merges by key: tombstones delete, a run that is killed repeats
nothing, and a key keeps its order when the topic gets partitions."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.interop.brokers import Topics, broker
from tests.interop.followed import FollowedLake, add_spark_connector
from tests.load.lakes import ROOT

pytestmark = pytest.mark.timeout(900)

QUERY = """
SELECT CAST(key AS STRING) AS id, from_json(CAST(value AS STRING), 'n INT').n AS n, value IS NULL AS gone,
timestamp, partition, offset FROM m WHERE key IS NOT NULL
"""


class Lake(FollowedLake):
    """Two tables of one topic: its messages as they are, and those that a statement reads."""

    def __init__(self, folder: Any, aws: Any, address: str) -> None:
        super().__init__(folder, aws, "kafka")
        options = {"kafka.bootstrap.servers": address, "subscribe": "orders", "startingOffsets": "earliest"}
        read = {"format": "kafka", "options": options | {"maxOffsetsPerTrigger": "20"}}
        merged: dict[str, Any] = {"mode": "merge", "order_by": ["timestamp", "offset"]}
        self.write_tables([
            merged | {"table": "messages", "read": read, "primary_key": ["key"], "deleted": "value IS NULL"},
            merged | {"table": "orders", "read": {"sql": QUERY, "views": {"m": read}}, "primary_key": ["id"],
                      "deleted": "gone"},
        ])  # fmt: skip

    def read(self, table: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.load_table(table).scan().to_arrow().to_pylist()
        return rows

    def read_values(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the number of each key, as both tables have it."""
        messages = {row["key"].decode(): json.loads(row["value"])["n"] for row in self.read("messages")}
        return messages, {row["id"]: row["n"] for row in self.read("orders")}

    def await_values(self, **expected: int) -> None:
        self.await_answer(self.read_values, lambda got: got == (expected, expected))


@pytest.fixture
def lake(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    add_spark_connector(monkeypatch)
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
    run = lake.begin_run()
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
        run = lake.begin_run()
        lake.await_values(a=100, d=2, f=29)
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 0
    finally:
        run.kill()
        run.wait()
    command = [sys.executable, "-m", "lakewriter", "verify", str(lake.folder / "lake.yaml"), "--all"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
