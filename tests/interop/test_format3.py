"""Tables of format version 3 that the Iceberg project's own runtime makes and changes between our loads."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.iceberg.test_format3 import Lineage, read_by_duckdb
from tests.iceberg.test_format3_merges import Merged, make_rows
from tests.iceberg.test_merge import Row, show
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


MERGED = f"""CREATE TABLE glue.db.t (id bigint, at bigint, day string, v string, gone boolean) USING iceberg {{}}
LOCATION 's3://{BUCKET}/data/production/db/t' TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read',
'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read', 'commit.manifest.min-count-to-merge'='4')"""
UPGRADE = "ALTER TABLE glue.db.t SET TBLPROPERTIES ('format-version'='3', 'commit.manifest.min-count-to-merge'='4')"
REWRITES = (
    "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
    "rewrite_data_files(table => 'db.t', options => map('delete-file-threshold', '1'))",
    "rewrite_manifests('db.t')",
    "rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'))",
)


class Changed(Merged):
    """A table that Spark changes as well, and reads with the ids of its rows."""

    def __init__(self, aws: Any, spark: Spark, fields: tuple[str, ...]) -> None:
        super().__init__(aws, fields)
        self.spark, self.sequences = spark, dict[Any, tuple[Row, int]]()

    def compare(self) -> None:
        """Spark, DuckDB, PyIceberg and the manifests show the same rows. Rows that were not changed keep the number of
        the snapshot that changed them last."""
        self.check()
        seen = self.spark.ask("SELECT *, _row_id, _last_updated_sequence_number FROM glue.db.t ORDER BY id")
        assert {one["id"]: one["_row_id"] for one in seen} == self.ids
        rows = [{name: one[name] for name in ("id", "at", "day", "v", "gone")} for one in seen]
        assert rows == show(self.rows)
        assert read_by_duckdb(self.table, "*", "id") == rows
        numbers = {one["id"]: one["_last_updated_sequence_number"] for one in seen}
        before = {key: number for key, (known, number) in self.sequences.items() if self.rows.get(key) == known}
        assert {key: numbers[key] for key in before} == before
        self.sequences = {key: (self.rows[key], numbers[key]) for key in numbers}

    def change_by_spark(self, rng: random.Random, number: int) -> None:
        """A change of rows or of files, in one snapshot."""
        key, chance = rng.randrange(20), rng.random()
        if chance < 0.3:
            self.spark.ask(f"DELETE FROM glue.db.t WHERE id >= {key} AND id < {key + 3}")
            self.rows = {other: one for other, one in self.rows.items() if not key <= other < key + 3}
        elif chance < 0.6:
            self.spark.ask(f"UPDATE glue.db.t SET v = 's{number}' WHERE id = {key}")
            if key in self.rows:
                self.rows[key] = self.rows[key] | {"v": f"s{number}"}
        else:
            self.spark.ask(f"CALL glue.system.{rng.choice(REWRITES)}")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("seed", "steps"), [(1, 25), (2, 25)])
def test_spark_changes_it_between_merges(aws, bucket, tmp_path, seed, steps):
    """A table that Spark makes, or one of ours that it upgrades with its position deletes."""
    aws.hide_missing = False
    rng = random.Random(seed)
    with start(aws.url, tmp_path / "errors") as spark:
        lake = Changed(aws, spark, rng.choice([(), ("day",)]))
        spark.ask("CREATE NAMESPACE IF NOT EXISTS glue.db")
        if seed % 2:
            spark.ask(MERGED.format("PARTITIONED BY (day)" if lake.fields else ""))
        else:
            for number in range(1, 4):
                lake.merge(make_rows(rng, number))
            spark.ask(UPGRADE)
        lake.merge(make_rows(rng, 3))
        for number in range(4, steps):
            before, kept = need(lake.table.seen.current_snapshot()).snapshot_id, (lake.rows, lake.ids, lake.sequences)
            chance = rng.random()
            if chance < 0.35:
                lake.change_by_spark(rng, number)
            elif chance < 0.5:
                assert lake.compact().list_dropped() == ()
            else:
                lake.rows = dict(lake.rows)
                found = lake.merge(make_rows(rng, number))
                lake.compare()
                if rng.random() < 0.25:
                    lake.undo(found, before)
                    lake.rows, lake.ids, lake.sequences = kept
            lake.compare()
