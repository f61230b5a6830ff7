"""The hours since the last load that succeeded: what counts as one, and the state machine that counts."""

import json
from collections.abc import Iterator

import pytest

from infra.pipeline.silence import DEPLOYED, Watch
from tests.infra.pipeline.executions import DONE, Machine, definition_of, failed
from tests.support.state_machine import ACCOUNT, JobRuns, client, step_functions

pytestmark = pytest.mark.synth


@pytest.fixture
def watching(plain) -> Iterator[Machine]:
    """The machine of loads, in an AWS of its own."""
    runs = JobRuns()
    with step_functions(runs):
        yield Machine(plain, runs)


@pytest.mark.parametrize(("given", "counted"), [({}, (1, 0, True)), ({"canary": True}, (0, 1, False))])
def test_a_canary_is_no_success(watching, given, counted):
    """Neither for the metric of loads, nor for the hours since the last one."""
    before = watching.told()
    watching.endings(("SUCCESS", DONE))
    ended = watching.run(f"counted-{len(given)}", **given)
    assert ended["status"] == "SUCCEEDED"
    after = watching.told()
    loads, canaries = (after.get(name, 0) - before.get(name, 0) for name in ("LoadsDone", "CanariesDone"))
    assert (loads, canaries, watching.has_watched(ended["executionArn"])) == counted


def test_a_failure_counts_the_hours_on(watching):
    watching.endings(("FAILED", failed("S3_ACCESS_DENIED", transient=False)))
    ended = watching.run("counts-on")
    assert (ended["status"], watching.has_watched(ended["executionArn"])) == ("FAILED", False)


def test_hours_are_counted_until_a_newer_success(watching, plain):
    """By the machine that a success, or a deployment where none counts yet, starts."""
    states = client("stepfunctions")
    definition, role = definition_of(plain, machine="Silence"), f"arn:aws:iam::{ACCOUNT}:role/Silence"
    watch = states.create_state_machine(name="watch", definition=definition, roleArn=role)["stateMachineArn"]
    started: list[str] = []
    waits: list[int] = []

    def start(name: str, **given: object) -> None:
        answer = states.start_execution(stateMachineArn=watch, name=name, input=json.dumps(given))
        started.append(answer["executionArn"])

    def meanwhile(seconds: int) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            start("second")
        elif len(waits) == 8:
            states.stop_execution(executionArn=started[1])

    watching.runs.meanwhile = meanwhile
    start("first", **DEPLOYED)
    assert watching.ended(started[0])["status"] == "SUCCEEDED"
    assert watching.ended(started[1])["status"] == "ABORTED"
    assert set(waits) == {3600}
    first, second = (list_published(execution) for execution in started)
    assert first == [0, 1, 2]
    assert second == list(range(len(second)))
    assert len(second) >= 3


def list_published(execution: str) -> list[float]:
    """The hours that an execution has published, one after the other."""
    events = client("stepfunctions").get_execution_history(executionArn=execution, maxResults=1000)["events"]
    details = [each["taskScheduledEventDetails"] for each in events if "taskScheduledEventDetails" in each]
    sent = [json.loads(each["parameters"]) for each in details if each["resource"].endswith("putMetricData")]
    return [each["MetricData"][0]["Value"] for each in sent]


def test_a_deployment_leaves_a_count_alone():
    states = Watch("aws", {"Pipeline": "flights"}, 1).build_definition()["States"]
    first, second = states["WhyStarted"]["Choices"]
    assert [first["Next"], second["Next"], states["WhyStarted"]["Default"]] == ["Superseded", "TakeOver", "BeginAtZero"]
    assert first["And"][-1] == {"Variable": "$.running.count", "NumericGreaterThan": 1}
