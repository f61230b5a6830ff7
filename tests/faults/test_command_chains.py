"""Chains of commands in processes of their own, each killed or held up at a random write while others change its table:
merges, compactions beside batches, and refreshed tables that are handed to another pipeline."""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from lakewriter.operate.compaction import Compaction
from lakewriter.operate.repair import abandon, change_over
from tests.faults.process import KILLED, Process
from tests.faults.test_merge_kills import MOST_CALLS, Rows, draw, drop_deleted, judge, merge, read
from tests.faults.test_quarantine_kills import Staged
from tests.faults.without_spark import ForkedProcess
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_compacted import GIB, load_batch
from tests.load.test_handed_over import OWNERS, code_of, delete
from tests.load.test_merged import load, make, rows

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(3600)]

SEED = os.environ.get("LAKEWRITER_FAULTS_SEED", "1")
CHAINS = int(os.environ.get("LAKEWRITER_COMMAND_CHAINS", "90"))
"""Of 9 there are 4 of merges, 3 of compactions and 2 of hand-overs."""
STEPS = 3
LATE = 75
"""The exit code of a process that finds its change made, or its table changed, by another one."""


def list_seeds(first: int, last: int) -> list[int]:
    """List the chains of which the remainder by 9 is in the range."""
    return [number for number in range(CHAINS) if first <= number % 9 < last]


def strike(process: Process, rng: random.Random, meanwhile: Callable[[], object]) -> str:
    """Kill the process at a random write, or hold it up there while ``meanwhile`` happens; return what became of it."""
    after, is_applied = rng.randrange(MOST_CALLS), rng.random() < 0.5
    if rng.random() < 0.5:
        with process.killed_at(Staged(), after=after, applied=is_applied):
            code = process.wait()
        meanwhile()
        assert code in (KILLED, 0), process.errors
        return "killed" if code == KILLED else "done"
    with process.stalled_at(Staged(), after=after, applied=is_applied):
        if not process.is_stalled():
            assert process.wait() == 0, process.errors
            meanwhile()
            return "done"
        meanwhile()
        process.go_on()
        code = process.wait()
    assert code in (0, LATE), process.errors
    return f"held, {code}"


def to_columns(given: list[tuple[int, int, str]]) -> dict[str, Any]:
    return dict(zip(("id", "at", "v"), map(list, zip(*given, strict=True)), strict=True))


def compact(users: Refreshed) -> None:
    (table,) = users.spec.tables
    Compaction(users.pipeline, table, GIB).run()


@pytest.mark.parametrize("number", list_seeds(0, 4))
def test_merges(tmp_path, aws, bucket, spark, number, record_property):
    """A load takes another one's place, another one follows, or its table is compacted, before it goes on."""
    rng, expected, ends = random.Random(f"{SEED}/merge/{number}"), dict[int, tuple[int, str]](), list[str]()
    rules = {"primary_key": ["id"], "order_by": ["at"], "deleted": "v = 'D'"}
    users = Refreshed(
        tmp_path, aws, "iceberg", mode="merge", destination={"tracking": ["deleted"]}, spark=spark, **rules
    )
    users.load("first", id=[1], at=[0], v=["0"])
    expected = {1: (0, "0")}
    for step in range(1, STEPS + 1):
        job, given = f"job-{step}", draw(rng, 2 * step)
        later, comes = draw(rng, 2 * step + 1), rng.choice(["again", "then", "compact"])

        def meanwhile(job: str = job, given: Any = given, later: Any = later, comes: str = comes) -> None:
            users.load(job, **to_columns(given))
            if comes == "then":
                users.load(f"{job}-then", **to_columns(later))
            elif comes == "compact":
                compact(users)

        users.write_rows(**to_columns(given))
        ends.append(strike(Process(users.folder / "lake.yaml", job, aws.url), rng, meanwhile))
        expected = follow(expected, given, later if comes == "then" else None)
        assert read(users) == drop_deleted(expected), ends
    judge(users)
    assert not aws.uploads(BUCKET)
    record_property("ends", ends)


def follow(expected: Rows, *loads: list[tuple[int, int, str]] | None) -> Rows:
    for given in loads:
        expected = merge(expected, given) if given is not None else expected
    return expected


@pytest.mark.parametrize("number", list_seeds(4, 7))
def test_compactions_beside_batches(tmp_path, aws, bucket, number, record_property):
    """Batches commit while a compaction is held up, or after it was killed."""
    rng, ends, batches = random.Random(f"{SEED}/compact/{number}"), list[str](), 0
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"), (3, 1, "b"))
    change_over(users.pipeline.first_control, "from single loads to batches")
    expected = {1: (2, "b"), 2: (1, "a"), 3: (1, "b")}
    for step in range(STEPS):
        fresh = [
            (rng.randrange(6), 10 * step + place, f"{step}.{place}") for place in range(3, 3 + rng.choice([1, 2, 3]))
        ]

        def meanwhile(fresh: Any = fresh) -> None:
            nonlocal batches
            for row in fresh:
                load_batch(users, row, batches)
                batches += 1

        process = ForkedProcess(users.folder / "lake.yaml", f"compact-{step}", aws.url)
        process.command = [*process.command[:3], "compact", str(users.folder / "lake.yaml"), "crm.users", "--json"]
        ends.append(strike(process, rng, meanwhile))
        expected |= {key: (at, v) for key, at, v in fresh}
        assert rows(users) == sorted((key, *row) for key, row in expected.items()), ends
    compact(users)
    assert rows(users) == sorted((key, *row) for key, row in expected.items()), ends
    judge(users)
    # What a killed one was uploading is left to the bucket's lifecycle rule: the next one has another job id.
    assert len(aws.uploads(BUCKET)) <= len(ends) - ends.count("done")
    record_property("ends", ends)


def end(users: Refreshed, job: str, rng: random.Random) -> None:
    """Let a load finish, or give it up; the latter alone where another pipeline has taken the table over since."""
    if users.latest["pipeline"] == users.name and rng.random() < 0.5:
        assert users.run(job).status == "done"
    else:
        abandon(users.pipeline.controls, job, "a drill", users.pipeline.clients)
    assert users.state.pending is None


@pytest.mark.parametrize("number", list_seeds(7, 9))
def test_refreshes_that_are_handed_over(tmp_path, aws, bucket, number, record_property):
    """Another pipeline takes the table over while a refresh is held up, or after it was killed; and hands it back."""
    rng, ends = random.Random(f"{SEED}/hand over/{number}"), list[str]()
    users = Refreshed(tmp_path, aws, rng.choice(["none", "glue"]))
    for at, job in enumerate("abc"):
        users.load(job, id=[at])
    for step, (name, follower) in enumerate((("crm", "sales"), ("sales", "crm"))):
        first = 10 * (step + 1)

        def take_over(name: str = name, follower: str = follower, first: int = first) -> None:
            delete(users, OWNERS)
            is_pending = users.state.pending is not None
            users.hand_over(follower, shares_tables=True)
            if users.state.pending is not None:
                # It was held up until the table was another's.
                end(users, users.state.pending.job_id, rng)
            if is_pending:
                assert code_of(users, "too early", id=[99]) == "NAME_COLLISION"
                delete(users, OWNERS)
                users.hand_over(name)
                end(users, f"{name}-{first}", rng)
                delete(users, OWNERS)
                users.hand_over(follower, shares_tables=True)
            for at in range(first + 1, first + 1 + rng.choice([1, 2])):
                users.load(f"{follower}-{at}", id=[at])
                assert (users.ids(), users.latest["pipeline"]) == ([at], follower)

        users.write_rows(id=[first])
        ends.append(strike(ForkedProcess(users.folder / "lake.yaml", f"{name}-{first}", aws.url), rng, take_over))
        (shown,) = users.ids()
        assert (shown > first, users.latest["pipeline"]) == (True, follower), ends
        assert users.differences() == []
    record_property("ends", ends)
