"""Merged tables as other engines read them: Spark with Iceberg's own runtime, DuckDB and PyIceberg see the rows that a
dictionary has, after each merge, with and without a filter on the partition."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.expressions import AlwaysTrue

from lakewriter.commit.iceberg.snapshot_presence import read_counts
from tests.iceberg.commits import Table
from tests.iceberg.test_merge import Row, apply, foreign, merge, row
from tests.iceberg.test_readers import extension
from tests.interop.maven import jars
from tests.interop.test_iceberg_runtime import JARS
from tests.operate.tampered import compact
from tests.support.narrow import need

MERGES = 200
FILTERS = ("true", "day = 'a'", "day = 'b'")
Seen = dict[str, list[list[list[Any]]]]


def play(table: Table, merges: int, seed: int) -> Seen:
    """Merge random rows; return by snapshot what each filter lets through."""
    rng, expected, seen = random.Random(seed), dict[Any, Row](), Seen()
    fields: tuple[str, ...] = ("day",)
    committed = 0
    for number in range(1, merges + 1):
        rows = [
            row(rng.randrange(30), rng.randrange(number * 3), f"{number}-{place}", rng.choice("abc"))
            | {"gone": rng.random() < 0.2}
            for place in range(rng.randrange(1, 12))
        ]
        if number == merges // 2:
            # The files so far stay in the partitions that they have.
            with foreign(table).update_spec() as update:
                update.add_identity("gone")
            fields = ("day", "gone")
        # As a load does before it writes files by partition.
        rows.sort(key=lambda one: [one[name] for name in fields])
        committed += 1
        merge(table, rows, committed, fields=fields)
        apply(expected, rows)
        seen[str(need(table.seen.current_snapshot()).snapshot_id)] = _filter(expected)
        if rng.random() < 0.2:
            committed += _compact(table, committed, is_foreign=rng.random() < 0.3)
            seen[str(need(table.seen.current_snapshot()).snapshot_id)] = _filter(expected)
    return seen


def _compact(table: Table, committed: int, *, is_foreign: bool) -> int:
    """Compact as another engine does, or as the product does; return by how many the product's changes are more."""
    if is_foreign:
        compact(table.seen)
        return 0
    found = table.compacted(f"c{committed}", committed)
    table.publish(found, committed + 1)
    assert need(read_counts(table.seen.current_snapshot(), "compact")).list_dropped() == ()
    return 1


def _filter(expected: dict[Any, Row]) -> list[list[list[Any]]]:
    rows = [[one["id"], one["at"], one["day"], one["v"]] for one in expected.values()]
    return [sorted((one for one in rows if day is None or one[2] == day), key=str) for day in (None, "a", "b")]


def read_with_pyiceberg(table: Table, snapshots: list[str]) -> Seen:
    filters, seen = (AlwaysTrue(), "day == 'a'", "day == 'b'"), Seen()
    for snapshot in snapshots:
        scans = [table.seen.scan(snapshot_id=int(snapshot), row_filter=text) for text in filters]
        seen[snapshot] = [_list(scan.to_arrow().select(["id", "at", "day", "v"]).to_pylist()) for scan in scans]
    return seen


def _list(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return sorted((list(one.values()) for one in rows), key=str)


def read_with_duckdb(table: Table, snapshots: list[str]) -> Seen:
    endpoint, seen = table.aws.url.removeprefix("http://"), Seen()
    location = table.seen.metadata_location
    with duckdb.connect() as connection:
        for needed in ("httpfs", "avro", "iceberg"):
            connection.execute(f"SET autoinstall_known_extensions = false; LOAD '{extension(needed)}'")
        connection.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'testing', SECRET 'testing', REGION 'us-east-1', "
            f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
        for snapshot in snapshots:
            scan = f"iceberg_scan('{location}', snapshot_from_id = {snapshot})"
            seen[snapshot] = [
                sorted(
                    map(list, connection.sql(f'SELECT id, "at", day, v FROM {scan} WHERE {text}').fetchall()), key=str
                )
                for text in FILTERS
            ]
    return seen


def read_with_spark(table: Table, snapshots: list[str], folder: Path) -> Seen:
    script, file = Path(__file__).parent / "read_merges_with_spark.py", folder / "snapshots.json"
    file.write_text(json.dumps(snapshots), "utf-8")
    classpath = ",".join(map(str, jars(JARS, sha256=JARS)))
    done = subprocess.run(
        [sys.executable, str(script), classpath, table.aws.url, str(file), json.dumps(FILTERS)],
        env=os.environ | {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))
    return Seen(json.loads(found.removeprefix("FOUND")))


def test_duckdb_and_pyiceberg_see_the_newest_rows(aws, bucket):
    table = Table(aws)
    # PyIceberg's own files look for objects by HEAD.
    aws.hide_missing = False
    expected = play(table, 6, seed=1)
    assert read_with_pyiceberg(table, list(expected)) == expected
    assert read_with_duckdb(table, list(expected)) == expected


@pytest.mark.exhaustive
@pytest.mark.timeout(3000)
def test_three_engines_see_the_newest_rows_after_each_merge(aws, bucket, tmp_path):
    jars(JARS, sha256=JARS)
    table = Table(aws)
    aws.hide_missing = False
    expected = play(table, MERGES, seed=7)
    assert len(expected) > MERGES
    assert read_with_spark(table, list(expected), tmp_path) == expected
    assert read_with_duckdb(table, list(expected)) == expected
    assert read_with_pyiceberg(table, list(expected)) == expected
