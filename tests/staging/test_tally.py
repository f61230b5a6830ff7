"""What tasks tell of themselves while they run."""

import pickle
import socket
import time

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakewriter.receipt import Receipt
from lakewriter.staging import stage as staging
from lakewriter.staging.tally import DatagramListener, Staged
from tests.support.local_tasks import local_session

BATCH = pa.RecordBatch.from_pydict({"id": [1, 2, 3]})


class File:
    """What a tally reads of a receipt."""

    size = 100


def run_task(teller, partition: int) -> None:
    tally = pickle.loads(pickle.dumps(teller)).begin(partition)
    assert [batch.num_rows for batch in tally.count(iter([BATCH, BATCH]))] == [3, 3]
    file: Receipt = File()  # type: ignore[assignment]
    tally.add_file(file)
    tally.end()


@pytest.fixture
def listener():
    made = DatagramListener()
    yield made
    made.close()


def read(listener, expected):
    until = time.monotonic() + 5
    while (staged := listener.read()) != expected and time.monotonic() < until:
        time.sleep(0.01)
    return staged


def test_tasks_on_one_machine(listener):
    for partition in (0, 1):
        run_task(listener.teller, partition)
    expected = Staged(tasks=2, rows=12, files=2, bytes=200)
    assert read(listener, expected) == expected
    # A task that runs again tells of the same partition.
    run_task(listener.teller, 1)
    assert read(listener, expected) == expected


STRANGE = [b"", b"{}", b"[]", b"null", b'{"token": "x", "partition": 0, "staged": {"rows": 1}}', b"\xff" * 2000]


@pytest.mark.parametrize("body", STRANGE)
def test_what_others_send_counts_for_nothing(listener, body):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(body, ("127.0.0.1", listener.teller.port))
    run_task(listener.teller, 0)
    expected = Staged(tasks=1, rows=6, files=1, bytes=100)
    assert read(listener, expected) == expected


def test_nobody_listens(listener):
    listener.close()
    run_task(listener.teller, 0)


def test_session_without_spark():
    assert staging.open_tally(local_session()) is None


@pytest.mark.spark
def test_accumulator(spark: SparkSession, monkeypatch):
    """As on a cluster, whose tasks tell when they end."""
    monkeypatch.setattr(spark.sparkContext, "master", "yarn")
    tally = staging.open_tally(spark)
    assert isinstance(tally, staging.AccumulatorTally)
    teller = tally.teller

    def task(partition: int, _: object) -> list[int]:
        work = teller.begin(partition)
        rows = sum(batch.num_rows for batch in work.count(iter([BATCH])))
        work.end()
        return [rows]

    assert sum(spark.sparkContext.parallelize([0, 1], 2).mapPartitionsWithIndex(task).collect()) == 6
    assert tally.read() == Staged(tasks=2, rows=6)
    tally.close()
