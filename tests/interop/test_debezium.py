"""A real PostgreSQL, Debezium's connector in Kafka Connect, a real broker, and a continuous run: the merged table
becomes what the database is, whichever of them is killed meanwhile."""

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.interop import postgresql
from tests.interop.brokers import CONNECTOR, KAFKA, Topics, broker, jars_of
from tests.interop.servers import free_port
from tests.load.lakes import BUCKET, ROOT

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

DEBEZIUM: Final = (
    "io.debezium:debezium-connector-postgres:3.0.8.Final",
    f"org.apache.kafka:connect-runtime:{KAFKA}",
    f"org.apache.kafka:connect-json:{KAFKA}",
    f"org.apache.kafka:kafka_2.13:{KAFKA}",
)
TABLE: Final = """
CREATE TABLE orders (id INT PRIMARY KEY, name TEXT, amount NUMERIC(12,2), at TIMESTAMP, day DATE,
share DOUBLE PRECISION, paid BOOLEAN);
INSERT INTO orders SELECT n, 'first ' || n, n / 7.0, TIMESTAMP '2026-01-05 08:00:00.123456' + n * INTERVAL '1 hour',
DATE '2026-01-05' - n, n / 3.0, n % 2 = 0 FROM generate_series(1, 200) AS n;
"""
KEYS: Final = 400
MOMENTS: Final = int(os.environ.get("LAKEWRITER_MOMENTS", "5"))
"""The writer pauses so often, until the table is what the database is. Two programs are killed before each."""
TRANSACTIONS: Final = int(os.environ.get("LAKEWRITER_TRANSACTIONS", "500"))
"""Before each kill; each changes about ten rows."""
SCHEMA_CHANGES: Final = (
    "ALTER TABLE orders ADD COLUMN note TEXT",
    "ALTER TABLE orders ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE orders ALTER COLUMN amount TYPE NUMERIC(14,2)",
    "ALTER TABLE orders DROP COLUMN note",
)
"""One is made at each of the first moments, while all programs run."""
_WORKER: Final = """bootstrap.servers={address}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
"""
_SOURCE: Final = """name=shop
connector.class=io.debezium.connector.postgresql.PostgresConnector
plugin.name=pgoutput
publication.autocreate.mode=filtered
database.hostname=127.0.0.1
database.port={port}
database.user=lake
database.password=lake
database.dbname=postgres
topic.prefix=shop
table.include.list=public.orders
topic.creation.default.partitions=3
topic.creation.default.replication.factor=1
"""


class Connect:
    """Kafka Connect with Debezium's connector, which goes on after the offset that it noted last."""

    def __init__(self, folder: Path, address: str, database: int) -> None:
        self._jars, self._folder = jars_of("debezium", DEBEZIUM, transitive=True), folder
        (folder / "worker").write_text(_WORKER.format(address=address, folder=folder, port=free_port()), "utf-8")
        (folder / "source").write_text(_SOURCE.format(port=database), "utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = "org.apache.kafka.connect.cli.ConnectStandalone"
        settings = [str(self._folder / name) for name in ("worker", "source")]
        with (self._folder / "connect.log").open("ab") as log:
            command = ["java", "-Xmx384m", "-cp", f"{self._jars}/*", program, *settings]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Begin with a snapshot once more."""
        (self._folder / "offsets").unlink()


class Lake:
    """The merged table, and the runs that follow the topic."""

    def __init__(self, folder: Path, aws: Any, address: str) -> None:
        self._folder, self._aws, self._address = folder, aws, address
        self._process: subprocess.Popen[bytes] | None = None
        self.write()

    def write(self, epoch: int = 0) -> None:
        """Write the lake.yaml."""
        options: dict[str, Any] = {"kafka.bootstrap.servers": self._address, "subscribe": "shop.public.orders"}
        options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "10000", "kafka.metadata.max.age.ms": "1000"}
        table: dict[str, Any] = {
            "table": "orders", "mode": "merge", "primary_key": ["id"],
            "envelope": {"type": "debezium", "epoch": epoch},
            "read": {"format": "kafka", "options": options},
        }  # fmt: skip
        destination = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1",
            "catalog": "iceberg", "database": "shop", "tracking": ["deleted"],
        }  # fmt: skip
        content: dict[str, Any] = {"pipeline": "shop", "destination": destination, "tables": [table]}
        content |= {"checkpoint": "ck", "interval_seconds": 1}
        (self._folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")

    def start(self) -> None:
        command = [sys.executable, "-m", "lakewriter", "run", str(self._folder / "lake.yaml"), "--continuous", "--json"]
        with (self._folder / "run.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(120) == 0

    def load_files(self, events: list[str]) -> None:
        """Load the events as lines of files into a table of their own."""
        (self._folder / "events").mkdir()
        for number in range(3):
            lines = "".join(
                f"{event}\n" for event in events[number * len(events) // 3 : (number + 1) * len(events) // 3]
            )
            (self._folder / "events" / f"{number}.json").write_text(lines, "utf-8")
        content = yaml.safe_load((self._folder / "lake.yaml").read_text("utf-8"))
        del content["checkpoint"]
        content["pipeline"] = "files"
        content["tables"][0] |= {"table": "by_files", "read": {"format": "json", "path": "events"}}
        (self._folder / "files.yaml").write_text(yaml.safe_dump(content), "utf-8")
        command = [sys.executable, "-m", "lakewriter", "run", str(self._folder / "files.yaml")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)

    def load_table(self, table: str = "orders") -> Table:
        settings = {"s3.endpoint": self._aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", type="glue", **settings).load_table(("shop", table))

    def read(self, table: str = "orders") -> list[tuple[Any, ...]]:
        return sorted(choose(row) for row in self.load_table(table).scan().to_arrow().to_pylist())

    def read_snapshots(self) -> Iterator[dict[int, tuple[Any, ...]]]:
        """Yield the rows of each snapshot by their keys, the oldest first."""
        table = self.load_table()
        for snapshot in sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0):
            rows = list(map(choose, table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()))
            by_key = {row[0]: row for row in rows}
            assert len(by_key) == len(rows), "a key has two rows"
            yield by_key

    def await_rows(self, expected: list[tuple[Any, ...]]) -> None:
        end, got = time.monotonic() + 240, list[Any]()
        while got != expected:
            logs = [(self._folder / name).read_text("utf-8")[-3000:] for name in ("run.log", "connect.log")]
            assert time.monotonic() < end, (set(got) ^ set(expected), *logs)
            time.sleep(0.5)
            try:
                got = self.read()
            except Exception as error:  # noqa: BLE001 - the table is not there yet
                got = [error]


def choose(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the columns that each table has had from the beginning."""
    return tuple(row[name] for name in ("id", "name", "amount", "at", "day", "share", "paid"))


def list_versions(events: list[str]) -> dict[int, list[tuple[Any, ...] | None]]:
    """Return what the database has had of each key, in order; None where it was deleted."""
    changes = dict[int, list[tuple[tuple[int, int], tuple[Any, ...] | None]]]()
    for event in (json.loads(text) for text in events):
        payload = event and event["payload"]
        if payload is None:
            continue
        row, is_read = payload["after"] or payload["before"], payload["op"] == "r"
        order = (0, payload["source"]["ts_ms"]) if is_read else (1, payload["source"]["lsn"])
        changes.setdefault(row["id"], []).append((order, make_row(row) if payload["after"] else None))
    return {key: [row for _, row in sorted(of_key, key=lambda change: change[0])] for key, of_key in changes.items()}


def make_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the row of an event as Debezium's pages say that its values are meant."""
    amount = row["amount"] and Decimal(int.from_bytes(base64.b64decode(row["amount"]), signed=True)).scaleb(-2)
    at, day = datetime(1970, 1, 1) + timedelta(microseconds=row["at"]), date(1970, 1, 1) + timedelta(row["day"])
    return (row["id"], row["name"], amount, at, day, row["share"], row["paid"])


def require_progress(snapshots: Iterator[dict[int, tuple[Any, ...]]], events: list[str]) -> int:
    """Fail where a snapshot has a row that the database never had, or one older than the snapshot before; return how
    many snapshots there are."""
    versions, reached, count = list_versions(events), dict[int, int](), 0
    for rows in snapshots:
        count += 1
        for key, of_key in versions.items():
            before, row = reached.get(key, -1), rows.get(key)
            if row is None and before == -1:
                continue
            now = next((number for number in range(max(before, 0), len(of_key)) if of_key[number] == row), None)
            assert now is not None, (count, key, row, of_key[max(before, 0) :])
            reached[key] = now
        assert rows.keys() <= versions.keys(), count
    return count


def read_database(server: Any) -> list[tuple[Any, ...]]:
    text = server.execute("SELECT coalesce(json_agg(row_to_json(orders) ORDER BY id), '[]') FROM orders")
    return [
        (row["id"], row["name"], row["amount"], datetime.fromisoformat(row["at"]), date.fromisoformat(row["day"]),
         None if row["share"] is None else float(row["share"]), row["paid"])
        for row in json.loads(text, parse_float=Decimal, parse_int=int)
    ]  # fmt: skip


def write_randomly(server: Any, rng: random.Random, transactions: int) -> None:
    """Insert, change, delete rows and change keys, several in a transaction; a few transactions are rolled back."""
    statements = []
    for number in range(transactions):
        statements.append("BEGIN;")
        for _ in range(rng.randint(1, 8)):
            key, other = rng.randint(1, KEYS), rng.randint(1, KEYS)
            name, amount = f"name {rng.random():.6f}", f"{rng.randint(-(10**9), 10**9) / 100}"
            inserted = f"{key}, '{name}', {amount}, '2026-02-01 00:00:00.000001', '2026-02-01', {rng.random()}, true"
            changes = (
                f"INSERT INTO orders (id, name, amount, at, day, share, paid) VALUES ({inserted}) "
                f"ON CONFLICT (id) DO UPDATE SET name = 'x {number}'",
                f"UPDATE orders SET name = '{name}', amount = {amount}, paid = NULL WHERE id = {key}",
                f"UPDATE orders SET share = NULL WHERE id BETWEEN {key} AND {key} + 3",
                f"DELETE FROM orders WHERE id = {key}",
                f"UPDATE orders SET id = {other} WHERE id = {key} "
                f"AND NOT EXISTS (SELECT FROM orders WHERE id = {other})",
            )
            statements.append(f"{rng.choice(changes)};")
        statements.append("ROLLBACK;" if rng.random() < 0.1 else "COMMIT;")
    server.execute("\n".join(statements))


@contextmanager
def running(folder: Path, aws: Any) -> Iterator[tuple[Any, Connect, Lake, Topics]]:
    with postgresql.serving("wal_level=logical") as server, broker(folder) as kafka:
        server.execute(TABLE)
        connect, lake = Connect(folder, kafka.address, server.port), Lake(folder, aws, kafka.address)
        topics = Topics(kafka)
        try:
            connect.start()
            yield server, connect, lake, topics
        finally:
            lake.kill()
            connect.kill()
            topics.close()


def test_a_table_becomes_what_the_database_is(tmp_path, aws, bucket, monkeypatch):
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
    rng = random.Random(seed := random.randrange(10**6))
    sys.stdout.write(f"seed {seed}\n")
    with running(tmp_path, aws) as (server, connect, lake, topics):
        lake.start()
        lake.await_rows(read_database(server))
        for moment in range(MOMENTS):
            parts: list[Any] = [connect, lake]
            for part in rng.sample(parts, 2):
                write_randomly(server, rng, TRANSACTIONS)
                time.sleep(rng.uniform(0, 3))
                part.kill()
                write_randomly(server, rng, TRANSACTIONS // 2)
                part.start()
            lake.await_rows(read_database(server))
            for statement in SCHEMA_CHANGES[moment : moment + 1]:
                server.execute(statement)
        lake.stop()
        events = topics.read("shop.public.orders")
        snapshots = require_progress(lake.read_snapshots(), events)
        sys.stdout.write(f"{len(events)} events in {snapshots} snapshots\n")
        schema = lake.load_table().schema()
        assert [str(schema.find_type(name)) for name in ("id", "amount", "note")] == [
            "long",
            "decimal(14, 2)",
            "string",
        ]
        # The same events in files, beside their schemas, which say what the values are.
        lake.load_files(events)
        assert lake.read("by_files") == read_database(server)
        # The slot is lost, and changes with it: a new snapshot, in an epoch of its own, has them.
        connect.kill()
        connect.forget()
        server.execute("SELECT pg_drop_replication_slot('debezium'); UPDATE orders SET name = 'lost', share = -id;")
        lake.write(epoch=1)
        lake.start()
        connect.start()
        # What is deleted before the snapshot would stay in the table.
        lake.await_rows(read_database(server))
        write_randomly(server, rng, 200)
        lake.await_rows(read_database(server))
        lake.stop()
    command = [sys.executable, "-m", "lakewriter", "verify", str(tmp_path / "lake.yaml"), "--all"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
