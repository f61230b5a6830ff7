"""The state machine of the template, its references resolved, on an interpreter."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.pipeline.executions import DONE, Machine, arguments, definition_of, failed
from tests.support.state_machine import RUNNING, JobRuns, step_functions

pytestmark = pytest.mark.synth

ROOT = Path(__file__).parents[3]
TIME = "2026-01-31T06:00:00Z"
SCHEDULED = {"start": "schedule", "scheduled_at": TIME}
RETRY = failed("CONCURRENT_LOAD", transient=True)


@pytest.fixture(scope="module")
def only_machine(plain) -> Iterator[Machine]:
    runs = JobRuns()
    with step_functions(runs):
        yield Machine(plain, runs)


@pytest.fixture
def machine(only_machine: Machine) -> Machine:
    only_machine.runs.reset()
    return only_machine


ENDS = {
    # name: how the job runs end and what they leave, status, output or error, seconds waited
    "success": ([("SUCCESS", DONE)], "SUCCEEDED", {"attempts": 1, "rows": 12}, [10]),
    "retried": ([("FAILED", RETRY), ("SUCCESS", DONE)], "SUCCEEDED", {"attempts": 2, "rows": 12}, [10, 60]),
    "none-written": ([("FAILED", None), ("SUCCESS", DONE)], "SUCCEEDED", {"attempts": 2, "rows": 12}, [10, 60]),
    "none-readable": ([("SUCCESS", None)], "SUCCEEDED", {"attempts": 1, "rows": 0}, [10]),
    "done-then-killed": ([("FAILED", DONE)], "SUCCEEDED", {"attempts": 1, "rows": 12}, [10]),
    "final": ([("FAILED", failed("S3_ACCESS_DENIED", transient=False))], "FAILED", "S3_ACCESS_DENIED", [10]),
    "crash": ([("FAILED", failed(None, transient=False))], "FAILED", "JobCrashed", [10]),
    "too-often": ([("FAILED", RETRY)] * 3, "FAILED", "CONCURRENT_LOAD", [10, 60, 120]),
    "never-written": ([("FAILED", None)] * 3, "FAILED", "NO_OUTCOME", [10, 60, 120]),
    "cancelled": ([("CANCELLED", None)], "FAILED", "JobRunCancelled", [10]),
    "cancelled-and-told": ([("CANCELLED", failed(None, transient=True))], "FAILED", "JobRunCancelled", [10]),
    "cancelled-later": ([("FAILED", RETRY), ("CANCELLED", None)], "FAILED", "JobRunCancelled", [10, 60]),
    "cancelled-too-late": ([("CANCELLED", DONE)], "SUCCEEDED", {"attempts": 1, "rows": 12}, [10]),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("endings", "status", "said", "waited"), ENDS.values(), ids=ENDS)
def test_end(machine, request, endings, status, said, waited):
    machine.endings(*endings)
    name = request.node.callspec.id
    found = machine.run(name)
    expected = {"status": "done", "load": name, **said} if status == "SUCCEEDED" else said
    assert (found["status"], json.loads(found.get("output", "null")) or found["error"]) == (status, expected)
    assert (machine.runs.waited, len(machine.runs.started)) == (waited, len(endings))
    assert machine.runs.cancelled == []


def test_failure_says_why(machine):
    machine.endings(("FAILED", failed("SOURCE_FAILED", transient=False)))
    assert machine.run("why")["cause"] == "SOURCE_FAILED: no."
    machine.endings(*[("FAILED", None)] * 3)
    assert '\\"State\\": \\"FAILED\\"' in machine.run("why-not")["cause"]


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_run_that_emr_cancels_at_its_time_limit_is_started_again(machine, is_wrapped):
    # The service model, executionTimeoutMinutes of StartJobRun: "If the job run exceeds this duration, Amazon EMR
    # Serverless cancels it automatically." Three hours here.
    machine.runs.seconds, machine.runs.is_wrapped = 3 * 3600, is_wrapped
    machine.endings(("CANCELLED", None), ("SUCCESS", DONE))
    assert machine.run(f"time-limit-{is_wrapped}")["status"] == "SUCCEEDED"
    assert len(machine.runs.started) == 2


def test_cancelled_run_whose_cause_is_wrapped(machine):
    machine.runs.is_wrapped = True
    machine.endings(("CANCELLED", None))
    ended = machine.run("wrapped")
    assert (ended["error"], "of load wrapped" in ended["cause"]) == ("JobRunCancelled", True)


def test_killed_attempts_count(machine):
    before = machine.told()
    machine.endings(("FAILED", None), ("FAILED", None), ("SUCCESS", DONE))
    machine.run("killed")
    assert machine.told()["AttemptsFailed"] - before.get("AttemptsFailed", 0) == 2


STARTS = [
    # input, arguments of the entry point between `run lake/lake.yaml` and `--outcome NAME`
    ({}, ["--job-id", "start-0"]),
    ({"comment": "a free text"}, ["--job-id", "start-1"]),
    ({"job_id": "again"}, ["--job-id", "again"]),
    ({"scheduled_at": TIME}, ["--scheduled-at", TIME]),
    (SCHEDULED, ["--scheduled-at", TIME]),
    ({"canary": True}, ["--canary", "start-5"]),
    # What the parent state machine of docs/orchestrators.md passes.
    ({"AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "arn:aws:states:::a", "job_id": "b"}, ["--job-id", "b"]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "given", "expected"), [(number, *case) for number, case in enumerate(STARTS)])
def test_start(machine, number, given, expected):
    assert machine.run(f"start-{number}", **given)["status"] == "SUCCEEDED"
    (parameters,) = machine.runs.started
    name = parameters["ClientToken"]
    assert (len(name), arguments(parameters)) == (64, ["run", "lake/lake.yaml", *expected, "--outcome", name])


def test_accepted_load_gets_what_is_accepted_as_one_argument(machine):
    """Whatever a check is called, it is no option of the command."""
    given = {"job_id": "again", "accept": ["rows", "--job-id"], "reason": 'it\'s "snow"'}
    ended = machine.run("accepted", **given)
    assert ended["status"] == "SUCCEEDED"
    (parameters,) = machine.runs.started
    *start, option, accepted, _, _ = arguments(parameters)
    assert (start, option) == (["run", "lake/lake.yaml", "--job-id", "again"], "--acceptance")
    assert json.loads(accepted) == {
        "accept": given["accept"], "reason": given["reason"], "by": ended["executionArn"],
    }  # fmt: skip


NOT_ACCEPTED = [
    {"accept": ["rows"], "reason": "snow"},
    {"job_id": "a", "accept": ["rows"]},
    {"job_id": "a", "reason": "snow"},
    {"job_id": "a", "accept": [], "reason": "snow"},
    {"job_id": "a", "accept": "rows", "reason": "snow"},
    {"job_id": "a", "accept": [1], "reason": "snow"},
    {"job_id": "a", "accept": ["rows"], "reason": ""},
    {"job_id": "a", "accept": ["rows"], "reason": ["snow"]},
    SCHEDULED | {"accept": ["rows"], "reason": "snow"},
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "given"), list(enumerate(NOT_ACCEPTED)))
def test_acceptance_refused(machine, number, given):
    found = machine.run(f"not-accepted-{number}", **given)
    assert (found["status"], found["error"]) == ("FAILED", "InputRefused")
    assert '"accept": ["CHECK"]' in found["cause"]
    assert machine.runs.started == []


REFUSED = [{"job_id": "a", "scheduled_at": TIME}, {"job_id": 1}, {"scheduled_at": "today"}, {"scheduled_at": 1}]
REFUSED += [{"canary": False}, {"canary": "yes"}, {"canary": True, "job_id": "a"}]
# Keys that nobody knows, which would start another load than was meant.
REFUSED += [{"jobid": "a"}, {"full_refresh": True}, {"job_id": "a", "Reason": "snow"}, {"canary": True, "dry_run": 1}]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("number", "given"), list(enumerate(REFUSED)))
def test_input_refused(machine, number, given):
    found = machine.run(f"refused-{number}", **given)
    assert (found["status"], found["error"], machine.runs.started) == ("FAILED", "InputRefused", [])
    assert '{"scheduled_at": "2026-01-31T06:00:00Z"}' in found["cause"]


@pytest.mark.parametrize(("given", "option"), [({}, "--continuous"), ({"canary": True}, "--canary")])
def test_start_of_a_stream(synthesised, machine, given, option):
    stream = Machine(synthesised(spark={"mode": "STREAMING"}), machine.runs, name=f"stream{option}")
    assert stream.run("stream", **given)["status"] == "SUCCEEDED"
    (parameters,) = machine.runs.started
    assert arguments(parameters) == ["run", "lake/lake.yaml", option, "--outcome", parameters["ClientToken"]]


def run_of(parameters):
    """The option of an entry point and the mode of its run."""
    return arguments(parameters)[2], parameters.get("Mode", "BATCH")


def test_canary_beside_a_stream(synthesised, machine):
    """Neither keeps the other from running, and a second stream is refused though a canary is older."""
    stream = Machine(synthesised(spark={"mode": "STREAMING"}), machine.runs, name="beside")
    stream.endings(*[(RUNNING, DONE)] * 3)
    first = stream.start("canary", canary=True)
    machine.started()
    running = stream.start("stream")
    machine.started(2)
    second = stream.start("another-canary", canary=True)
    machine.started(3)
    refused = stream.run("another-stream")
    skipped = stream.run("by-schedule", **SCHEDULED)
    assert (refused["error"], running in refused["cause"]) == ("LoadRunning", True)
    assert json.loads(skipped["output"]) == {"status": "skipped", "running": running}
    machine.runs.end("SUCCESS")
    assert [stream.ended(each)["status"] for each in (first, running, second)] == ["SUCCEEDED"] * 3
    canary = ("--canary", "BATCH")
    assert [run_of(each) for each in machine.runs.started] == [canary, ("--continuous", "STREAMING"), canary]


def test_only_the_canary_of_a_stream_has_a_time_limit(synthesised, machine):
    stream = Machine(synthesised(spark={"mode": "STREAMING"}), machine.runs, name="limits")
    machine.runs.seconds = 3 * 3600
    stream.endings(("CANCELLED", None), ("SUCCESS", DONE))
    assert stream.run("late", canary=True)["status"] == "SUCCEEDED"
    stream.endings(("CANCELLED", None))
    assert stream.run("stopped")["error"] == "JobRunCancelled"


def test_a_stream_without_its_mode_goes_on_after_a_week(synthesised, machine):
    """Each run has a token of its own, and attempts are counted anew; one that somebody cancels earlier ends it."""
    spark = {"mode": "STREAMING", "plain_start": True, "attempts": 2}
    stream = Machine(synthesised(spark=spark), machine.runs, name="weeks")
    machine.runs.seconds = 7 * 24 * 3600
    stream.endings(*[("CANCELLED", None)] * 3, ("SUCCESS", DONE))
    ended = stream.run("stream")
    assert (ended["status"], json.loads(ended["output"])["attempts"]) == ("SUCCEEDED", 1)
    assert len({parameters["ClientToken"] for parameters in machine.runs.started}) == 4
    assert {run_of(parameters) for parameters in machine.runs.started} == {("--continuous", "BATCH")}
    machine.runs.seconds = 3600
    stream.endings(("CANCELLED", None))
    assert stream.run("stopped")["error"] == "JobRunCancelled"
    stream.endings(("FAILED", None), ("FAILED", None))
    assert stream.run("crashed")["error"] == "NO_OUTCOME"


def test_stopping_cancels_the_job_run(machine):
    machine.endings((RUNNING, None))
    execution = machine.start("stopped")
    machine.started()
    machine.stop(execution)
    assert machine.ended(execution)["status"] == "ABORTED"
    machine.cancelled()
    assert machine.runs.cancelled == [machine.runs.started[0]["ClientToken"]]


def test_overlap(machine):
    machine.endings((RUNNING, DONE))
    first = machine.start("first")
    machine.started()
    skipped = machine.run("second", **SCHEDULED)
    refused = machine.run("third", job_id="backfill")
    machine.runs.end("SUCCESS")
    assert machine.ended(first)["status"] == "SUCCEEDED"
    assert (skipped["status"], json.loads(skipped["output"])) == ("SUCCEEDED", {"status": "skipped", "running": first})
    assert (refused["status"], refused["error"]) == ("FAILED", "LoadRunning")
    assert first in refused["cause"]
    assert len(machine.runs.started) == 1


def test_start_delivered_twice_to_one_execution(machine):
    machine.endings((RUNNING, DONE))
    first = machine.start("delivery", **SCHEDULED)
    machine.started()
    assert machine.start("delivery", **SCHEDULED) == first
    machine.runs.end("SUCCESS")
    assert machine.ended(first)["status"] == "SUCCEEDED"
    assert len(machine.runs.started) == 1


def test_start_delivered_twice_to_two_executions(machine):
    assert [machine.run(name, **SCHEDULED)["status"] for name in ("one", "two")] == ["SUCCEEDED"] * 2
    one, two = machine.runs.started
    assert arguments(one)[:4] == arguments(two)[:4] == ["run", "lake/lake.yaml", "--scheduled-at", TIME]
    assert one["ClientToken"] != two["ClientToken"]


def test_every_attempt_has_a_token_of_its_own(machine):
    machine.endings(("FAILED", RETRY), ("FAILED", None), ("SUCCESS", DONE))
    machine.run("tokens")
    assert len({run["ClientToken"] for run in machine.runs.started}) == 3


def test_metrics(machine):
    before = machine.told()
    machine.endings(("FAILED", failed("TIMEOUT", transient=True, pending_hours=30.5)), ("SUCCESS", DONE))
    machine.run("told")
    told = {name: value - before.get(name, 0) for name, value in machine.told().items() if name != "CanariesDone"}
    assert told == {
        "AttemptsFailed": 1,
        "LoadsDone": 1,
        "PendingHours": 30.5,
        "Rows": 12,
        "RowsSetAside": 1,
        "Files": 2,
        "Bytes": 345,
        "Seconds": 6.5,
    }


def test_load_that_is_not_as_expected_counts_apart(machine):
    before = machine.told()
    machine.endings(("FAILED", failed("EXPECTATION_FAILED", transient=False)))
    assert machine.run("judged")["error"] == "EXPECTATION_FAILED"
    after = {name: value - before.get(name, 0) for name, value in machine.told().items()}
    assert (after["AttemptsFailed"], after["ExpectationsFailed"]) == (1, 1)


def test_a_load_is_done_whoever_hears_of_it(machine, plain):
    unheard = Machine(plain, machine.runs, name="unheard", without="cloudwatch:putMetricData")
    assert unheard.run("unheard")["status"] == "SUCCEEDED"


VALIDATED = {
    "batch": {},
    "once": {"spark": {"attempts": 1}},
    "streaming": {"spark": {"mode": "STREAMING"}},
    "another store": {"endpoint": "https://s3.example.org"},
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("machine", ["Loads", "Releases", "Silence"])
@pytest.mark.parametrize("deployment", VALIDATED.values(), ids=VALIDATED)
def test_validator(synthesised, tmp_path, deployment, machine):
    if machine == "Silence":
        deployment = {"alarms": {"no_success_hours": 300}}
    path = tmp_path / "definition.json"
    path.write_text(definition_of(synthesised(**deployment), machine=machine), "utf-8")
    validator = ROOT / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"
    done = subprocess.run(
        [os.environ["JSII_NODE"], validator, "--json-path", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
