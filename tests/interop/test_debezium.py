"""A real PostgreSQL or MariaDB, Debezium's connector in Kafka Connect, a real broker, and a continuous run: the merged
table becomes what the database is, whichever of them is killed meanwhile."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.interop.debezium import (
    MARIADB,
    POSTGRESQL,
    Database,
    find_current,
    read_database,
    require_history,
    require_progress,
    running,
    write_randomly,
)
from tests.interop.followed import add_spark_connector
from tests.load.lakes import ROOT

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(9000)]

MOMENTS: Final = int(os.environ.get("LAKEWRITER_MOMENTS", "5"))
"""The writer pauses so often, until the table is what the database is. Two programs are killed before each."""
TRANSACTIONS: Final = int(os.environ.get("LAKEWRITER_TRANSACTIONS", "500"))
"""Before each kill; each changes about ten rows."""


@contextmanager
def leaving_transactions_open(database: Database, server: Any, seed: int) -> Iterator[None]:
    """Change rows meanwhile in transactions that overlap, so that some are open when a snapshot begins."""
    is_over = threading.Event()

    def write(number: int) -> None:
        rng = random.Random(seed + number)
        while not is_over.is_set():
            # The writers have rows of their own, since one of two that change the same would wait for the other.
            key = rng.randint(1, 99)
            server.execute(
                f"BEGIN; UPDATE orders SET name = 'open {rng.random():.6f}' WHERE id = {key * 2 + number}; "
                f"{database.sleep.format(seconds=1.5)} COMMIT;"
            )

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        is_over.set()
        for writer in writers:
            writer.join()


@pytest.mark.parametrize("database", [POSTGRESQL, MARIADB], ids=lambda database: database.name)
def test_a_table_becomes_what_the_database_is(tmp_path, aws, bucket, monkeypatch, database):
    add_spark_connector(monkeypatch)
    rng = random.Random(seed := int(os.environ.get("LAKEWRITER_SEED", "0")) or random.randrange(10**6))
    sys.stdout.write(f"seed {seed}\n")
    with running(tmp_path, aws, database) as (server, connect, lake, topics):
        lake.start()
        with leaving_transactions_open(database, server, seed):
            connect.start()
            lake.await_name()
        lake.await_rows(read_database(database, server))
        for moment in range(MOMENTS):
            parts: list[Any] = [connect, lake]
            for part in rng.sample(parts, 2):
                write_randomly(database, server, rng, TRANSACTIONS)
                time.sleep(rng.uniform(0, 3))
                part.kill()
                write_randomly(database, server, rng, TRANSACTIONS // 2)
                part.start()
            if moment % 2:
                ask = f'{{"data-collections": ["{database.collection}"], "type": "incremental"}}'
                server.execute(f"INSERT INTO debezium_signal VALUES ('{moment}', 'execute-snapshot', '{ask}');")
                write_randomly(database, server, rng, TRANSACTIONS)
            lake.await_rows(read_database(database, server))
            for statement in database.schema_changes[moment : moment + 1]:
                server.execute(f"{statement};")
        lake.stop()
        events = topics.read(f"shop.{database.collection}")
        snapshots = require_progress(lake.read_snapshots(), events)
        reads = sum('"snapshot":"incremental"' in event for event in events)
        sys.stdout.write(f"{len(events)} events, {reads} of incremental snapshots, in {snapshots} snapshots\n")
        require_history(lake.read_history(), events)
        schema = lake.load_table("orders").schema()
        assert {name: str(schema.find_type(name)) for name in database.widened} == database.widened
        assert [str(schema.find_type(name)) for name in ("note", "remark")] == ["string", "string"]
        # The same events in files, beside their schemas, which say what the values are.
        lake.load_files(events)
        assert lake.read("by_files") == read_database(database, server)
        # The changes since are lost: a new snapshot, in an epoch of its own, has them.
        connect.kill()
        connect.forget()
        changes = "UPDATE orders SET name = 'lost', share = -id; DELETE FROM orders WHERE id % 5 = 0;"
        server.execute(f"{database.lose} {changes}")
        lake.write(epoch=1)
        lake.start()
        with leaving_transactions_open(database, server, seed):
            connect.start()
            lake.await_name("lost")
        lake.await_rows(read_database(database, server))
        write_randomly(database, server, rng, 200)
        lake.await_rows(read_database(database, server))
        server.execute(f"TRUNCATE TABLE orders; {database.insert}")
        write_randomly(database, server, rng, 200)
        lake.await_rows(read_database(database, server))
        lake.stop()
        assert find_current(lake.read_history()) == read_database(database, server)
    command = [sys.executable, "-m", "lakewriter", "verify", str(tmp_path / "lake.yaml"), "--all"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


BODY = "(SELECT string_agg(md5(random()::text || id || n), '') FROM generate_series(1, 100) AS n)"
"""A text of 3,200 characters for the row, which PostgreSQL keeps beside the table."""


def test_values_that_events_leave_out_are_filled(tmp_path, aws, bucket, monkeypatch):
    add_spark_connector(monkeypatch)
    rng = random.Random(seed := int(os.environ.get("LAKEWRITER_SEED", "0")) or random.randrange(10**6))
    sys.stdout.write(f"seed {seed}\n")
    with running(tmp_path, aws, POSTGRESQL) as (server, connect, lake, topics):
        server.execute(
            "ALTER TABLE orders ADD COLUMN body TEXT; ALTER TABLE orders ALTER COLUMN body SET STORAGE EXTERNAL;"
        )
        server.execute(f"UPDATE orders SET body = {BODY};")
        connect.start()
        lake.start()
        lake.await_rows(read_database(POSTGRESQL, server))
        for part in (connect, lake, lake):
            for number in range(5):
                write_randomly(POSTGRESQL, server, rng, 20, changes_keys=False)
                server.execute(f"UPDATE orders SET body = {BODY} WHERE id % 7 = {number};")
                time.sleep(rng.uniform(0, 2))
            part.kill()
            write_randomly(POSTGRESQL, server, rng, 20, changes_keys=False)
            part.start()
            lake.await_rows(read_database(POSTGRESQL, server))
            expected = dict(line.split("|") for line in server.execute("SELECT id, body FROM orders").splitlines())
            rows = lake.load_table("orders").scan().to_arrow()
            assert {str(row["id"]): row["body"] or "" for row in rows.to_pylist()} == expected
        lake.stop()
        left_out = sum("__debezium_unavailable_value" in event for event in topics.read("shop.public.orders"))
        sys.stdout.write(f"{left_out} events leave the value out\n")
        assert left_out
