"""Build the state machine that follows a deployment: it hands a stream over, and deletes what no load uses any more.

https://states-language.net/spec.html. It runs after each deployment and after each load. An execution belongs to an
earlier release if the definition that it began with is not the present one:
https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeStateMachineForExecution.html
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from infra.pipeline.start_states import EVERYTHING, SERVICE_RETRY, State, build_input_reading, make_service_call
from lakewriter.spec.deployment import STACK_TAG

TIMEOUT: Final = timedelta(hours=2)
POLL_SECONDS: Final = 30
STOP_RETRY: Final = {"ErrorEquals": EVERYTHING, "IntervalSeconds": POLL_SECONDS, "MaxAttempts": 20, "BackoffRate": 1}
"""An application whose last run is being cancelled refuses to stop. A stream has 120 seconds to end by itself:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-cancellation-grace-period.html
"""
PAGE: Final = 50
_OLD: Final = {"Variable": "$.old", "BooleanEquals": True}


@dataclass(frozen=True)
class Handover:
    """The parameters of a definition; texts may be CDK tokens.

    ``application`` is the present one's id, ``name`` that of all applications of the stack. A stream is stopped and
    started again; other loads end in the release that they began with.
    """

    partition: str
    loads: str
    application: str
    name: str
    stack: str
    is_stream: bool

    def build_definition(self) -> dict[str, Any]:
        """Build the definition of the state machine."""
        return {
            "Comment": "Hand a stream over to the release that was deployed, and delete earlier applications.",
            "StartAt": "ReadPresentRelease",
            "TimeoutSeconds": round(TIMEOUT.total_seconds()),
            "States": self._build_search() | self._build_cleaning() | self._build_end(),
        }

    def _call(self, action: str, following: str, **parameters: Any) -> State:
        return make_service_call(self.partition, action, parameters) | {"Retry": [SERVICE_RETRY], "Next": following}

    def _build_search(self) -> dict[str, State]:
        """Build the states that find the executions of earlier releases; a stream among them is stopped."""
        search = {
            "Type": "Choice",
            "Choices": [{"Variable": "$.any", "BooleanEquals": True, "Next": "EarlierLoadsAreRunning"}],
            "Default": "ListApplications",
        }
        return {
            "ReadPresentRelease": self._call("sfn:describeStateMachine", "ListRunningLoads", StateMachineArn=self.loads)
            | {"ResultSelector": {"definition.$": "$.Definition"}, "ResultPath": "$.present"},
            "ListRunningLoads": self._call(
                "sfn:listExecutions", "CompareReleases", StateMachineArn=self.loads, StatusFilter="RUNNING"
            )
            | {"ResultSelector": {"executions.$": "$.Executions"}, "ResultPath": "$.running"},
            "CompareReleases": {
                "Type": "Map",
                "ItemsPath": "$.running.executions",
                "ItemSelector": {"arn.$": "$$.Map.Item.Value.ExecutionArn", "present.$": "$.present.definition"},
                "ItemProcessor": _make_processor("ReadItsRelease", self._build_comparison()),
                "ResultPath": "$.compared",
                "Next": "IsAnyEarlier",
            },
            "IsAnyEarlier": {
                "Type": "Pass",
                "Parameters": {
                    "any.$": "States.ArrayContains($.compared[*].old, true)",
                    "compared.$": "$.compared",
                },
                "Next": "ListApplications" if self.is_stream else "MayApplicationsGo",
            },
            **({} if self.is_stream else {"MayApplicationsGo": search}),
        }

    def _build_comparison(self) -> dict[str, State]:
        states: dict[str, State] = {
            "ReadItsRelease": self._call(
                "sfn:describeStateMachineForExecution", "IsItThePresentRelease", **{"ExecutionArn.$": "$.arn"}
            )
            | {"ResultSelector": {"definition.$": "$.Definition"}, "ResultPath": "$.began"},
            "IsItThePresentRelease": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.began.definition", "StringEqualsPath": "$.present", "Next": "Present"}],
                "Default": "ReadItsInput" if self.is_stream else "Earlier",
            },
            "Present": _make_result(old=False),
            "Earlier": _make_result(old=True),
        }
        if self.is_stream:
            stop = {"ExecutionArn.$": "$.arn", "Cause": "A newer release was deployed, and continues the stream."}
            # A canary ends by itself in the release that it began with.
            states |= build_input_reading(self.partition, arn="$.arn", canary="Present", stream="StopStream")
            states["StopStream"] = self._call("sfn:stopExecution", "Earlier", **stop) | {"ResultPath": None}
        return states

    def _build_cleaning(self) -> dict[str, State]:
        """Build the states that delete the applications of earlier releases, page by page."""
        following = "RestartStreams" if self.is_stream else "Done"
        page = {"MaxResults": PAGE}
        return {
            "ListApplications": self._call("emrserverless:listApplications", "DeleteEarlierApplications", **page)
            | {"ResultPath": "$.page"},
            "ListMoreApplications": self._call(
                "emrserverless:listApplications",
                "DeleteEarlierApplications",
                **page,
                **{"NextToken.$": "$.page.NextToken"},
            )
            | {"ResultPath": "$.page"},
            "DeleteEarlierApplications": {
                "Type": "Map",
                "MaxConcurrency": 1,
                "ItemsPath": "$.page.Applications",
                "ItemSelector": {"id.$": "$$.Map.Item.Value.Id", "name.$": "$$.Map.Item.Value.Name"},
                "ItemProcessor": _make_processor("MayBeEarlier", self._build_deletion()),
                "ResultPath": None,
                "Next": "AreThereMore",
            },
            "AreThereMore": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.page.NextToken", "IsString": True, "Next": "ListMoreApplications"}],
                "Default": following,
            },
        }

    def _build_deletion(self) -> dict[str, State]:
        """Build the states that delete one application, if it is of this stack and not the present one."""
        application = {"ApplicationId.$": "$.id"}
        # Of another stack, or still in use: it is looked at again after the next load.
        leave = [{"ErrorEquals": EVERYTHING, "ResultPath": "$.refused", "Next": "LeaveIt"}]
        return {
            "MayBeEarlier": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.id", "StringEquals": self.application, "Next": "LeaveIt"},
                    {"Variable": "$.name", "StringEquals": self.name, "Next": "ReadApplication"},
                ],
                "Default": "LeaveIt",
            },
            "ReadApplication": self._call("emrserverless:getApplication", "IsEarlier", **application)
            | {
                "ResultSelector": {"state.$": "$.Application.State", "tags.$": "$.Application.Tags"},
                "ResultPath": "$.read",
                "Catch": leave,
            },
            "IsEarlier": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": f"$.read.tags.{STACK_TAG}", "IsPresent": False, "Next": "LeaveIt"},
                    {
                        "Not": {"Variable": f"$.read.tags.{STACK_TAG}", "StringEquals": self.stack},
                        "Next": "LeaveIt",
                    },
                    {"Variable": "$.read.state", "StringEquals": "STARTED", "Next": "StopApplication"},
                    {"Variable": "$.read.state", "StringEquals": "STOPPED", "Next": "DeleteApplication"},
                    {"Variable": "$.read.state", "StringEquals": "CREATED", "Next": "DeleteApplication"},
                    {"Variable": "$.read.state", "StringEquals": "TERMINATED", "Next": "LeaveIt"},
                ],
                "Default": "WaitForApplication",
            },
            # "All scheduled and running jobs must be completed or cancelled before stopping an application."
            # https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StopApplication.html
            "StopApplication": self._call("emrserverless:stopApplication", "WaitForApplication", **application)
            | {"Retry": [STOP_RETRY if self.is_stream else SERVICE_RETRY], "ResultPath": None, "Catch": leave},
            "WaitForApplication": {"Type": "Wait", "Seconds": POLL_SECONDS, "Next": "ReadApplication"},
            "DeleteApplication": self._call("emrserverless:deleteApplication", "LeaveIt", **application)
            | {"ResultPath": None, "Catch": leave},
            "LeaveIt": {"Type": "Succeed"},
        }

    def _build_end(self) -> dict[str, State]:
        done: dict[str, State] = {"Done": {"Type": "Succeed"}}
        if not self.is_stream:
            return done | {"EarlierLoadsAreRunning": {"Type": "Succeed"}}
        # By the name, a stream that two executions have seen is started once.
        start = {
            "StateMachineArn": self.loads,
            "Name.$": "States.Format('handover-{}', States.Hash($.arn, 'SHA-256'))",
            "Input": "{}",
        }
        states = {
            "WasItEarlier": {"Type": "Choice", "Choices": [_OLD | {"Next": "StartStream"}], "Default": "PresentStream"},
            "StartStream": self._call("sfn:startExecution", "PresentStream", **start) | {"ResultPath": None},
            "PresentStream": {"Type": "Succeed"},
        }
        return {
            "RestartStreams": {
                "Type": "Map",
                "MaxConcurrency": 1,
                "ItemsPath": "$.compared",
                "ItemProcessor": _make_processor("WasItEarlier", states),
                "ResultPath": None,
                "Next": "Done",
            },
            **done,
        }


def _make_processor(start: str, states: dict[str, State]) -> State:
    return {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": start, "States": states}


def _make_result(*, old: bool) -> State:
    return {"Type": "Pass", "Parameters": {"arn.$": "$.arn", "old": old}, "End": True}
