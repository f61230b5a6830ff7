"""A continuous run merges events of a real broker in Avro, by a registry, and documents of MongoDB's connector."""

import json
import signal
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.interop.brokers import Topics, broker
from tests.interop.followed import FollowedLake, add_spark_connector
from tests.source.test_kafka_avro import ANNE, V1, V2, make_event
from tests.support.schema_registry import serve_registry, write_registered

pytestmark = pytest.mark.timeout(900)


class Lake(FollowedLake):
    """A table of events in Avro, and one of documents."""

    def __init__(self, folder: Any, aws: Any, address: str, registry: str) -> None:
        super().__init__(folder, aws, "kafka")

        def read(topic: str, **more: Any) -> dict[str, Any]:
            options = {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"}
            return {"format": "kafka", "options": options, **more}

        merged = {"mode": "merge", "envelope": "debezium"}
        values = {"type": "avro", "registry": registry}
        orders = {"table": "orders", "primary_key": ["id"], "read": read("orders", values=values)}
        kinds = {"_id": "string", "qty": "bigint"}
        people = {"table": "people", "primary_key": ["_id"], "columns": kinds, "read": read("people")}
        self.write_tables([orders | merged, people | merged])

    def await_rows(self, table: str, names: tuple[str, ...], *expected: tuple[Any, ...]) -> None:
        def read() -> list[tuple[Any, ...]]:
            rows = self.load_table(table).scan().to_arrow().to_pylist()
            return sorted(tuple(row[name] for name in names) for row in rows)

        self.await_answer(read, lambda got: got == list(expected))


@pytest.fixture
def lake(tmp_path, tmp_path_factory, aws, bucket, monkeypatch):
    add_spark_connector(monkeypatch)
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
    run = lake.begin_run()
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
        run = lake.begin_run()
        send(topics, "orders", order(8, V2, "u", 6, new | {"status": "paid"}))
        lake.await_rows("orders", ("id", "status"), (1, None), (2**40, "paid"))
    finally:
        run.kill()
        run.wait()
