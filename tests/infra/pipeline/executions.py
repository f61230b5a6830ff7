"""Executions of the state machine out of a template."""

import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.state_machine import ACCOUNT, JobRuns, client

BUCKET = "acme-lake"
RUNS = "data/production/_lakewriter/flights/runs"
JOB_ROLE = f"arn:aws:iam::{ACCOUNT}:role/Job"
LOADS = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:loads"
SILENCE = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:silence"
NAMESPACE = "Lakewriter"

DONE = {
    "status": "done",
    "code": None,
    "message": None,
    "transient": False,
    "rows": 12,
    "rows_set_aside": 1,
    "files": 2,
    "bytes": 345,
    "seconds": 6.5,
    "pending_hours": 0.0,
}
"""As ``lakewriter.run.outcome_file`` leaves it."""


def failed(code: str | None, *, transient: bool, pending_hours: float = 0.0) -> dict[str, Any]:
    """The same of an attempt that failed."""
    ending = {"status": "failed", "code": code, "message": f"{code}: no.", "transient": transient}
    return DONE | ending | {"rows": 0, "rows_set_aside": 0, "files": 0, "bytes": 0, "pending_hours": pending_hours}


def resolved(value: Any, answers: Mapping[str, str]) -> Any:
    """``value`` of a template; ``answers`` are by attribute or by name."""
    match value:
        case {"Fn::GetStackOutput": _} | {"Fn::ImportValue": _}:
            return JOB_ROLE
        case {"Ref": name}:
            return answers.get(name, name)
        case {"Fn::GetAtt": [name, attribute]}:
            # CDK adds a hash of eight characters to a name.
            return answers.get(f"{name[:-8]}.{attribute}") or answers[attribute]
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([^}]+)\}", lambda found: answers.get(found[1], found[0]), text)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(resolved(part, answers) for part in parts)
    return value


def definition_of(template: Mapping[str, Any], application: str = "00example", machine: str = "Loads") -> str:
    """A state machine's definition, as Step Functions would get it: that of the loads, or ``Releases``."""
    resources = template["Resources"].items()
    (found,) = (
        each
        for name, each in resources
        if each["Type"] == "AWS::StepFunctions::StateMachine" and name.startswith(machine)
    )
    answers = {"ApplicationId": application, "AWS::Partition": "aws", "Arn": LOADS, "SilenceWatch.Arn": SILENCE}
    return str(resolved(found["Properties"]["DefinitionString"], answers))


class Machine:
    """The state machine of a template, made in an AWS that ``tests.support.state_machine`` has taught."""

    def __init__(
        self, template: Mapping[str, Any], runs: JobRuns, *, name: str = "loads", without: str | None = None
    ) -> None:
        """Calls of the SDK action ``without`` fail."""
        self.runs = runs
        self._client = client("stepfunctions")
        client("s3").create_bucket(Bucket=BUCKET)
        # moto refuses the labels of Spark's own releases.
        application = client("emr-serverless").create_application(
            name="flights", type="SPARK", releaseLabel="emr-7.0.0"
        )
        definition = definition_of(template, application["applicationId"])
        made = self._client.create_state_machine(
            name=name,
            definition=definition.replace(f"aws-sdk:{without}", "aws-sdk:s3:noSuchAction"),
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/Loads",
        )
        self._arn = made["stateMachineArn"]
        if not any(each["name"] == "silence" for each in self._client.list_state_machines()["stateMachines"]):
            nothing = {"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}
            role = f"arn:aws:iam::{ACCOUNT}:role/Silence"
            self._client.create_state_machine(name="silence", definition=json.dumps(nothing), roleArn=role)

    def has_watched(self, execution: str) -> bool:
        """Whether the execution had the hours since the last success counted anew, by an execution that AWS started."""
        events = self._client.get_execution_history(executionArn=execution, maxResults=1000)["events"]
        answers = [json.loads(each["taskSucceededEventDetails"].get("output", "{}"))
                   for each in events if "taskSucceededEventDetails" in each]  # fmt: skip
        return any(str(answer.get("ExecutionArn", "")).startswith(SILENCE.replace(":stateMachine:", ":execution:"))
                   for answer in answers)  # fmt: skip

    def endings(self, *endings: tuple[str, Mapping[str, Any] | None]) -> None:
        """Let job runs end so, one after the other: in a state, and leaving an outcome or none."""
        left = list(endings)

        def job(parameters: Mapping[str, Any]) -> str:
            state, outcome = left.pop(0)
            if outcome is not None:
                self.leave(arguments(parameters)[-1], json.dumps(outcome))
            return state

        self.runs.job = job

    def leave(self, name: str, body: str) -> None:
        """What an attempt leaves under ``name``."""
        client("s3").put_object(Bucket=BUCKET, Key=f"{RUNS}/{name}.json", Body=body.encode())

    def start(self, name: str, **given: Any) -> str:
        """The new execution's ARN."""
        started = self._client.start_execution(stateMachineArn=self._arn, name=name, input=json.dumps(given))
        return str(started["executionArn"])

    def ended(self, execution: str) -> Mapping[str, Any]:
        """The execution, once it has ended."""
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(self._client.describe_execution(executionArn=execution))
            return bool(found["status"] != "RUNNING")

        _until(ended)
        return found

    def run(self, name: str, **given: Any) -> Mapping[str, Any]:
        """An execution from its start to its end."""
        return self.ended(self.start(name, **given))

    def started(self, count: int = 1) -> None:
        """Returns when so many job runs have been started."""
        _until(lambda: len(self.runs.started) >= count)

    def cancelled(self) -> None:
        """Returns when a job run has been cancelled."""
        _until(lambda: bool(self.runs.cancelled))

    def stop(self, execution: str) -> None:
        """As a person does."""
        self._client.stop_execution(executionArn=execution)

    def told(self) -> dict[str, float]:
        """The sum of each metric's values in CloudWatch."""
        now = datetime.now(UTC)
        span = {"StartTime": now - timedelta(hours=1), "EndTime": now + timedelta(hours=1), "Period": 7200}
        sums = {}
        for metric in client("cloudwatch").list_metrics(Namespace=NAMESPACE)["Metrics"]:
            points = client("cloudwatch").get_metric_statistics(**metric, **span, Statistics=["Sum"])["Datapoints"]
            sums[metric["MetricName"]] = sum(point["Sum"] for point in points)
        return sums


def _until(true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to be in half a minute")


def arguments(parameters: Mapping[str, Any]) -> list[str]:
    """The entry point's."""
    return list(parameters["JobDriver"]["SparkSubmit"]["EntryPointArguments"])
