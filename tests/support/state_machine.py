"""moto's interpreter of the Amazon States Language, taught what our state machine needs of Step Functions.

moto 5.2.5 has no ``emr-serverless:startJobRun.sync``, leaves the fields of SDK calls as boto3 names them, gives an
execution's start as no text, and really waits. All of this reaches into its inside, hence the exact pin of moto.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any
from unittest import mock

import boto3
from moto import mock_aws
from moto.backends import get_backend
from moto.core.responses import ActionResult
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task import state_task_factory
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service_aws_sdk
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import ResourceCondition
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_aws_sdk import (
    StateTaskServiceAwsSdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_factory import (
    state_task_service_for,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.evaluation_details import ExecutionDetails
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.backend.execution import Execution
from moto.stepfunctions.responses import StepFunctionResponse

ACCOUNT = "123456789012"
REGION = "us-east-1"
RUNNING = "RUNNING"

_details_of = Execution.get_start_execution_details


@cache
def client(service: Any) -> Any:
    """A client of the AWS in this process; making one takes longer than an execution does."""
    return boto3.client(service, region_name=REGION)


@dataclass
class JobRuns:
    """EMR Serverless as a script: ``job`` is called with each new run's parameters and says in what state it ends."""

    job: Callable[[Mapping[str, Any]], str] = lambda _: "SUCCESS"
    started: list[Mapping[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    """Seconds that executions would have waited."""
    seconds: int = 60
    """How long GetJobRun says that each run took."""
    is_wrapped: bool = False
    """Whether a failure's cause wraps the job run, as GetJobRun's answer does."""
    meanwhile: Callable[[int], None] = lambda _: None
    """What happens while an execution waits so many seconds."""
    _states: dict[str, str] = field(default_factory=dict)

    def reset(self) -> None:
        """As new, for the next test; no execution may be running."""
        self.job, self.meanwhile = lambda _: "SUCCESS", lambda _: None
        self.seconds, self.is_wrapped = 60, False
        for each in (self.started, self.cancelled, self.waited, self._states):
            each.clear()

    def start(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """The run with this client token, which is started once; ``RUNNING`` goes on until it is ended."""
        token = parameters["ClientToken"]
        # Of this client, and not of the interpreter's own, botocore checks the parameters.
        answer = client("emr-serverless").start_job_run(**_lowered(parameters))
        if token not in self._states:
            self._states[token] = self.job(parameters)
            self.started.append(parameters)
            [run] = [
                run
                for run in get_backend("emr-serverless")[ACCOUNT][REGION].job_runs[answer["applicationId"]]
                if run.id == answer["jobRunId"]
            ]
            vars(run).update(state=self._states[token], total_execution_duration_seconds=self.seconds)
        return {"ApplicationId": answer["applicationId"], "JobRunId": answer["jobRunId"], "ClientToken": token}

    def state(self, token: str) -> str:
        """As GetJobRun tells it."""
        return self._states[token]

    def end(self, state: str) -> None:
        """Let every run that is running end so."""
        self._states = {token: state if each == RUNNING else each for token, each in self._states.items()}

    def cancel(self, run: Mapping[str, str]) -> None:
        """CancelJobRun."""
        client("emr-serverless").cancel_job_run(applicationId=run["ApplicationId"], jobRunId=run["JobRunId"])
        self._states[run["ClientToken"]] = "CANCELLED"
        self.cancelled.append(run["ClientToken"])


class _EmrServerless(StateTaskServiceCallback):
    """``startJobRun.sync`` as https://docs.aws.amazon.com/step-functions/latest/dg/connect-emr-serverless.html."""

    def __init__(self, runs: JobRuns) -> None:
        super().__init__({ResourceCondition.Sync, ResourceCondition.WaitForTaskToken})
        self._runs = runs

    def _validate_service_integration_is_supported(self) -> None:
        assert self.resource.api_action == "startJobRun"

    def _eval_service_task(self, env: Environment, *_: Any, normalised_parameters: Any, **__: Any) -> None:
        env.stack.append(self._runs.start(normalised_parameters))

    def _build_sync_resolver(self, env: Environment, **_: Any) -> Callable[[], Any]:
        run = env.stack.pop()

        def resolve() -> Any:
            state = self._runs.state(run["ClientToken"])
            if state == RUNNING:
                return None
            body = run | {"State": state}
            if state == "SUCCESS":
                return body
            cause = json.dumps({"JobRun": body} if self._runs.is_wrapped else body)
            raise FailureEventException(self._failed(env, cause))

        resolve.run = run  # type: ignore[attr-defined]
        return resolve

    def _eval_sync(self, env: Environment, sync_resolver: Any, **_: Any) -> Any:
        while env.is_running():
            if (found := sync_resolver()) is not None:
                return found
            time.sleep(0.01)
        # Stopped or timed out: what https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html
        # says Step Functions does to a job that it waits for.
        self._runs.cancel(sync_resolver.run)
        return None

    def _failed(self, env: Environment, cause: str) -> FailureEvent:
        name = StatesErrorName(typ=StatesErrorNameType.StatesTaskFailed)
        details = TaskFailedEventDetails(
            resource=self._get_sfn_resource(),
            resourceType=self._get_sfn_resource_type(),
            error=name.error_name,
            cause=cause,
        )
        event = EventDetails(taskFailedEventDetails=details)
        return FailureEvent(env=env, error_name=name, event_type=HistoryEventType.TaskFailed, event_details=event)


class _AwsSdk(StateTaskServiceAwsSdk):
    """Fields in Step Functions' case, in both directions."""

    def _get_boto_service_name(self, boto_service_name: str | None = None) -> str:
        name = super()._get_boto_service_name(boto_service_name)
        return "emr-serverless" if name == "emrserverless" else name

    def _shapes(self) -> Any:
        model = client(self._get_boto_service_name()).meta.service_model
        action = self.resource.api_action
        return model.operation_model(action[0].upper() + action[1:])

    def _normalise_parameters(self, parameters: dict[str, Any], *_: Any) -> None:
        self._to_boto_request(parameters, self._shapes().input_shape)

    def _normalise_response(self, response: Any, *_: Any) -> None:
        if response and (shape := self._shapes().output_shape) is not None:
            self._from_boto_response(response, shape)
            _write_times(response)


def _write_times(value: Any) -> None:
    """Write the times of an answer as Step Functions has them: as text."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, datetime):
            value[key] = each.isoformat()
        elif isinstance(each, dict | list):
            _write_times(each)


@contextmanager
def step_functions(runs: JobRuns) -> Iterator[None]:
    """An AWS in this process, in which state machines run, job runs end as ``runs`` says, and waits take no time."""

    def service_for(service_name: str) -> Any:
        taught: dict[str, Callable[[], Any]] = {"emr-serverless": lambda: _EmrServerless(runs), "aws-sdk": _AwsSdk}
        return taught.get(service_name, lambda: state_task_service_for(service_name))()

    began: dict[str, str] = {}

    def describe_release(response: StepFunctionResponse) -> ActionResult:
        """DescribeStateMachineForExecution: what the execution began with; moto answers what is there now."""
        return ActionResult({"definition": began[json.loads(response.body)["executionArn"]]})

    def details(execution: Execution) -> ExecutionDetails:
        began[execution.exec_arn] = execution.state_machine.definition
        found = _details_of(execution)
        found.start_time = execution.start_date.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return found

    def wait(_: WaitFunction, env: Environment, wait_seconds: int) -> None:
        runs.waited.append(wait_seconds)
        runs.meanwhile(wait_seconds)

    client.cache_clear()
    with (
        mock_aws(config={"stepfunctions": {"execute_state_machine": True}}),
        mock.patch.object(state_task_factory, "state_task_service_for", service_for),
        mock.patch.object(state_task_service_aws_sdk, "boto_client_for", lambda service, **_: client(service)),
        mock.patch.object(WaitFunction, "_wait_interval", wait),
        mock.patch.object(retrier_decl, "time", mock.Mock()),
        mock.patch.object(Execution, "get_start_execution_details", details),
        mock.patch.object(StepFunctionResponse, "describe_state_machine_for_execution", describe_release),
    ):
        yield


def _lowered(value: Any) -> Any:
    """Step Functions' field names as boto3 has them; names that are a user's own begin in lower case already."""
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _lowered(each) for name, each in value.items()}
    return [_lowered(each) for each in value] if isinstance(value, list) else value
