"""Continuous runs over topics that change, at a real broker: made anew, cut by retention, grown, deleted, hidden.

Three runs of one lake with a topic for each table: what is there first, what has happened between two runs, and what
the remedies that the second one has printed lead to. Expectations are the promises of docs/continuous.md: each message
once, and an error or a note for what no batch has read.
"""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.interop.brokers import CONNECTOR, Topics, broker, jars_of
from tests.load.lakes import BUCKET, ROOT

pytestmark = pytest.mark.timeout(900)

UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}
TABLES: dict[str, dict[str, Any]] = {
    # table: its options beside the servers; each has a topic of its name
    "anew": {"subscribe": "anew"},
    "anew_live": {"subscribe": "anew_live"},
    "anew_view": {"subscribe": "anew_view,beside"},
    "anew_asked": {"subscribe": "anew_asked", "failOnDataLoss": False},
    "retained": {"subscribe": "retained"},
    "grown": {"subscribe": "grown"},
    "grown_late": {"subscribe": "grown_late"},
    "some": {"subscribePattern": "some_.*"},
    "none": {"assign": '{"grown":[0,9]}'},
    "open": {"subscribe": "open"} | UNCOMMITTED,
}
VIEWS = ("anew_view",)


class Lake:
    """The lake, and its runs in processes of their own."""

    def __init__(self, folder, aws, address):
        self._folder, self._aws, self._address = folder, aws, address

    def write(self, names, **more):
        """Write the file with these tables; ``more`` are options by table."""
        tables: list[dict[str, Any]] = [self._make_entry(name, TABLES[name] | more.get(name, {})) for name in names]
        place = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1"}
        lake: dict[str, Any] = {
            "pipeline": "kafka",
            "destination": place | {"partition_strategy": "load"},
            "tables": tables,
        }
        lake |= {"checkpoint": "ck", "interval_seconds": 1, "on_failure": "continue"}
        (self._folder / "lake.yaml").write_text(yaml.safe_dump(lake), "utf-8")

    def _make_entry(self, name, options):
        servers = {"kafka.bootstrap.servers": self._address, "startingOffsets": "earliest"}
        read = {"format": "kafka", "options": servers | options}
        return {"table": name, "read": {"sql": "SELECT * FROM m", "views": {"m": read}} if name in VIEWS else read}

    def command(self, *words):
        return [sys.executable, "-m", "lakewriter", words[0], str(self._folder / "lake.yaml"), *words[1:]]

    def reset(self, table, *words):
        command = self.command("reset", table, *words, "--reason", "a test")
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    def drop_checkpoint(self, table, part=""):
        shutil.rmtree(self._folder / "ck/kafka" / table / "v0000000000" / part)

    @contextmanager
    def running(self):
        """Yield a continuous run, which is asked to end when the block ends."""
        run = Run(self.command("run", "--continuous", "--json"))
        try:
            yield run
        finally:
            run.end()

    def values(self, table):
        """Return partition, offset and value of the table's rows."""
        parts = [body for key, body in self._aws.objects(BUCKET).items() if f"/{table}/" in key and ".parquet" in key]
        rows = [row for part in parts for row in pq.read_table(pa.BufferReader(part)).to_pylist()]
        return sorted((row["partition"], row["offset"], row["value"].decode()) for row in rows)

    def await_values(self, **expected):
        """Wait until the tables have these rows."""
        end = time.monotonic() + 200
        while time.monotonic() < end:
            got = {table: self.values(table) for table in expected}
            if got == expected:
                return
            time.sleep(0.5)
        assert got == expected


class Run:
    """A process, and what it says of each table: its last step, the error that has ended it, its notes."""

    def __init__(self, command):
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)
        self.said: list[dict[str, Any]] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self):
        for line in self._process.stderr or ():
            if line.startswith("{"):
                self.said.append(json.loads(line))

    def find(self, table, step):
        """Return the details of a table's steps of one kind."""
        return [line["detail"] for line in list(self.said) if (line.get("table"), line["step"]) == (table, step)]

    def wait(self, table, step):
        """Wait for a step; return its last detail."""
        end = time.monotonic() + 200
        while not (details := self.find(table, step)):
            assert time.monotonic() < end, self.said
            time.sleep(0.2)
        return details[-1]

    def end(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)
        self._reading.join()


def three(prefix, partition=0):
    return [(partition, number, f"{prefix}{number}") for number in range(3)]


def send(topics, name, *values, partition=0):
    topics.send(name, *({"value": value.encode(), "partition": partition} for value in values))


def make_anew(topics, name):
    topics.delete(name)
    topics.make(name)
    send(topics, name, *(f"b{number}" for number in range(6)))


@pytest.fixture
def lake(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    """The lake, its topics, and a producer whose transaction is open."""
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        topics = Topics(running)
        try:
            for name in ("anew", "anew_live", "anew_view", "anew_asked", "beside", "retained", "grown", "grown_late"):
                topics.make(name)
                if name != "beside":
                    send(topics, name, "a0", "a1", "a2")
            topics.make("open")
            send(topics, "open", "a0")
            producer = topics.begin("open")
            topics.send("open", {"value": b"hidden"}, producer=producer)
            send(topics, "open", "a2")
            yield Lake(tmp_path, aws, running.address), topics, producer
        finally:
            topics.close()


@pytest.mark.exhaustive
def test_topics_that_change(lake):
    lake, topics, producer = lake
    first = dict.fromkeys(("anew", "anew_live", "anew_view", "anew_asked", "retained", "grown_late"), three("a"))
    hidden = [(0, 0, "a0"), (0, 1, "hidden"), (0, 2, "a2")]
    lake.write(TABLES)
    with lake.running() as run:
        assert "names grown/9, and 'grown' has 1 partition" in run.wait("none", "failed")
        lake.await_values(**first, grown=three("a"), open=hidden)
        assert run.find("some", "note") == ["no topic matches 'some_.*' yet: the run waits for one"]
        # A topic of the pattern, a partition, and a topic that is made anew, while the run lives.
        for name in ("some_a", "some_b"):
            topics.make(name)
            send(topics, name, name)
        topics.grow("grown", 2)
        send(topics, "grown", "p1", partition=1)
        make_anew(topics, "anew_live")
        assert "topic 'anew_live' was deleted and made anew" in run.wait("anew_live", "failed")
        lake.await_values(some=[(0, 0, "some_a"), (0, 0, "some_b")], grown=[*three("a"), (1, 0, "p1")])
    for name in ("anew", "anew_view", "anew_asked"):
        make_anew(topics, name)
    send(topics, "retained", *(f"a{number}" for number in range(3, 8)))
    topics.drop_before("retained", 6)
    topics.grow("grown", 3)
    send(topics, "grown", "p2", partition=2)
    topics.grow("grown_late", 2)
    send(topics, "grown_late", "gone", "p1", partition=1)
    topics.drop_before("grown_late", 1, partition=1)
    topics.delete("some_a")
    lost = ("anew", "anew_live", "anew_view", "retained", "grown_late", "some")
    lake.write([name for name in TABLES if name != "none"], open={"kafka.isolation.level": "read_committed"})
    with lake.running() as run:
        said = {name: run.wait(name, "failed") for name in lost}
        assert {name: text.split(":")[0] for name, text in said.items()} == dict.fromkeys(lost, "CHECKPOINT_LOST"), said
        assert "set startingOffsets: earliest, delete the checkpoint" in said["anew"]
        assert """set startingOffsets: '{"anew_view": {"0": -2}, "beside": {"0": 0}}'""" in said["anew_view"]
        assert "retained/0 begins at 6, and the next batch at 3" in said["retained"]
        assert "grown_late/1 begins at 1, and the next batch at 0" in said["grown_late"]
        assert "some_a/0 is gone" in said["some"]
        # Its first three messages are below the checkpoint's offset.
        asked = [*three("a"), *((0, number, f"b{number}") for number in range(3, 6))]
        lake.await_values(grown=[*three("a"), (1, 0, "p1"), (2, 0, "p2")], anew_asked=sorted(asked))
        assert "its first messages are left out, as failOnDataLoss asks" in run.find("anew_asked", "note")[0]
        assert "open/0 has an open transaction below the checkpoint's offset" in run.wait("open", "restarting")
        # Before the transaction's marker, which is written behind the producer's back.
        send(topics, "open", "later")
        producer.commitTransaction()
        lake.await_values(open=[*hidden, (0, 3, "later")])
    lake.drop_checkpoint("anew")
    lake.drop_checkpoint("anew_view")
    lake.drop_checkpoint("anew_live", "topics")
    lake.reset("anew", "--go-on")
    lake.reset("anew_view", "--go-on")
    loss, starts = {"failOnDataLoss": False}, '{"anew_view":{"0":-2},"beside":{"0":0}}'
    lake.write(lost, retained=loss, grown_late=loss, some=loss, anew_view={"startingOffsets": starts})
    send(topics, "some_b", "next")
    renewed = sorted([*three("a"), *((0, number, f"b{number}") for number in range(6))])
    with lake.running() as run:
        lake.await_values(
            anew=renewed,
            anew_view=renewed,
            anew_live=sorted(asked),
            retained=[*three("a"), (0, 6, "a6"), (0, 7, "a7")],
            grown_late=[*three("a"), (1, 1, "p1")],
            some=[(0, 0, "some_a"), (0, 0, "some_b"), (0, 1, "next")],
        )
        assert "retained/0 begins at 6" in run.find("retained", "note")[0]
