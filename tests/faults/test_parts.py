"""Loads whose receipts are in parts, killed where parts are written or read; parts that others delete or change."""

from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakewriter.cli.main import main
from tests.faults.books import SCHEMA, SHOTS, Books
from tests.faults.process import KILLED, Process
from tests.faults.without_spark import BOUNDS, ForkedProcess
from tests.load.lakes import BUCKET, completes, writes
from tests.support.call import Call

pytestmark = pytest.mark.spark

BY_TASKS, BY_DRIVER, JOINED = "1,0,200", "1,1000000,200", "100000,0,0"
"""Tasks write a part for each file; the driver does; tasks do, and the driver joins them."""
TABLE = f"{SCHEMA}.{SHOTS}"


def reads_part(call: Call) -> bool:
    return call.method == "GET" and call.key.endswith(".jsonl.gz")


POINTS: list[Any] = [
    # by whom parts are written; the call that kills the load, how many pass before; the phase that is left
    (BY_TASKS, writes(".jsonl.gz"), 0, None),
    (BY_TASKS, writes(".jsonl.gz"), 1, None),
    (BY_DRIVER, writes(".jsonl.gz"), 1, None),
    (JOINED, writes(".jsonl.gz"), 2, None),
    (BY_TASKS, writes(f"{TABLE}.json"), 0, None),
    (BY_DRIVER, writes("/state.json"), 1, None),
    (BY_TASKS, reads_part, 1, "intended"),
    (JOINED, completes, 0, "intended"),
    (BY_TASKS, completes, 1, "intended"),
    (BY_DRIVER, writes(".report.json"), 0, "uploaded"),
]


@pytest.fixture
def shots(lake) -> Books:
    """The table that needs no Spark, in two files a load."""
    return Books(lake, SHOTS)


def start(shots: Books, job: str, bounds: str) -> Process:
    environment: dict[str, Any] = {BOUNDS: bounds}
    return ForkedProcess(shots.lake.file, job, shots.lake.aws.url, **environment)


def kill(shots: Books, bounds: str, match, after: int) -> str | None:
    with start(shots, "a", bounds).killed_at(match, after=after) as process:
        assert process.wait() == KILLED
    pending = shots.controls[SHOTS].state.read().pending
    return pending.phase if pending is not None else None


def list_parts(shots: Books) -> list[str]:
    return sorted(key for key in shots.lake.aws.objects(BUCKET) if f"/receipts/{TABLE}/" in key)


@pytest.mark.one_in(12)
@pytest.mark.parametrize(("bounds", "match", "after", "phase"), POINTS)
def test_killed_then_the_same_job_again(shots, bounds, match, after, phase):
    assert kill(shots, bounds, match, after) == phase
    # Whoever goes on reads parts whatever its own bounds are.
    assert shots.lake.load("a").status == "done"
    assert shots.audit(again=["a"]).left_uploads == {}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("bounds", [BY_TASKS, BY_DRIVER, JOINED])
def test_a_load_with_parts_is_as_any_other(shots, bounds):
    with start(shots, "a", bounds) as process:
        assert process.wait() == 0, process.errors
        (table,) = process.report["tables"]
    assert (table["rows"], table["files"], table["keys"]) == (20, 2, [])
    assert len(list_parts(shots)) == {BY_TASKS: 2, BY_DRIVER: 2, JOINED: 3}[bounds]
    report = shots.controls[SHOTS].read_report("a")
    assert report is not None
    assert (report.needs, sum(part.totals.files for part in report.parts)) == (("receipt_parts",), 2)
    assert len(set(shots.controls[SHOTS].list_written_keys(report))) == 2
    # The next load needs nothing that an older release does not know.
    assert shots.controls[SHOTS].state.read().needs == ()
    assert shots.audit(again=["a"]).left_uploads == {}


def run(shots: Books, *arguments: str) -> Result:
    verb, *more = arguments
    return CliRunner().invoke(main, [verb, str(shots.lake.file), *more])


def test_a_part_that_somebody_deleted_and_restored(shots):
    assert kill(shots, BY_TASKS, completes, 0) == "intended"
    key, s3 = list_parts(shots)[1], shots.lake.aws.client("s3")
    body = shots.lake.aws.objects(BUCKET)[key]
    s3.delete_object(Bucket=BUCKET, Key=key)
    (failed,) = shots.lake.load("a").tables
    assert failed.code == "PENDING_UNRECOVERABLE"
    assert f"{key}, which has the receipts of 1 file, is not there. Restore the object" in failed.message
    assert run(shots, "abandon", "a", "--reason", "r").exit_code == 1
    # Nothing was completed by the parts that are there.
    assert (shots.lake.data(), len(shots.lake.aws.uploads(BUCKET))) == ({}, 2)
    s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    assert shots.lake.load("a").status == "done"
    assert shots.audit(again=["a"]).left_uploads == {}


def test_a_part_that_nobody_restores(shots):
    assert kill(shots, BY_TASKS, completes, 1) == "intended"
    key = list_parts(shots)[0]
    shots.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"{}")
    (failed,) = shots.lake.load("b").tables
    assert failed.code == "PENDING_UNRECOVERABLE"
    assert (
        f"{key}, which has the receipts of 1 file, is not as the load wrote it: its SHA-256 differs" in failed.message
    )
    assert "lakewriter abandon LAKE a --intent-lost --reason TEXT" in failed.message
    result = run(shots, "abandon", "a", "--intent-lost", "--reason", "r")
    assert (result.exit_code, "1 object that it wrote deleted" in result.output) == (0, True), result.output
    assert shots.lake.data() == {}
    assert shots.lake.load("a").status == "done"


def test_a_part_of_a_committed_load_that_is_gone(shots):
    with start(shots, "a", BY_TASKS) as process:
        assert process.wait() == 0
    key = list_parts(shots)[0]
    shots.lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    result = run(shots, "verify", "a")
    assert result.exit_code == 1
    assert "PENDING_UNRECOVERABLE" in result.output
    assert "which has the receipts of 1 file, is not there" in " ".join(result.output.split())
    # It keeps no other load from being made.
    shots.grow()
    assert shots.lake.load("b").status == "done"
