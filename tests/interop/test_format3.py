"""A table of format version 3 that the Iceberg project's own runtime makes and changes between our loads."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.iceberg.test_format3 import Lineage
from tests.interop.maven import jars
from tests.interop.test_iceberg_runtime import JARS
from tests.load.lakes import BUCKET
from tests.support.narrow import need

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]

TABLE = f"""CREATE TABLE glue.db.t (id bigint, day string) USING iceberg PARTITIONED BY (day)
LOCATION 's3://{BUCKET}/data/production/db/t' TBLPROPERTIES ('format-version'='3',
'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'commit.manifest.min-count-to-merge'='3')"""


class Spark:
    """A session in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, sql: str) -> list[dict[str, Any]]:
        need(self._process.stdin).write(json.dumps(sql) + "\n")
        need(self._process.stdin).flush()
        found = next((line for line in need(self._process.stdout) if line.startswith("FOUND")), None)
        assert found is not None, f"{sql}: {need(self._process.stderr).read()[-4000:]}"
        return list(json.loads(found[5:]))


@contextmanager
def start(endpoint: str, log: Path) -> Iterator[Spark]:
    classpath = ",".join(map(str, jars(JARS, sha256=JARS)))
    command = [sys.executable, str(Path(__file__).parent / "ask_spark.py"), classpath, endpoint]
    with (
        log.open("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        process.stderr = errors
        try:
            yield Spark(process)
        finally:
            need(process.stdin).close()
            errors.seek(0)


def test_spark_changes_it_between_loads(aws, bucket, tmp_path):
    aws.hide_missing = False
    lake = Lineage(aws, fields=("day",))
    lake.next_id = 100
    ids, gone = dict[int, int](), set[int]()
    # The rows that Spark writes.
    own = {1: "a", 2: "b", 3: "a", 4: "c", 5: "a"}

    with start(aws.url, tmp_path / "errors") as spark:

        def compare() -> None:
            """All readers see the same rows, and none has another id than before."""
            rows = spark.ask("SELECT id, day, _row_id FROM glue.db.t ORDER BY id")
            seen = [(row["id"], row["day"]) for row in rows]
            assert seen == sorted(
                [*own.items(), *((row["id"], row["day"]) for row in lake.rows if row["id"] not in gone)]
            )
            scanned = lake.table.seen.scan().to_arrow().to_pylist()
            assert sorted((row["id"], row["day"]) for row in scanned) == seen
            assert [(row["id"], row["day"]) for row in lake.read_by_duckdb()] == seen
            now = {row["id"]: row["_row_id"] for row in rows}
            assert len(set(now.values())) == len(now)
            assert {key: now[key] for key in now if key in ids} == {key: ids[key] for key in ids if key in now}
            ids.update(now)

        def change(sql: str) -> None:
            spark.ask(sql)
            compare()

        def load(*given: Any) -> None:
            lake.load(*given)
            compare()

        spark.ask("CREATE NAMESPACE IF NOT EXISTS glue.db")
        spark.ask(TABLE)
        spark.ask("INSERT INTO glue.db.t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
        change("INSERT INTO glue.db.t VALUES (4, 'c'), (5, 'a')")
        load("ab")
        del own[3]
        gone.add(100)
        # Deletion vectors, one in a file of ours.
        change("DELETE FROM glue.db.t WHERE id IN (3, 100)")
        load("ab")
        load("c")
        own[4] = "d"
        change("UPDATE glue.db.t SET day = 'd' WHERE id = 4")
        lake.undo(1)
        compare()
        for key in (1, 5):
            del own[key]
        load("a", "replace_partitions")
        change("CALL glue.system.rewrite_manifests('db.t')")
        load("b")
        own.clear()
        load("ab", "refresh")
        gone.add(lake.rows[0]["id"])
        change(f"DELETE FROM glue.db.t WHERE id = {lake.rows[0]['id']}")
        change("CALL glue.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
        load("ab")
