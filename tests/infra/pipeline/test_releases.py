"""What a deployment makes anew, and what becomes of what it replaces."""

import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from infra.pipeline.application import compute_digest
from tests.infra.pipeline.executions import definition_of
from tests.support.state_machine import ACCOUNT, RUNNING, JobRuns, client, step_functions

pytestmark = pytest.mark.synth

STACK = "lakewriter-flights-prod-pipeline"
NAME = "lakewriter-flights-prod"


def application(template):
    """Logical id and resource of the one application."""
    [found] = [item for item in template["Resources"].items() if item[1]["Type"] == "AWS::EMRServerless::Application"]
    return found


def test_aws_updates_only_what_is_stopped() -> None:
    # botocore's model has API_UpdateApplication and API_DeleteApplication word for word.
    model = boto3.client("emr-serverless", region_name="us-east-1").meta.service_model
    for operation in ("UpdateApplication", "DeleteApplication"):
        assert "has to be in a stopped or created state" in model.operation_model(operation).documentation


BASE: dict[str, Any] = {"spark": {"attempts": 2}}
NEW = {
    "release": {"spark": {"release": "emr-spark-8.1.1"}},
    "capacity": {"spark": {"max_executors": 2}},
    "memory": {"spark": {"driver": {"cores": 2, "memory": "9G"}}},
    "disk": {"spark": {"executor": {"disk": "40G"}}},
    "queue": {"spark": {"queue_timeout_minutes": 90}},
    "idle": {"spark": {"idle_stop_minutes": 9}},
    "key": {"encryption": "SSE-KMS"},
    "network": {"network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}},
    "tags": {"tags": {"team": "flights"}},
}
SAME = {
    "schedule": {"schedule": {"rate": "6 hours"}},
    "alarms": {"alarms": {"queued_minutes": 15}},
    "time limit": {"spark": {"timeout_minutes": 60}},
    "Spark's settings": {"spark": {"conf": {"spark.custom": "1"}}},
    "logs": {"log_retention_days": 90},
}


@pytest.fixture(scope="module")
def before(synthesised):
    return synthesised(**BASE)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", NEW.values(), ids=NEW)
def test_change_that_makes_a_new_application(synthesised, before, change) -> None:
    (old, _), template = application(before), synthesised(**change)
    new, _ = application(template)
    assert new != old
    assert {"Fn::GetAtt": [new, "ApplicationId"]} in find_references(template, "LoadsStateMachine")
    assert old not in json.dumps(template)


def test_no_application_is_ever_updated(before, full) -> None:
    """Its id is a digest of all its properties, so no two templates have other properties under one id."""
    logical_id, resource = application(before)
    assert logical_id == f"Application{compute_digest(resource['Properties'])}"
    assert set(application(full)[1]["Properties"]) - set(resource["Properties"]) == {"NetworkConfiguration"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_change_that_leaves_the_application(synthesised, before, change) -> None:
    assert application(synthesised(**change)) == application(before)


def find_references(template: dict[str, Any], machine: str) -> list[Any]:
    [found] = [each for name, each in template["Resources"].items() if name.startswith(machine)]
    return list(found["Properties"]["DefinitionString"]["Fn::Join"][1])


def test_old_application_is_left_to_the_handover(plain, streaming) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html: "applies to
    # stack update operations that lead to resources being deleted", and not to what a failed deployment has created.
    policies = [application(each)[1].get("DeletionPolicy") for each in (plain, streaming)]
    assert policies == ["RetainExceptOnCreate", "Delete"]


def test_application_of_an_unprotected_stage_outlasts_the_pauses_of_a_load(streaming, plain) -> None:
    # Ten attempts, the last of them a quarter of an hour apart.
    idle = [application(each)[1]["Properties"]["AutoStopConfiguration"] for each in (streaming, plain)]
    assert [each["IdleTimeoutMinutes"] for each in idle] == [16, 5]


def test_what_starts_a_handover(plain) -> None:
    rules = [
        each["Properties"]
        for name, each in plain["Resources"].items()
        if each["Type"] == "AWS::Events::Rule" and name.startswith("Releases")
    ]
    assert [rule["EventPattern"]["detail"] for rule in rules] == [
        {
            "stack-id": [{"Ref": "AWS::StackId"}],
            "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]},
        },
        {
            "stateMachineArn": [{"Fn::GetAtt": ["LoadsStateMachine40117ABB", "Arn"]}],
            "status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"],
        },
    ]


class Account:
    """Applications, the state machine of loads, and that of the handover, as one deployment has them."""

    def __init__(self, template: dict[str, Any], runs: JobRuns) -> None:
        self.runs = runs
        self.present = self.add_application()
        self.loads = definition_of(template, self.present)
        machine = {"roleArn": f"arn:aws:iam::{ACCOUNT}:role/Loads"}
        create = client("stepfunctions").create_state_machine
        self.machine = create(name="loads", definition=self.loads, **machine)["stateMachineArn"]
        definition = definition_of(template, self.present, "Releases")
        self._handover = create(name="handover", definition=definition, **machine)["stateMachineArn"]
        self._count = 0

    def add_application(self, *, name: str = NAME, stack: str | None = STACK, state: str = "STARTED") -> str:
        tags = {"LakewriterStack": stack} if stack else {}
        service = client("emr-serverless")
        made = service.create_application(name=name, type="SPARK", releaseLabel="emr-7.0.0", tags=tags)
        if state == "STOPPED":
            service.stop_application(applicationId=made["applicationId"])
        return str(made["applicationId"])

    def deploy_loads(self, definition: str) -> None:
        client("stepfunctions").update_state_machine(stateMachineArn=self.machine, definition=definition)

    def hand_over(self) -> str:
        self._count += 1
        started = client("stepfunctions").start_execution(
            stateMachineArn=self._handover, name=f"handover-{self._count}", input="{}"
        )
        return self.wait(started["executionArn"])

    def wait(self, execution: str) -> str:
        while True:
            found = client("stepfunctions").describe_execution(executionArn=execution)
            if found["status"] != RUNNING:
                return str(found["status"])
            time.sleep(0.01)

    def start_load(self, name: str, given: str = "{}") -> str:
        started = client("stepfunctions").start_execution(stateMachineArn=self.machine, name=name, input=given)
        before = len(self.runs.started)
        while len(self.runs.started) == before:
            time.sleep(0.01)
        return str(started["executionArn"])

    def list_running(self) -> list[str]:
        found = client("stepfunctions").list_executions(stateMachineArn=self.machine, statusFilter=RUNNING)
        return [each["name"] for each in found["executions"]]

    def get_state(self, application: str) -> str:
        return str(client("emr-serverless").get_application(applicationId=application)["application"]["state"])


@pytest.fixture
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    runs = JobRuns()
    with step_functions(runs):
        yield Account(request.getfixturevalue(getattr(request, "param", "plain")), runs)


def test_earlier_applications_are_deleted(account: Account) -> None:
    earlier = [account.add_application(state=state) for state in ("STARTED", "STOPPED")]
    others = [
        account.add_application(name="warehouse", stack=None),
        account.add_application(stack=None),
        account.add_application(stack="lakewriter-flights-prod-2-pipeline"),
    ]
    assert account.hand_over() == "SUCCEEDED"
    assert [account.get_state(each) for each in earlier] == ["TERMINATED"] * 2
    assert [account.get_state(each) for each in (account.present, *others)] == ["STARTED"] * 4


def test_more_applications_than_a_page(account: Account) -> None:
    for _ in range(51):
        account.add_application(name="warehouse", stack=None)
    earlier = account.add_application()
    assert account.hand_over() == "SUCCEEDED"
    assert account.get_state(earlier) == "TERMINATED"


def test_application_stays_while_a_load_of_its_release_runs(account: Account) -> None:
    account.runs.job = lambda _: RUNNING
    earlier, load = account.add_application(state="STOPPED"), account.start_load("before")
    account.deploy_loads(account.loads.replace("One load", "One load of the next release"))
    assert account.hand_over() == "SUCCEEDED"
    assert (account.get_state(earlier), account.list_running()) == ("STOPPED", ["before"])
    account.runs.end("SUCCESS")
    account.wait(load)
    assert account.hand_over() == "SUCCEEDED"
    assert account.get_state(earlier) == "TERMINATED"


def test_load_of_the_present_release_keeps_no_earlier_application(account: Account) -> None:
    account.runs.job = lambda _: RUNNING
    earlier, load = account.add_application(), account.start_load("present")
    assert account.hand_over() == "SUCCEEDED"
    assert (account.get_state(earlier), account.list_running()) == ("TERMINATED", ["present"])
    account.runs.end("SUCCESS")
    account.wait(load)


@pytest.mark.parametrize("account", ["protected_stream"], indirect=True)
def test_stream_goes_on_in_the_next_release(account: Account) -> None:
    account.runs.job = lambda _: RUNNING
    earlier, stream = account.add_application(), account.start_load("stream")
    assert account.hand_over() == "SUCCEEDED"
    assert account.list_running() == ["stream"]
    account.deploy_loads(account.loads.replace("One load", "One load of the next release"))
    late = account.add_application()
    assert account.hand_over() == "SUCCEEDED"
    assert account.wait(stream) == "ABORTED"
    assert [account.get_state(each) for each in (earlier, late)] == ["TERMINATED"] * 2
    [name] = account.list_running()
    assert name.startswith("handover-")
    assert account.runs.cancelled == [account.runs.started[0]["ClientToken"]]
    assert account.hand_over() == "SUCCEEDED"
    assert account.list_running() == [name]
    while len(account.runs.started) < 2:
        time.sleep(0.01)
    client("stepfunctions").stop_execution(executionArn=stream.replace("stream", name))
    while len(account.runs.cancelled) < 2:
        time.sleep(0.01)


@pytest.mark.parametrize("account", ["protected_stream"], indirect=True)
def test_handover_leaves_a_canary_alone(account: Account) -> None:
    """A canary ends by itself: it is not stopped, and no second stream is started for it."""
    account.runs.job = lambda _: RUNNING
    stream, canary = account.start_load("stream"), account.start_load("canary", '{"canary": true}')
    account.deploy_loads(account.loads.replace("One load", "One load of the next release"))
    assert account.hand_over() == "SUCCEEDED"
    assert account.wait(stream) == "ABORTED"
    running = account.list_running()
    assert (len(running), "canary" in running) == (2, True)
    while len(account.runs.started) < 3:
        time.sleep(0.01)
    account.runs.end("SUCCESS")
    assert account.wait(canary) == "SUCCEEDED"
    for name in set(running) - {"canary"}:
        account.wait(stream.replace("stream", name))


@pytest.fixture(scope="session")
def protected_stream(synthesised):
    return synthesised(spark={"mode": "STREAMING"})
