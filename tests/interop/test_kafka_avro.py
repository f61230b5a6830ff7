"""A continuous run merges events of a real broker in Avro, by a registry, and documents of MongoDB's connector."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import load_catalog

from tests.interop.brokers import CONNECTOR, Topics, broker, jars_of
from tests.load.lakes import BUCKET, ROOT
from tests.source.test_kafka_avro import ANNE, V1, V2, make_event
from tests.support.schema_registry import serve_registry, write_registered

pytestmark = pytest.mark.timeout(900)


class Lake:
    """A table of events in Avro, and one of documents."""

    def __init__(self, folder: Any, aws: Any, address: str, registry: str) -> None:
        self._folder, self._aws = folder, aws

        def read(topic: str, **more: Any) -> dict[str, Any]:
            options = {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"}
            return {"format": "kafka", "options": options, **more}

        merged = {"mode": "merge", "envelope": "debezium"}
        values = {"type": "avro", "registry": registry}
        orders = {"table": "orders", "primary_key": ["id"], "read": read("orders", values=values)}
        kinds = {"_id": "string", "qty": "bigint"}
        people = {"table": "people", "primary_key": ["_id"], "columns": kinds, "read": read("people")}
        destination = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1",
            "catalog": "iceberg", "database": "kafka", "tracking": ["deleted"],
        }  # fmt: skip
        content = {"pipeline": "kafka", "destination": destination, "tables": [orders | merged, people | merged]}
        text = yaml.safe_dump(content | {"checkpoint": "ck", "interval_seconds": 1})
        (folder / "lake.yaml").write_text(text, "utf-8")

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "lakewriter", "run", str(self._folder / "lake.yaml"), "--continuous", "--json"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def read(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        settings = {"s3.endpoint": self._aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        loaded = load_catalog("own", type="glue", **settings).load_table(("kafka", table))
        return sorted(tuple(row[name] for name in names) for row in loaded.scan().to_arrow().to_pylist())

    def await_rows(self, table: str, names: tuple[str, ...], *expected: tuple[Any, ...]) -> None:
        end: float = time.monotonic() + 240
        got: Any = None
        while time.monotonic() < end:
            try:
                got = self.read(table, *names)
            except Exception as error:  # noqa: BLE001 - the table, or its new column, is not there yet
                got = error
            if got == list(expected):
                return
            time.sleep(0.5)
        raise AssertionError((got, (self._folder / "log").read_text("utf-8")[-4000:]))


@pytest.fixture
def lake(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
    with broker(tmp_path_factory.mktemp("kafka")) as running, serve_registry() as registry:
        registry.add(7, V1)
        topics = Topics(running)
        try:
            for name in ("orders", "people"):
                topics.make(name, 2, retention_ms="-1")
            yield Lake(tmp_path, aws, running.address, registry.url), topics, registry
        finally:
            topics.close()


def send(topics, topic, *messages):
    topics.send(topic, *({"key": key, "value": value, "partition": 0} for key, value in messages))


def order(number, schema, op, lsn, after, before=None):
    return b"key", write_registered(number, schema, make_event(op, lsn, after, before))


def person(op, ord_, key, document=None):
    source = {"connector": "mongodb", "version": "3.2.0.Final", "ts_ms": 1767600000000, "ord": ord_}
    event = {"op": op, "before": None, "after": document and json.dumps(document), "source": source}
    return json.dumps({"id": json.dumps(key)}).encode(), json.dumps(event).encode()


def test_schemas_that_change_while_a_run_goes_on(lake):
    lake, topics, registry = lake
    bob = ANNE | {"id": 2, "name": "Bob"}
    send(topics, "orders", order(7, V1, "r", 1, ANNE), order(7, V1, "c", 2, bob))
    oid = {"$oid": "596e275826f08b2730779e1f"}
    send(topics, "people", person("r", -1, oid, {"_id": oid, "qty": {"$numberLong": "1"}}),
         person("c", 2, "two", {"_id": "two", "qty": 2.0}))  # fmt: skip
    columns = ("id", "name", "amount", "price")
    anne = (1, "Anne ü", Decimal("-12.50"), 0.1)
    run = lake.start()
    try:
        lake.await_rows("orders", columns, anne, (2, "Bob", *anne[2:]))
        lake.await_rows("people", ("_id", "qty"), ("596e275826f08b2730779e1f", 1), ("two", 2))
        # A column is added and the key becomes longer; a delete is known by its message's key alone.
        registry.add(8, V2)
        new = ANNE | {"id": 2**40, "status": "new"}
        send(topics, "orders", order(8, V2, "c", 3, new), order(7, V1, "d", 4, None, bob), (b"key", None))
        send(topics, "people", person("d", 5, "two"), person("u", 4, oid, {"_id": oid, "qty": 4}))
        lake.await_rows("orders", ("id", "status"), (1, None), (2**40, "new"))
        lake.await_rows("people", ("_id", "qty"), ("596e275826f08b2730779e1f", 4))
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert Counter(registry.asked) == {"/schemas/ids/7": 1, "/schemas/ids/8": 1}
        run = lake.start()
        send(topics, "orders", order(8, V2, "u", 6, new | {"status": "paid"}))
        lake.await_rows("orders", ("id", "status"), (1, None), (2**40, "paid"))
    finally:
        run.kill()
        run.wait()
