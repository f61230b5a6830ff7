"""What tests of Debezium's connectors need: a database and its connector in Kafka Connect, the continuous run that
follows the topic, and what the topic says that the database has had."""

import base64
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml

from lakewriter.spec.change_events import CHANGE_ORDER
from tests.interop import mariadb, postgresql
from tests.interop.brokers import KAFKA, Topics, broker, jars_of
from tests.interop.followed import FollowedLake
from tests.interop.servers import free_port
from tests.load.lakes import ROOT

_CONNECT: Final = (
    f"org.apache.kafka:connect-runtime:{KAFKA}",
    f"org.apache.kafka:connect-json:{KAFKA}",
    f"org.apache.kafka:kafka_2.13:{KAFKA}",
)
# The connector for MariaDB alone, of later versions, is not in every mirror; this one has an adapter.
_BINLOG: Final = "2.5.4.Final"
_BINLOG_JARS: Final = (
    *(f"io.debezium:debezium-{name}:{_BINLOG}" for name in ("core", "api", "ddl-parser", "storage-file")),
    f"io.debezium:debezium-connector-mysql:{_BINLOG}",
    "org.mariadb.jdbc:mariadb-java-client:3.2.0",
)
# Debezium names older versions, of which Maven would take the first that it sees.
_JACKSON: Final = tuple(
    f"com.fasterxml.jackson.{name}:2.16.2"
    for name in ("core:jackson-databind", "core:jackson-core", "datatype:jackson-datatype-jsr310")
)
KEYS: Final = 400
_WORKER: Final = """bootstrap.servers={address}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
"""
_SOURCE: Final = """name=shop
topic.prefix=shop
database.hostname=127.0.0.1
database.port={port}
database.user=lake
database.password={password}
incremental.snapshot.chunk.size=32
skipped.operations=none
topic.creation.default.partitions=3
topic.creation.default.replication.factor=1
"""
_SIGNALS: Final = "CREATE TABLE debezium_signal (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048));"


@dataclass(frozen=True)
class Database:
    """How a database differs from others: what makes its table and changes it, and its connector.

    ``upsert`` and ``sleep`` complete statements. ``lose`` makes the database forget the changes that nobody has read.
    ``as_json`` selects all rows as one JSON text.
    """

    name: str
    jars: tuple[str, ...]
    source: str
    collection: str
    make_table: str
    insert: str
    schema_changes: Sequence[str]
    widened: Mapping[str, str]
    upsert: str
    sleep: str
    lose: str
    as_json: str

    def serve(self) -> AbstractContextManager[Any]:
        """Start a server of its own."""
        if self.name == "postgresql":
            return postgresql.serving("wal_level=logical")
        return mariadb.serving("--log-bin=shop-bin", "--binlog-format=ROW", "--server-id=1")


POSTGRESQL: Final = Database(
    name="postgresql",
    jars=("io.debezium:debezium-connector-postgres:3.0.8.Final", *_CONNECT),
    source="""connector.class=io.debezium.connector.postgresql.PostgresConnector
plugin.name=pgoutput
publication.autocreate.mode=filtered
database.dbname=postgres
table.include.list=public.orders,public.debezium_signal
signal.data.collection=public.debezium_signal
""",
    collection="public.orders",
    make_table="""CREATE TABLE orders (id INT PRIMARY KEY, name TEXT, amount NUMERIC(12,2), at TIMESTAMP, day DATE,
share DOUBLE PRECISION, paid BOOLEAN);
""",
    insert="""INSERT INTO orders SELECT n, 'first ' || n, n / 7.0,
TIMESTAMP '2026-01-05 08:00:00.123456' + n * INTERVAL '1 hour',
DATE '2026-01-05' - n, n / 3.0, n % 2 = 0 FROM generate_series(1, 200) AS n;
""",
    schema_changes=(
        "ALTER TABLE orders ADD COLUMN note TEXT",
        "ALTER TABLE orders ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE orders ALTER COLUMN amount TYPE NUMERIC(14,2)",
        "ALTER TABLE orders RENAME COLUMN note TO remark",
        "ALTER TABLE orders DROP COLUMN remark",
    ),
    widened={"id": "long", "amount": "decimal(14, 2)", "paid": "boolean"},
    upsert="ON CONFLICT (id) DO UPDATE SET",
    sleep="SELECT pg_sleep({seconds});",
    lose="SELECT pg_drop_replication_slot('debezium');",
    as_json="SELECT coalesce(json_agg(row_to_json(orders)), '[]') FROM orders",
)
MARIADB: Final = Database(
    name="mariadb",
    jars=(*_CONNECT, *_JACKSON, *_BINLOG_JARS),
    source="""connector.class=io.debezium.connector.mysql.MySqlConnector
connector.adapter=mariadb
database.protocol=jdbc:mariadb
database.jdbc.driver=org.mariadb.jdbc.Driver
database.ssl.mode=disabled
database.server.id=4711
database.include.list=shop
table.include.list=shop.orders,shop.debezium_signal
signal.data.collection=shop.debezium_signal
schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory
schema.history.internal.file.filename={folder}/history
""",
    collection="shop.orders",
    make_table="""CREATE TABLE orders (id INT PRIMARY KEY, name TEXT, amount NUMERIC(12,2), at DATETIME(6), day DATE,
share DOUBLE, paid BOOLEAN);
""",
    insert="""INSERT INTO orders SELECT seq, CONCAT('first ', seq), seq / 7.0,
TIMESTAMP '2026-01-05 08:00:00.123456' + INTERVAL seq HOUR,
DATE '2026-01-05' - INTERVAL seq DAY, seq / 3e0, seq % 2 = 0 FROM seq_1_to_200;
""",
    schema_changes=(
        "ALTER TABLE orders ADD COLUMN note TEXT",
        "ALTER TABLE orders MODIFY id BIGINT NOT NULL",
        "ALTER TABLE orders MODIFY amount NUMERIC(14,2)",
        "ALTER TABLE orders RENAME COLUMN note TO remark",
        "ALTER TABLE orders DROP COLUMN remark",
    ),
    widened={"id": "long", "amount": "decimal(14, 2)", "paid": "int"},
    upsert="ON DUPLICATE KEY UPDATE",
    sleep="SELECT SLEEP({seconds});",
    lose="RESET MASTER;",
    as_json="""SET SESSION group_concat_max_len = 100000000;
SELECT CONCAT('[', COALESCE(GROUP_CONCAT(JSON_OBJECT('id', id, 'name', name, 'amount', amount,
'at', DATE_FORMAT(at, '%Y-%m-%dT%H:%i:%s.%f'), 'day', day, 'share', share, 'paid', paid)), ''), ']') FROM orders""",
)


class Connect:
    """Kafka Connect with Debezium's connector, which goes on after the offset that it noted last."""

    def __init__(self, folder: Path, address: str, database: Database, server: Any) -> None:
        self._jars = jars_of(f"debezium-{database.name}", database.jars, transitive=True)
        self._folder = folder
        (folder / "worker").write_text(_WORKER.format(address=address, folder=folder, port=free_port()), "utf-8")
        password = mariadb.PASSWORD if database.name == "mariadb" else "lake"
        source = (_SOURCE + database.source).format(port=server.port, password=password, folder=folder)
        (folder / "source").write_text(source, "utf-8")
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
        for name in ("offsets", "history"):
            (self._folder / name).unlink(missing_ok=True)


class Lake(FollowedLake):
    """The merged table, and the runs that follow the topic."""

    def __init__(self, folder: Path, aws: Any, address: str, collection: str) -> None:
        super().__init__(folder, aws, "shop")
        self._address, self._topic = address, f"shop.{collection}"
        self._process: subprocess.Popen[bytes] | None = None
        self.write()

    def write(self, epoch: int = 0) -> None:
        """Write the lake.yaml."""
        options: dict[str, Any] = {"kafka.bootstrap.servers": self._address, "subscribe": self._topic}
        options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "10000", "kafka.metadata.max.age.ms": "1000"}
        table: dict[str, Any] = {
            "table": "orders", "mode": "merge", "primary_key": ["id"], "history": True,
            "envelope": {"type": "debezium", "epoch": epoch},
            "read": {"format": "kafka", "options": options},
        }  # fmt: skip
        self.write_tables([table])

    def start(self) -> None:
        self._process = self.begin_run()

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
        (self.folder / "events").mkdir()
        for number in range(3):
            lines = "".join(
                f"{event}\n" for event in events[number * len(events) // 3 : (number + 1) * len(events) // 3]
            )
            (self.folder / "events" / f"{number}.json").write_text(lines, "utf-8")
        content = yaml.safe_load((self.folder / "lake.yaml").read_text("utf-8"))
        del content["checkpoint"]
        content["pipeline"] = "files"
        content["tables"][0] |= {"table": "by_files", "read": {"format": "json", "path": "events"}}
        (self.folder / "files.yaml").write_text(yaml.safe_dump(content), "utf-8")
        command = [sys.executable, "-m", "lakewriter", "run", str(self.folder / "files.yaml")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)

    def read(self, table: str = "orders") -> list[tuple[Any, ...]]:
        return sorted(choose(row) for row in self.load_table(table).scan().to_arrow().to_pylist())

    def read_history(self) -> list[dict[str, Any]]:
        """Return every change, the oldest first."""
        rows = self.load_table("orders_history").scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: tuple(int(row[name]) for name in CHANGE_ORDER))

    def read_snapshots(self) -> Iterator[dict[int, tuple[Any, ...]]]:
        """Yield the rows of each snapshot by their keys, the oldest first."""
        table = self.load_table("orders")
        for snapshot in sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0):
            rows = list(map(choose, table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()))
            by_key = {row[0]: row for row in rows}
            assert len(by_key) == len(rows), "a key has two rows"
            yield by_key

    def await_rows(self, expected: list[tuple[Any, ...]]) -> None:
        """Wait until the table has these rows."""
        self.await_answer(self.read, lambda rows: rows == expected, seconds=600)

    def await_name(self, name: str | None = None) -> None:
        """Wait until the table has a row, or one of this name."""
        self.await_answer(self.read, lambda rows: any(name in {None, row[1]} for row in rows), seconds=600)


def choose(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the columns that each table has had from the beginning."""
    return tuple(row[name] for name in ("id", "name", "amount", "at", "day", "share", "paid"))


Changes = dict[tuple[int, tuple[int, ...]], tuple[Any, ...] | None]
"""The row that each key has at each order; None where it is deleted."""


def list_changes(events: list[str]) -> Changes:
    """Return what the events bring, some of which come twice."""
    changes: Changes = {}
    for event in (json.loads(text) for text in events):
        payload = event and event["payload"]
        if payload is None:
            continue
        row, source = payload["after"] or payload["before"], payload["source"]
        order: tuple[int, ...]
        if source["connector"] == "mysql":
            order = (int(source["file"].split(".")[1]), source["pos"], source["row"])
        else:
            order = (0, source["ts_ms"], 0) if payload["op"] == "r" else (1, source["lsn"], 0)
        changes[row["id"], order] = make_row(row) if payload["after"] else None
    return changes


def list_versions(events: list[str]) -> dict[int, list[tuple[Any, ...] | None]]:
    """Return what the database has had of each key, in order; None where it was deleted."""
    versions = dict[int, list[tuple[Any, ...] | None]]()
    for (key, _), row in sorted(list_changes(events).items(), key=lambda change: change[0]):
        versions.setdefault(key, []).append(row)
    return versions


def require_history(history: list[dict[str, Any]], events: list[str]) -> None:
    """Fail unless the history has each change of the events once."""
    found: Changes = {}
    for row in history:
        order = tuple(int(row[name]) for name in CHANGE_ORDER[1:])
        found[row["id"], order] = None if row["_deleted"] else choose(row)
    assert len(found) == len(history), "a change is there twice"
    assert found == list_changes(events)


def find_current(history: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the newest row of each key after all changes, which are sorted."""
    rows = dict[int, tuple[Any, ...]]()
    for row in history:
        if row["_change_op"] in ("t", "s"):
            rows.clear()
        elif row["_deleted"]:
            rows.pop(row["id"], None)
        else:
            rows[row["id"]] = choose(row)
    return sorted(rows.values())


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


def read_database(database: Database, server: Any) -> list[tuple[Any, ...]]:
    rows = json.loads(server.execute(database.as_json), parse_float=Decimal, parse_int=int)
    return sorted(
        (row["id"], row["name"], row["amount"], datetime.fromisoformat(row["at"]), date.fromisoformat(row["day"]),
         None if row["share"] is None else float(row["share"]), row["paid"])
        for row in rows
    )  # fmt: skip


def write_randomly(
    database: Database, server: Any, rng: random.Random, transactions: int, *, changes_keys: bool = True
) -> None:
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
                f"{database.upsert} name = 'x {number}'",
                f"UPDATE orders SET name = '{name}', amount = {amount}, paid = NULL WHERE id = {key}",
                f"UPDATE orders SET share = NULL WHERE id BETWEEN {key} AND {key} + 3",
                f"DELETE FROM orders WHERE id = {key}",
                f"UPDATE orders SET id = {other} WHERE id = {key} "
                f"AND NOT EXISTS (SELECT 1 FROM orders WHERE id = {other})",
            )
            statements.append(f"{rng.choice(changes if changes_keys else changes[:-1])};")
        statements.append("ROLLBACK;" if rng.random() < 0.1 else "COMMIT;")
    server.execute("\n".join(statements))


@contextmanager
def running(folder: Path, aws: Any, database: Database) -> Iterator[tuple[Any, Connect, Lake, Topics]]:
    with database.serve() as server, broker(folder) as kafka:
        server.execute(database.make_table + database.insert + _SIGNALS)
        connect = Connect(folder, kafka.address, database, server)
        lake = Lake(folder, aws, kafka.address, database.collection)
        topics = Topics(kafka)
        try:
            yield server, connect, lake, topics
        finally:
            lake.kill()
            connect.kill()
            topics.close()
