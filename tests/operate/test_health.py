"""What ``status`` says of a pipeline that nobody looked at for a while, and the exit code that a monitor sees."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.cli.status_view import show_again
from lakewriter.errors import NoAnswerError, S3AccessDeniedError
from lakewriter.operate.health import assess, describe
from lakewriter.records.state import Pending, TableState

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RUNNING, FAILED = {"state": "running"}, {"state": "failed", "code": "SOURCE_FAILED", "message": "gone"}


def left(state, ago, **tables):
    return {"version": 1, "run": "r", "state": state, "at": (NOW - ago).isoformat(), "tables": tables}


SECONDS, HOURS = timedelta(seconds=30), timedelta(hours=12)
RUNS = [
    (None, None, "", 0),
    (left("running", SECONDS, a=RUNNING), "running", "running (as of 30 seconds ago)", 0),
    (left("stopping", SECONDS, a=RUNNING), "stopping", "stopping", 0),
    (left("running", HOURS, a=RUNNING), "stale", "stale: it last wrote its status 12 hours ago, so its process", 1),
    (left("stopping", HOURS, a=RUNNING), "stale", "stale: it last wrote its status 12 hours ago", 1),
    (left("running", SECONDS, a=RUNNING, b=FAILED), "partly_failed", "partly failed: 1 table stopped", 1),
    (left("failed", HOURS, a=FAILED), "failed", "failed (as of 12 hours ago)", 1),
    (left("stopped", HOURS, a={"state": "stopped"}), "stopped", "stopped (as of 12 hours ago)", 0),
    # What holds no status is not taken for a run that fares well.
    ({}, "unknown", "unknown", 1),
    ({"state": "flying", "at": NOW.isoformat()}, "unknown", "unknown", 1),
    ({"state": "running", "at": "soon", "tables": []}, "unknown", "unknown", 1),
    ({"state": "running", "at": 7, "tables": {"a": None}}, "unknown", "unknown", 1),
]


@pytest.mark.parametrize(("continuous", "run", "said", "code"), RUNS)
def test_a_continuous_run(continuous, run, said, code):
    health = assess({"s.t": TableState()}, continuous, NOW)
    assert (health.run, health.exit_code) == (run, code)
    assert run is None or describe(health, NOW).startswith(said)
    if run == "partly_failed":
        assert health.failed_tables == {"b": "SOURCE_FAILED: gone"}


@pytest.mark.parametrize(("ago", "code"), [(timedelta(minutes=5), 0), (timedelta(hours=3), 75)])
def test_a_load_that_waits(ago, code):
    """And where a service clears away the files of one that nobody finishes, the sentence says so."""
    pending = Pending(job_id="a", attempt="1", phase="uploaded", since=NOW - ago)
    health = assess({"s.t": TableState(pending=pending)}, None, NOW)
    assert (health.exit_code, [line[:31] for line in health.waiting]) == (
        code,
        ["load a of s.t is pending since "] if code else [],
    )
    health = assess({"s.t": TableState(pending=pending)}, None, NOW, loses_files=True)
    assert [line[-59:] for line in health.waiting] == (
        ["abandon it, before the catalog's service clears its files away"[-59:]] if code else []
    )


def test_watching_goes_on_after_what_may_pass(capsys):
    answers = iter([0, NoAnswerError("no answer"), 1, KeyboardInterrupt()])

    def show():
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    pauses: list[int] = []
    assert show_again(show, lambda: pauses.append(1)) == 1
    assert (len(pauses), "TIMEOUT: no answer" in capsys.readouterr().err) == (3, True)


def test_watching_ends_with_what_does_not_pass():
    def show():
        raise S3AccessDeniedError("no")

    with pytest.raises(S3AccessDeniedError):
        show_again(show, lambda: None)
