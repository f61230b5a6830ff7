"""Processes that merge rows by key, killed at a call between their staging and their end: the one that goes on finds
each key once, with its newest row."""

import random
from typing import Any

import pytest

from tests.faults.process import KILLED, Process
from tests.faults.test_quarantine_kills import Staged
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed

pytestmark = pytest.mark.spark

KILLS = 50
MOST_CALLS = 12
"""Writes of such a load after the first part of its first file."""
KEYS = 8

Rows = dict[int, tuple[int, str]]


@pytest.fixture
def users(tmp_path, aws, bucket, spark):
    table = {"primary_key": ["id"], "order_by": ["at"], "deleted": "v = 'D'"}
    destination = {"tracking": ["deleted"]}
    return Refreshed(tmp_path, aws, "iceberg", mode="merge", destination=destination, spark=spark, **table)


def draw(rng: random.Random, number: int) -> list[tuple[int, int, str]]:
    """Draw a load's rows, some of which are late; no two have one key and one order."""
    rows = {(rng.randrange(KEYS), max(0, number - rng.choice([0, 0, 0, 2]))) for _ in range(5)}
    return [(key, at, rng.choice(["D", f"{number}", f"{number}"])) for key, at in sorted(rows)]


def merge(expected: Rows, rows: list[tuple[int, int, str]]) -> Rows:
    """By the documentation: the newest row stays; of rows with the same order a delete, then that of the table. A
    delete stays as such a row, and keeps older rows out."""
    result = dict(expected)
    newest = {key: (at, v) for key, at, v in sorted(rows)}
    for key, (at, v) in newest.items():
        before = result.get(key)
        if before is None or at > before[0] or (at == before[0] and v == "D"):
            result[key] = (at, v)
    return result


def drop_deleted(expected: Rows) -> Rows:
    """Return the rows that readers see."""
    return {key: row for key, row in expected.items() if row[1] != "D"}


def read(users: Refreshed) -> Rows:
    rows = users.iceberg().scan().to_arrow().to_pylist()
    seen = {row["id"]: (row["at"], row["v"]) for row in rows}
    assert len(seen) == len(rows)
    return seen


def list_delete_files(users: Refreshed) -> set[str]:
    """List the files with deletes that lie in the bucket."""
    return {key for key in users.aws.objects(BUCKET) if "/deletes-" in key}


def play(users: Refreshed, expected: Rows, rng: random.Random, number: int, after: int) -> tuple[int, Rows]:
    """Kill a load, and load again under its job id; return the exit code of the one that was killed, and the rows."""
    rows = draw(rng, number)
    columns: dict[str, Any] = dict(zip(("id", "at", "v"), map(list, zip(*rows, strict=True)), strict=True))
    users.write_rows(**columns)
    with Process(users.folder / "lake.yaml", f"job-{number}", users.aws.url).killed_at(Staged(), after=after) as killed:
        code = killed.wait()
    following = merge(expected, rows)
    if users.state.pending is None:
        assert read(users) in (drop_deleted(expected), drop_deleted(following))
    users.load(f"job-{number}", **columns)
    assert read(users) == drop_deleted(following)
    assert not users.aws.uploads(BUCKET)
    return code, following


def judge(users: Refreshed) -> None:
    """Compare all loads with what is there; no file with deletes is left of a try that was not committed."""
    assert users.differences() == []
    listed = {
        entry.data_file.file_path.removeprefix(f"s3://{BUCKET}/")
        for snapshot in users.iceberg().snapshots()
        for manifest in snapshot.manifests(users.iceberg().io)
        for entry in manifest.fetch_manifest_entry(users.iceberg().io)
    }
    assert list_delete_files(users) <= listed


@pytest.mark.exhaustive
def test_a_merge_that_is_killed(users):
    users.load("first", id=[1, 2], at=[0, 0], v=["0", "0"])
    code, _ = play(users, {1: (0, "0"), 2: (0, "0")}, random.Random(2), 1, 6)
    assert code == KILLED
    judge(users)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_merges_that_are_killed(users, record_property):
    rng, codes = random.Random(1), list[int]()
    users.load("first", id=[1], at=[0], v=["0"])
    expected: Rows = {1: (0, "0")}
    number = 0
    while codes.count(KILLED) < KILLS and number < 2 * KILLS:
        number += 1
        code, expected = play(users, expected, rng, number, rng.randrange(MOST_CALLS))
        codes.append(code)
        # Each look is at all loads so far.
        if number % 10 == 0:
            judge(users)
    judge(users)
    record_property("kills", codes.count(KILLED))
    assert codes.count(KILLED) == KILLS
