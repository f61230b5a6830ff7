"""Build the first states of a load: choose its id from the input, and refuse or skip an overlapping start.

https://states-language.net/spec.html
"""

import json
from collections.abc import Mapping
from typing import Any, Final

State = dict[str, Any]

FIRST: Final = "ReadInput"
"""The first state."""

KEYS: Final = (
    "job_id", "scheduled_at", "start", "canary", "accept", "reason", "comment",
    "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID",
)  # fmt: skip
"""The keys of an input. The last is Step Functions' own, which a state machine that starts another one passes on:
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-nested-workflows.html
"""
_FORMS: Final = '{}, {"job_id": "NAME"}, {"scheduled_at": "2026-01-31T06:00:00Z"} or {"canary": true}'

_WHICH_LOAD: Final = "ChooseLoad"
_GUARD: Final = "WaitForExecutionList"
IS_CANARY: Final = {"Variable": "$.load.option", "StringEquals": "--canary"}

SETTLE_SECONDS: Final = 10
"""Wait before listing executions: the list is eventually consistent, and two simultaneous starts must both see both."""

EVERYTHING: Final = ["States.ALL"]
SERVICE_RETRY: Final = {"ErrorEquals": EVERYTHING, "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2}


def make_service_call(partition: str, action: str, parameters: Mapping[str, Any]) -> State:
    """Make a task state that calls an AWS service, such as ``s3:getObject``."""
    resource = f"arn:{partition}:states:::aws-sdk:{action}"
    return {"Type": "Task", "Resource": resource, "Parameters": dict(parameters)}


def build_start_states(partition: str, *, then: str, is_stream: bool) -> dict[str, State]:
    """Build the states before ``then``; they set ``$.load``: ``option`` and ``id`` for the job, its ``start``, and the
    ``acceptance`` of expectations if there is one.

    A stream names its own loads, so its option has no value, and is another for the canary alone, which runs beside it.
    """
    choice = _build_choice(is_stream=is_stream)
    guard = _build_overlap_guard(partition, then, is_stream=is_stream)
    return _build_reading() | choice | _build_acceptance(is_stream=is_stream) | guard


def _build_reading() -> dict[str, State]:
    """Refuse an input with a key that is not known: it would start another load than somebody meant.

    The language cannot list keys, but an object that has all of ``KEYS`` has as many values as there are of these, and
    one more only if the input adds a key.
    """
    all_keys = json.dumps(dict.fromkeys(KEYS, ""), separators=(",", ":"))
    merged = f"States.JsonMerge(States.StringToJson('{all_keys}'), $, false)"
    further = {"Variable": f"$.values[{len(KEYS)}]", "IsPresent": True, "Next": "UnknownKey"}
    return {
        FIRST: {"Type": "Pass", "Parameters": {"given.$": "$", "merged.$": merged}, "Next": "ListValues"},
        "ListValues": {
            "Type": "Pass",
            "Parameters": {"given.$": "$.given", "values.$": "$.merged.*"},
            "Next": "AreKeysKnown",
        },
        "AreKeysKnown": {"Type": "Choice", "Choices": [further], "Default": "UseInput"},
        "UnknownKey": {
            "Type": "Fail",
            "Error": "InputRefused",
            "Cause": f"The input has a key that is none of {', '.join(KEYS[:-1])}. Expected {_FORMS}.",
        },
        "UseInput": {"Type": "Pass", "InputPath": "$.given", "Next": _WHICH_LOAD},
    }


def _build_choice(*, is_stream: bool) -> dict[str, State]:
    """Choose by input: ``{}``, ``{"job_id"}``, ``{"scheduled_at"}`` or ``{"canary": true}``; the schedule adds
    ``"start": "schedule"``."""
    others = ("job_id", "scheduled_at", "start")
    time, job_id = ("--continuous", "--continuous") if is_stream else ("--scheduled-at", "--job-id")
    return {
        _WHICH_LOAD: {
            "Type": "Choice",
            "Choices": [
                {
                    "And": [
                        _test_presence("canary"),
                        {"Variable": "$.canary", "BooleanEquals": True},
                        *({"Not": _test_presence(other)} for other in others),
                    ],
                    "Next": "UseCanary",
                },
                {**_test_presence("canary"), "Next": "InvalidInput"},
                {"And": [_test_presence("job_id"), _test_presence("scheduled_at")], "Next": "InvalidInput"},
                {
                    "And": [_test_presence("job_id"), {"Variable": "$.job_id", "IsString": True}],
                    "Next": "UseJobId",
                },
                {
                    "And": [
                        _test_presence("start"),
                        {"Variable": "$.start", "StringEquals": "schedule"},
                        _test_presence("scheduled_at"),
                    ],
                    "Next": "UseScheduledTime",
                },
                {
                    "And": [_test_presence("scheduled_at"), {"Variable": "$.scheduled_at", "IsTimestamp": True}],
                    "Next": "UseGivenTime",
                },
                {"Or": [_test_presence("job_id"), _test_presence("scheduled_at")], "Next": "InvalidInput"},
            ],
            "Default": "UseExecutionName",
        },
        "UseCanary": _set_load("--canary", "$$.Execution.Name", "manual"),
        "UseScheduledTime": _set_load(time, "$.scheduled_at", "schedule"),
        "UseGivenTime": _set_load(time, "$.scheduled_at", "manual"),
        "UseJobId": _set_load(job_id, "$.job_id", "manual"),
        "UseExecutionName": _set_load(job_id, "$$.Execution.Name", "manual"),
        "InvalidInput": {
            "Type": "Fail",
            "Error": "InputRefused",
            "Cause": f"Expected {_FORMS}.",
        },
    }


def _set_load(option: str, path: str, start: str) -> State:
    load = {"option": option, "id.$": path, "start": start}
    return {"Type": "Pass", "Parameters": {"load": load, "input.$": "$"}, "Next": "IsAnythingAccepted"}


def _build_acceptance(*, is_stream: bool) -> dict[str, State]:
    """Keep ``{"accept": ["CHECK"], "reason": "TEXT"}`` beside ``job_id`` or ``scheduled_at``, for one load that a
    person names: in the input of a schedule or of a stream, which starts again by itself, it would hold for ever."""
    accept, reason = "input.accept", "input.reason"
    first, guard = "$.input.accept[0]", "IsItTheCanary" if is_stream else _GUARD
    valid = {
        "And": [
            {"Or": [_test_presence("input.job_id"), _test_presence("input.scheduled_at")]},
            {"Variable": "$.load.start", "StringEquals": "manual"},
            {"Variable": first, "IsPresent": True},
            {"Variable": first, "IsString": True},
            _test_presence(reason),
            {"Variable": f"$.{reason}", "IsString": True},
            {"Not": {"Variable": f"$.{reason}", "StringEquals": ""}},
        ],
        "Next": "KeepAcceptance",
    }
    nothing = {"And": [{"Not": _test_presence(key)} for key in (accept, reason)], "Next": guard}
    expected = '"accept": ["CHECK"] and "reason": "TEXT" beside "job_id" or "scheduled_at"'
    refused = "a continuous run takes no acceptance" if is_stream else f"Expected {expected}"
    states: dict[str, State] = {
        "IsAnythingAccepted": {
            "Type": "Choice",
            "Choices": [nothing] if is_stream else [nothing, valid],
            "Default": "InvalidAcceptance",
        },
        "InvalidAcceptance": {"Type": "Fail", "Error": "InputRefused", "Cause": f"{refused[0].upper()}{refused[1:]}."},
    }
    if not is_stream:
        # The execution's id shows who started it: CloudTrail has StartExecution.
        acceptance = {"accept.$": f"$.{accept}", "reason.$": f"$.{reason}", "by.$": "$$.Execution.Id"}
        states["KeepAcceptance"] = {
            "Type": "Pass",
            "Parameters": acceptance,
            "ResultPath": "$.load.acceptance",
            "Next": guard,
        }
    return states


def _test_presence(key: str) -> State:
    return {"Variable": f"$.{key}", "IsPresent": True}


def build_input_reading(partition: str, *, arn: str, canary: str, stream: str) -> dict[str, State]:
    """Build states that tell a stream apart from its canary, by the input of the execution whose ARN is at ``arn``."""
    is_canary = {
        "And": [_test_presence("began.input.canary"), {"Variable": "$.began.input.canary", "BooleanEquals": True}]
    }
    return {
        "ReadItsInput": make_service_call(partition, "sfn:describeExecution", {"ExecutionArn.$": arn})
        | {
            "ResultSelector": {"input.$": "States.StringToJson($.Input)"},
            "ResultPath": "$.began",
            "Retry": [SERVICE_RETRY],
            "Next": "WasItACanary",
        },
        "WasItACanary": {"Type": "Choice", "Choices": [{**is_canary, "Next": canary}], "Default": stream},
    }


def _build_counting(partition: str) -> dict[str, State]:
    """Build the states that let a canary start beside a stream, and keep only the streams of the running executions."""
    one = {
        **build_input_reading(partition, arn="$.ExecutionArn", canary="NotAStream", stream="AStream"),
        "NotAStream": {"Type": "Pass", "Parameters": {}, "End": True},
        "AStream": {"Type": "Pass", "Parameters": {"stream": {"ExecutionArn.$": "$.ExecutionArn"}}, "End": True},
    }
    streams = "$.described[*].stream"
    running = {"executions.$": streams, "count.$": f"States.ArrayLength({streams})"}
    return {
        "TellStreams": {
            "Type": "Map",
            "ItemsPath": "$.running.executions",
            "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "ReadItsInput", "States": one},
            "ResultPath": "$.described",
            "Next": "KeepStreams",
        },
        "KeepStreams": {
            "Type": "Pass",
            "Parameters": {"load.$": "$.load", "running": running},
            "Next": "IsAnyRunning",
        },
    }


def _build_overlap_guard(partition: str, then: str, *, is_stream: bool) -> dict[str, State]:
    """Build the states that let only the oldest running execution continue; the canary of a stream does not count."""
    listing = {"StateMachineArn.$": "$$.StateMachine.Id", "StatusFilter": "RUNNING"}
    # ListExecutions returns the newest first.
    oldest = "States.ArrayGetItem($.running.executions, States.MathAdd($.running.count, -1))"
    beside = {"IsItTheCanary": {"Type": "Choice", "Choices": [{**IS_CANARY, "Next": then}], "Default": _GUARD}}
    return {
        **(beside if is_stream else {}),
        _GUARD: {"Type": "Wait", "Seconds": SETTLE_SECONDS, "Next": "ListRunningLoads"},
        "ListRunningLoads": make_service_call(partition, "sfn:listExecutions", listing)
        | {
            "ResultSelector": {"executions.$": "$.Executions", "count.$": "States.ArrayLength($.Executions)"},
            "ResultPath": "$.running",
            "Retry": [SERVICE_RETRY],
            "Next": "TellStreams" if is_stream else "IsAnyRunning",
        },
        **(_build_counting(partition) if is_stream else {}),
        "IsAnyRunning": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.running.count", "NumericGreaterThan": 0, "Next": "FindOldestRunning"}],
            "Default": then,
        },
        "FindOldestRunning": {
            "Type": "Pass",
            "Parameters": {"load.$": "$.load", "oldest.$": oldest, "this.$": "$$.Execution.Id"},
            "Next": "IsThisTheOldest",
        },
        "IsThisTheOldest": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.oldest.ExecutionArn", "StringEqualsPath": "$.this", "Next": then},
                {"Variable": "$.load.start", "StringEquals": "schedule", "Next": "Skipped"},
            ],
            "Default": "AnotherLoadIsRunning",
        },
        "Skipped": {
            "Type": "Pass",
            "Parameters": {"status": "skipped", "running.$": "$.oldest.ExecutionArn"},
            "End": True,
        },
        "AnotherLoadIsRunning": {
            "Type": "Fail",
            "Error": "LoadRunning",
            "CausePath": "States.Format('Loads of a pipeline do not overlap, and {} is running. "
            "Start this one when it has ended, or stop it.', $.oldest.ExecutionArn)",
        },
    }
