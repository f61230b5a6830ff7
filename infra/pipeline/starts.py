"""How a load begins: which one it is, and whether it may run now.

https://states-language.net/spec.html
"""

from collections.abc import Mapping
from typing import Any, Final

State = dict[str, Any]

WHICH_LOAD: Final = "Which load"
"""The first state."""

SETTLE_SECONDS: Final = 10
"""The list of executions is eventually consistent: two that start at one moment are to find each other in it."""

EVERYTHING: Final = ["States.ALL"]
SERVICE_RETRY: Final = {"ErrorEquals": EVERYTHING, "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2}


def service_call(partition: str, action: str, parameters: Mapping[str, Any]) -> State:
    """A task that is one call of an AWS service, such as ``s3:getObject``."""
    resource = f"arn:{partition}:states:::aws-sdk:{action}"
    return {"Type": "Task", "Resource": resource, "Parameters": dict(parameters)}


def which_load(partition: str, *, then: str) -> dict[str, State]:
    """States that lead to ``then`` with ``$.load``: ``option`` and ``id`` for the job, and who ``start``ed it."""
    return _chosen() | _guard(partition, then)


def _chosen() -> dict[str, State]:
    """``{}``, ``{"job_id"}`` or ``{"scheduled_at"}`` by hand; the schedule adds ``"start": "schedule"``."""
    return {
        WHICH_LOAD: {
            "Type": "Choice",
            "Choices": [
                {"And": [_present("job_id"), _present("scheduled_at")], "Next": "Input refused"},
                {"And": [_present("job_id"), {"Variable": "$.job_id", "IsString": True}], "Next": "By its job id"},
                {
                    "And": [
                        _present("start"),
                        {"Variable": "$.start", "StringEquals": "schedule"},
                        _present("scheduled_at"),
                    ],
                    "Next": "By the schedule",
                },
                {
                    "And": [_present("scheduled_at"), {"Variable": "$.scheduled_at", "IsTimestamp": True}],
                    "Next": "By its time",
                },
                {"Or": [_present("job_id"), _present("scheduled_at")], "Next": "Input refused"},
            ],
            "Default": "By the execution's name",
        },
        "By the schedule": _load("--scheduled-at", "$.scheduled_at", "schedule"),
        "By its time": _load("--scheduled-at", "$.scheduled_at", "manual"),
        "By its job id": _load("--job-id", "$.job_id", "manual"),
        "By the execution's name": _load("--job-id", "$$.Execution.Name", "manual"),
        "Input refused": {
            "Type": "Fail",
            "Error": "InputRefused",
            "Cause": 'Expected {}, {"job_id": "NAME"} or {"scheduled_at": "2026-01-31T06:00:00Z"}.',
        },
    }


def _load(option: str, path: str, start: str) -> State:
    load = {"option": option, "id.$": path, "start": start}
    return {"Type": "Pass", "Parameters": {"load": load}, "Next": "Settle"}


def _present(key: str) -> State:
    return {"Variable": f"$.{key}", "IsPresent": True}


def _guard(partition: str, then: str) -> dict[str, State]:
    """The oldest running execution goes on."""
    listing = {"StateMachineArn.$": "$$.StateMachine.Id", "StatusFilter": "RUNNING"}
    # The newest comes first.
    oldest = "States.ArrayGetItem($.running.executions, States.MathAdd($.running.count, -1))"
    return {
        "Settle": {"Type": "Wait", "Seconds": SETTLE_SECONDS, "Next": "List running loads"},
        "List running loads": service_call(partition, "sfn:listExecutions", listing)
        | {
            "ResultSelector": {"executions.$": "$.Executions", "count.$": "States.ArrayLength($.Executions)"},
            "ResultPath": "$.running",
            "Retry": [SERVICE_RETRY],
            "Next": "Any running",
        },
        "Any running": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.running.count", "NumericGreaterThan": 0, "Next": "Oldest"}],
            "Default": then,
        },
        "Oldest": {
            "Type": "Pass",
            "Parameters": {"load.$": "$.load", "oldest.$": oldest, "this.$": "$$.Execution.Id"},
            "Next": "Is it this one",
        },
        "Is it this one": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.oldest.ExecutionArn", "StringEqualsPath": "$.this", "Next": then},
                {"Variable": "$.load.start", "StringEquals": "schedule", "Next": "Skipped"},
            ],
            "Default": "Another load is running",
        },
        "Skipped": {
            "Type": "Pass",
            "Parameters": {"status": "skipped", "running.$": "$.oldest.ExecutionArn"},
            "End": True,
        },
        "Another load is running": {
            "Type": "Fail",
            "Error": "LoadRunning",
            "CausePath": "States.Format('Loads of a pipeline do not overlap, and {} is running. "
            "Start this one when it has ended, or stop it.', $.oldest.ExecutionArn)",
        },
    }
