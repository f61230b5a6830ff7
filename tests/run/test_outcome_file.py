"""What is left for whoever started a run that a signal stopped."""

import json
import random
from datetime import UTC, datetime

import pytest

from lakewriter.commit.control import Control
from lakewriter.errors import SourceFailedError
from lakewriter.naming import ControlKeys
from lakewriter.report import RunReport
from lakewriter.run.outcome_file import describe_end, leave_outcome, summarize_load
from lakewriter.run.stop import Stop, Stopped, exit_code_of
from tests.commit.memory import Memory, World

CODES = [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("somebody", 1)]


@pytest.mark.parametrize(("reason", "code"), CODES)
def test_exit_codes(reason, code):
    assert exit_code_of(reason) == code


def stopped_report(reason: str) -> RunReport:
    return RunReport(
        pipeline="p", job_id="a", attempt="A1", status="failed", started_at=datetime(2024, 1, 15, tzinfo=UTC),
        seconds=1, tables=(), requests={}, stopped=reason,
    )  # fmt: skip


@pytest.mark.parametrize("began", [True, False])
def test_the_outcome_of_a_load_that_was_stopped(began):
    world = World()
    controls = {"t": Control(Memory(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), "t")}

    def load() -> RunReport:
        if began:
            return stopped_report("SIGTERM")
        raise Stopped("SIGTERM")

    def hand_over() -> None:
        leave_outcome(load, summarize_load, name="n", controls=controls, warn=lambda _: None)

    if began:
        hand_over()
    else:
        with pytest.raises(Stopped):
            hand_over()
    left = json.loads(world.objects["_lakewriter/p/runs/n.json"][0])
    assert {name: left[name] for name in ("status", "code", "transient", "exit_code", "message")} == {
        "status": "failed",
        "code": None,
        "transient": True,
        "exit_code": 143,
        "message": "stopped by SIGTERM before all tables were done",
    }


def test_the_first_reason_to_stop_stays():
    stop = Stop()
    stop.check()
    stop.ask("SIGTERM")
    stop.ask("SIGINT")
    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        stop.check()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a" * 8100, "SOURCE_FAILED: " + "a" * 8100),
        ("a" * 9000, "SOURCE_FAILED: " + "a" * 8128 + " [...] (cut: the job's log has the whole message)"),
        # A character of three bytes is whole or not there.
        ("€" * 9000, "SOURCE_FAILED: " + "€" * 2709 + " [...] (cut: the job's log has the whole message)"),
    ],
)
def test_a_long_message_is_cut_at_8_kb(text, left):
    """256 KiB of state end an execution of Step Functions, and nothing catches that."""
    message = describe_end(SourceFailedError(text), datetime(2027, 1, 4, tzinfo=UTC))["message"]
    assert message == left
    assert len(message.encode()) <= 8192
