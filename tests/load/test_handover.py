"""The outcome that an attempt leaves for whoever started it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewriter.errors import NoAnswerError, SourceFailedError
from lakewriter.report import RunReport
from lakewriter.run.continuous_status import RunStatus, TableStatus
from lakewriter.run.outcome_file import Counts, leave_outcome, summarize_load, summarize_run
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET, Lake, table
from tests.support.narrow import need
from tests.support.server import StrictAws

SCHEMA = "supaflow_nyc_public"
EVENTS = "id,at\n1,5\n2,7\n"
KEY = "data/production/_lakewriter/flights/runs/n.json"


@pytest.fixture
def events(lake: Lake) -> Lake:
    lake.write(table("events", lake.csv("events.csv", EVENTS), cursor="at"))
    return lake


@pytest.fixture
def idle(tmp_path: Path, aws: StrictAws, bucket: str) -> Lake:
    """A pipeline that does not get as far as Spark."""
    no_session: Any = None
    lake = Lake(tmp_path, aws, no_session)
    lake.write(table("events", "events.csv"))
    return lake


def left(lake: Lake) -> dict[str, Any]:
    """What is there to read, without its time."""
    content = json.loads(lake.aws.objects(BUCKET)[KEY])
    return {name: value for name, value in content.items() if name not in ("finished", "seconds")}


def attempt(lake: Lake, load: Callable[[], RunReport]) -> list[str]:
    """Warnings of a load whose outcome goes to ``n``."""
    warned: list[str] = []
    controls = {table.id: lake.control(table.id) for table in lake.spec.tables}
    leave_outcome(load, summarize_load, name="n", controls=controls, warn=warned.append)
    return warned


@pytest.mark.spark
def test_done(events):
    assert attempt(events, lambda: events.load("a")) == []
    content = json.loads(events.aws.objects(BUCKET)[KEY])
    assert content["seconds"] > 0
    (size,) = map(len, events.data().values())
    assert left(events) == {
        "version": 1,
        "status": "done",
        "code": None,
        "message": None,
        "transient": False,
        "exit_code": 0,
        "job_id": "a",
        "rows": 2,
        "rows_set_aside": 0,
        "files": 1,
        "bytes": size,
        "pending_hours": 0.0,
    }


@pytest.mark.spark
def test_pending_intent_has_its_age(events):
    events.aws.deny("glue:CreateTable")
    events.load("a")
    events.aws.allow_everything()
    since(events, hours=30)
    events.aws.deny("glue:CreateTable")
    attempt(events, lambda: events.load("b"))
    found = left(events)
    assert (found["code"], found["transient"], found["pending_hours"]) == ("PENDING_UNRECOVERABLE", False, 30.0)


def since(lake: Lake, hours: int) -> None:
    """Let the pending intent be so old."""
    control = lake.control(f"{SCHEMA}.events")
    pending = need(control.state.read().pending)
    earlier = pending.model_copy(update={"since": pending.since - timedelta(hours=hours)})
    control.state.move(Edit(pending=earlier))


def test_error_before_any_table_was_touched(idle):
    def load() -> RunReport:
        raise NoAnswerError("nobody answers.")

    with pytest.raises(NoAnswerError):
        attempt(idle, load)
    found = left(idle)
    assert (found["status"], found["code"], found["message"], found["transient"], found["job_id"]) == (
        "failed",
        "TIMEOUT",
        "TIMEOUT: nobody answers.",
        True,
        None,
    )


def test_fault_of_the_program(idle):
    def faulty() -> RunReport:
        raise ZeroDivisionError("integer division or modulo by zero")

    with pytest.raises(ZeroDivisionError):
        attempt(idle, faulty)
    assert (left(idle)["message"], left(idle)["transient"]) == (
        "ZeroDivisionError: integer division or modulo by zero",
        False,
    )


def test_second_start_under_a_name_replaces_the_first(idle):
    for number in range(2):
        with pytest.raises(SourceFailedError):
            attempt(idle, failing(SourceFailedError(f"try {number}.")))
    assert left(idle)["message"] == "SOURCE_FAILED: try 1."


def failing(error: Exception) -> Callable[[], RunReport]:
    def load() -> RunReport:
        raise error

    return load


def test_what_cannot_be_left_changes_nothing(idle):
    idle.aws.deny("s3:PutObject")
    with pytest.raises(SourceFailedError) as raised:
        attempt(idle, failing(SourceFailedError("gone.")))
    assert str(raised.value) == "SOURCE_FAILED: gone."
    assert raised.value.__notes__[0].startswith(f"The outcome could not be left at {KEY}: S3_ACCESS_DENIED")


def test_lost_answer(idle):
    idle.aws.drop_answer(lambda call: call.action == "s3:PutObject")
    with pytest.raises(SourceFailedError):
        attempt(idle, failing(SourceFailedError("gone.")))
    assert left(idle)["code"] == "SOURCE_FAILED"


def test_no_name_leaves_nothing(idle):
    with pytest.raises(SourceFailedError):
        leave_outcome(failing(SourceFailedError("gone.")), summarize_load, name=None, controls={}, warn=print)
    assert idle.aws.objects(BUCKET) == {}


def test_continuous_run():
    tables = {
        f"{SCHEMA}.events": TableStatus(state="stopped", rows=20, files=2, bytes=900),
        "other": TableStatus(state="failed"),
    }
    began = datetime(2027, 1, 4, 6, tzinfo=UTC)
    status = RunStatus(
        pipeline="p", run="r", state="failed", started_at=began, at=began + timedelta(minutes=1),
        interval_seconds=5, tables=tables,
    )  # fmt: skip
    ended = summarize_run((status, NoAnswerError("nobody answers.")))
    assert (need(ended.error).code, ended.unfinished) == ("TIMEOUT", ("other",))
    assert ended.counts == Counts(rows=20, files=2, bytes=900, seconds=60.0)
