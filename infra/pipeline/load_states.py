"""Build the state machine of a load in the Amazon States Language with JSONPath: its attempts and its outcomes.

https://states-language.net/spec.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from infra.pipeline.metrics import FIELDS, NAMESPACE, UNITS, LoadMetric
from infra.pipeline.start_states import (
    EVERYTHING,
    FIRST,
    IS_CANARY,
    SERVICE_RETRY,
    State,
    build_start_states,
    make_service_call,
)
from lakewriter.errors import ExpectationFailedError

SLACK: Final = timedelta(minutes=10)
"""Time for the other states, and for Step Functions to learn that a job run has ended."""

JOB_RUN: Final = "RunJob"
"""The state that starts the job run and waits for its end."""
CANARY_RUN: Final = "RunCanary"
"""The same for the canary beside a stream."""


@dataclass(frozen=True)
class Machine:
    """The parameters of a definition; texts may be CDK tokens.

    ``job_run`` holds StartJobRun's parameters except the client token and the entry point's arguments;
    ``outcomes`` is bucket and key prefix of the outcome files, None if they are not in this account's S3.
    """

    partition: str
    job_run: Mapping[str, Any]
    outcomes: tuple[str, str] | None
    dimensions: Mapping[str, str]
    attempts: int
    pauses: tuple[timedelta, ...]
    limits: tuple[timedelta, timedelta]
    """An attempt may run for the first, and wait for the second before: EMR Serverless cancels what takes longer."""
    watch: str | None
    """The state machine that counts the hours since the last success, which starts it anew; None without one."""
    canary_run: Mapping[str, Any] | None
    """The same as ``job_run``, for the canary beside a continuous run; None for loads that end, whose canary is one of
    them. A continuous run has no time limit, and its micro-batches make their own load ids."""
    run_lasts: timedelta | None = None
    """The time after which EMR Serverless cancels a job run of a continuous run, and another one goes on; None where it
    cancels none."""

    @property
    def is_stream(self) -> bool:
        """True for a continuous run."""
        return self.canary_run is not None

    @property
    def attempt_timeout(self) -> timedelta:
        """Return the time that an execution waits for one attempt that ends."""
        return sum(self.limits, SLACK)

    def build_states(self) -> dict[str, State]:
        """Build all states in the order in which a load passes them."""
        return (
            build_start_states(self.partition, then="StartFirstAttempt", is_stream=self.is_stream)
            | self._build_attempt()
            | self._build_ends()
        )

    def build_definition(self) -> dict[str, Any]:
        """Build the definition of the state machine."""
        whole: dict[str, Any] = {
            "Comment": "One load: its attempts until it is done, or until a retry cannot help.",
            "StartAt": FIRST,
            "States": self.build_states(),
        }
        if not self.is_stream:
            pauses = sum(self.pauses, timedelta())
            whole["TimeoutSeconds"] = _to_seconds(self.attempts * self.attempt_timeout + pauses + SLACK)
        return whole

    def _build_attempt(self) -> dict[str, State]:
        # The start time is part of the attempt's name, since an execution's name may be reused after 90 days.
        name = "States.Format('{} {} {} {}', $.load.id, $$.Execution.Id, $$.Execution.StartTime, $.number)"
        if self.run_lasts is not None:
            # Attempts are counted anew after each run that has lasted as long as it may.
            name = name.replace("$$.Execution.StartTime", "$$.State.EnteredTime")
        pauses = ", ".join(str(_to_seconds(pause)) for pause in (*self.pauses, timedelta()))
        return {
            "StartFirstAttempt": {
                "Type": "Pass",
                "Parameters": {"load.$": "$.load", "number": 0},
                "Next": "PrepareAttempt",
            },
            "PrepareAttempt": {
                "Type": "Pass",
                "Parameters": {
                    "load.$": "$.load",
                    "name.$": f"States.Hash({name}, 'SHA-256')",
                    "number.$": "States.MathAdd($.number, 1)",
                    "pause.$": f"States.ArrayGetItem(States.Array({pauses}), $.number)",
                },
                "Next": "UseArguments" if self.is_stream else "IsLoadAccepted",
            },
            **self._build_arguments(),
            JOB_RUN: self._build_job_run(self.job_run, None if self.is_stream else self.attempt_timeout),
            **self._build_canary(),
            **(self._build_outcome_states(*self.outcomes) if self.outcomes else {}),
            "NoOutcomeRead": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.failure", "IsPresent": True, "Next": "NoOutcomeFile"}],
                "Default": "DoneWithoutOutcome",
            },
            "NoOutcomeFile": {
                "Type": "Pass",
                "Parameters": {
                    "status": "failed",
                    "code": "NO_OUTCOME",
                    "message.$": "States.JsonToString($.failure)",
                    "transient": True,
                },
                "ResultPath": "$.outcome",
                "Next": "CountKilledAttempt",
            },
            "CountKilledAttempt": self._build_put_metrics({LoadMetric.ATTEMPTS_FAILED: 1}, [], "WasItCancelled"),
            **self._build_cancellation(),
            "DoneWithoutOutcome": {
                "Type": "Pass",
                "Result": {"status": "done", **dict.fromkeys(FIELDS.values(), 0)},
                "ResultPath": "$.outcome",
                "Next": "WhatSucceeded",
            },
            "CanRetryHelp": {
                "Type": "Choice",
                "Choices": [
                    {
                        "And": [
                            {"Variable": "$.outcome.transient", "BooleanEquals": True},
                            {"Variable": "$.number", "NumericLessThan": self.attempts},
                        ],
                        "Next": "WaitBeforeRetry",
                    },
                    {"Variable": "$.outcome.code", "IsString": True, "Next": "Failed"},
                ],
                "Default": "Crashed",
            },
            "WaitBeforeRetry": {"Type": "Wait", "SecondsPath": "$.pause", "Next": "PrepareAttempt"},
        }

    def _build_ends(self) -> dict[str, State]:
        following = "Done" if self.watch is None else "WatchSilence"
        # Whether anybody watches does not change how the load ended.
        watching = {"ResultPath": None, "Retry": [SERVICE_RETRY], "Next": "Done"}
        watching |= {"Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.watch_error", "Next": "Done"}]}
        start = {"StateMachineArn": self.watch, "Input": "{}"}
        watch = {"WatchSilence": make_service_call(self.partition, "sfn:startExecution", start) | watching}
        return {
            # A canary reads no source: it is not the success that an alarm waits for.
            "WhatSucceeded": {
                "Type": "Choice",
                "Choices": [{**IS_CANARY, "Next": "PublishCanaryMetrics"}],
                "Default": "PublishLoadMetrics",
            },
            "PublishCanaryMetrics": self._build_put_metrics({LoadMetric.CANARIES_DONE: 1}, [], "Done"),
            "PublishLoadMetrics": self._build_put_metrics({LoadMetric.LOADS_DONE: 1}, list(FIELDS), following),
            **(watch if self.watch else {}),
            "Done": {
                "Type": "Pass",
                "Parameters": {
                    "status": "done",
                    "load.$": "$.load.id",
                    "attempts.$": "$.number",
                    "rows.$": "$.outcome.rows",
                },
                "End": True,
            },
            "Failed": {"Type": "Fail", "ErrorPath": "$.outcome.code", "CausePath": "$.outcome.message"},
            "Crashed": {"Type": "Fail", "Error": "JobCrashed", "CausePath": "$.outcome.message"},
        }

    def _build_cancellation(self) -> dict[str, State]:
        """Build the states that end a load whose job run somebody has cancelled: another attempt is not wanted.

        EMR Serverless itself cancels a run that exceeds its time limits, which another attempt may help.
        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
        """
        running, waiting = (_to_seconds(limit) for limit in self.limits)
        run = {"ApplicationId": self.job_run["ApplicationId"], "JobRunId.$": "$.cause.run.JobRunId"}
        read = make_service_call(self.partition, "emrserverless:getJobRun", run)
        ids = {"$.cause.run.JobRun.JobRunId": "UnwrapJobRun", "$.cause.run.JobRunId": "ReadJobRun"}
        late = [
            _test_limit("$.job.run.TotalExecutionDurationSeconds", running),
            _test_limit("$.job.run.QueuedDurationMilliseconds", 1000 * waiting),
        ]
        if self.is_stream:
            late[0] = [*late[0], IS_CANARY]
        cause = "$.failure.Cause"
        return {
            "WasItCancelled": {
                "Type": "Choice",
                "Choices": [
                    {
                        "And": [
                            {"Variable": cause, "IsPresent": True},
                            {"Variable": cause, "StringMatches": '{*"CANCELLED"*}'},
                        ],
                        "Next": "ReadCause",
                    }
                ],
                "Default": "CanRetryHelp",
            },
            "ReadCause": {
                "Type": "Pass",
                "Parameters": {"run.$": f"States.StringToJson({cause})"},
                "ResultPath": "$.cause",
                "Next": "FindJobRun",
            },
            # The documentation does not say whether the job run's fields are wrapped, as in GetJobRun's answer.
            "FindJobRun": {
                "Type": "Choice",
                "Choices": [{"Variable": path, "IsPresent": True, "Next": state} for path, state in ids.items()],
                "Default": "CanRetryHelp",
            },
            "UnwrapJobRun": {
                "Type": "Pass",
                "InputPath": "$.cause.run.JobRun",
                "ResultPath": "$.cause.run",
                "Next": "ReadJobRun",
            },
            "ReadJobRun": read
            | {
                "ResultSelector": {"run.$": "$.JobRun"},
                "ResultPath": "$.job",
                "Retry": [SERVICE_RETRY],
                "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.read_error", "Next": "CanRetryHelp"}],
                "Next": "WhoCancelled",
            },
            "WhoCancelled": {
                "Type": "Choice",
                "Choices": [
                    *({"And": tests, "Next": "CanRetryHelp"} for tests in late),
                    *self._build_next_run(),
                    {"Variable": "$.job.run.State", "StringEquals": "CANCELLED", "Next": "JobRunCancelled"},
                ],
                "Default": "CanRetryHelp",
            },
            "JobRunCancelled": {
                "Type": "Fail",
                "Error": "JobRunCancelled",
                "CausePath": "States.Format('Somebody cancelled job run {} of load {}, so it is not started again. "
                "To continue the load, start an execution with its job_id or scheduled_at.', "
                "$.job.run.JobRunId, $.load.id)",
            },
        }

    def _build_next_run(self) -> list[State]:
        """Return the choice for a run of a stream that has lasted as long as it may, by a minute less."""
        if self.run_lasts is None:
            return []
        seconds = _to_seconds(self.run_lasts - timedelta(minutes=1))
        tests = _test_limit("$.job.run.TotalExecutionDurationSeconds", seconds)
        return [{"And": tests, "Next": "StartFirstAttempt"}]

    def _build_arguments(self) -> dict[str, State]:
        """Build the states that set ``$.arguments``: with the expectations that this load need not meet, or without.

        They are one argument, JSON, for an array of the language has as many members as the definition names.
        """
        if self.is_stream:
            return {"UseArguments": _set_arguments("$.load.option", "WhichJobRun")}
        accepted = "'--acceptance', States.JsonToString($.load.acceptance)"
        is_accepted = {"Variable": "$.load.acceptance", "IsPresent": True, "Next": "UseAcceptance"}
        return {
            "IsLoadAccepted": {"Type": "Choice", "Choices": [is_accepted], "Default": "UseArguments"},
            "UseAcceptance": _set_arguments(f"$.load.option, $.load.id, {accepted}", JOB_RUN),
            "UseArguments": _set_arguments("$.load.option, $.load.id", JOB_RUN),
        }

    def _build_canary(self) -> dict[str, State]:
        """Build the states that start the canary beside a stream, which is a run of its own kind."""
        if self.canary_run is None:
            return {}
        return {
            "WhichJobRun": {"Type": "Choice", "Choices": [{**IS_CANARY, "Next": CANARY_RUN}], "Default": JOB_RUN},
            CANARY_RUN: self._build_job_run(self.canary_run, self.attempt_timeout),
        }

    def _build_job_run(self, job_run: Mapping[str, Any], timeout: timedelta | None) -> State:
        driver = dict(job_run["JobDriver"]["SparkSubmit"]) | {"EntryPointArguments.$": "$.arguments.list"}
        parameters = {**job_run, "ClientToken.$": "$.name", "JobDriver": {"SparkSubmit": driver}}
        read = "ReadOutcome" if self.outcomes else "NoOutcomeRead"
        state: State = {
            "Type": "Task",
            "Resource": f"arn:{self.partition}:states:::emr-serverless:startJobRun.sync",
            "Parameters": parameters,
            "ResultPath": None,
            "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.failure", "Next": read}],
            "Next": read,
        }
        if timeout is not None:
            state["TimeoutSeconds"] = _to_seconds(timeout)
        return state

    def _build_outcome_states(self, bucket: str, prefix: str) -> dict[str, State]:
        key = f"States.Format('{_escape_format(prefix)}{{}}.json', $.name)"
        return {
            "ReadOutcome": make_service_call(self.partition, "s3:getObject", {"Bucket": bucket, "Key.$": key})
            | {
                "ResultSelector": {"outcome.$": "States.StringToJson($.Body)"},
                "ResultPath": "$.file",
                # If the file does not exist, S3 answers 403, not 404, to a role that may not list the bucket.
                "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.read_error", "Next": "NoOutcomeRead"}],
                "Next": "UseOutcome",
            },
            "UseOutcome": {
                "Type": "Pass",
                "InputPath": "$.file.outcome",
                "ResultPath": "$.outcome",
                "Next": "DidLoadSucceed",
            },
            "DidLoadSucceed": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.outcome.status", "StringEquals": "done", "Next": "WhatSucceeded"},
                    {
                        "And": [
                            {"Variable": "$.outcome.code", "IsString": True},
                            {"Variable": "$.outcome.code", "StringEquals": ExpectationFailedError.code},
                        ],
                        "Next": "PublishExpectationMetrics",
                    },
                ],
                "Default": "PublishFailureMetrics",
            },
            "PublishExpectationMetrics": self._build_put_metrics(
                {LoadMetric.ATTEMPTS_FAILED: 1, LoadMetric.EXPECTATIONS_FAILED: 1},
                [LoadMetric.PENDING_HOURS],
                "WasItCancelled",
            ),
            "PublishFailureMetrics": self._build_put_metrics(
                {LoadMetric.ATTEMPTS_FAILED: 1}, [LoadMetric.PENDING_HOURS], "WasItCancelled"
            ),
        }

    def _build_put_metrics(self, counts: Mapping[LoadMetric, int], read: list[LoadMetric], following: str) -> State:
        values: dict[LoadMetric, State] = {metric: {"Value": value} for metric, value in counts.items()}
        values |= {metric: {"Value.$": f"$.outcome.{FIELDS[metric]}"} for metric in read}
        named = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        data = [
            {"MetricName": str(metric), "Unit": UNITS.get(metric, "Count"), "Dimensions": named, **value}
            for metric, value in values.items()
        ]
        return make_service_call(
            self.partition, "cloudwatch:putMetricData", {"Namespace": NAMESPACE, "MetricData": data}
        ) | {
            "ResultPath": None,
            "Retry": [SERVICE_RETRY],
            # A failed metrics call must not change how the load ended.
            "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.metrics_error", "Next": following}],
            "Next": following,
        }


def _set_arguments(which: str, following: str) -> State:
    array = f"States.Array('run', 'lake/lake.yaml', {which}, '--outcome', $.name)"
    return {"Type": "Pass", "Parameters": {"list.$": array}, "ResultPath": "$.arguments", "Next": following}


def _test_limit(path: str, most: int) -> list[State]:
    """Test for a number that is there and is not below a limit."""
    tests = [{"Variable": path, "IsPresent": True}, {"Variable": path, "IsNumeric": True}]
    return [*tests, {"Variable": path, "NumericGreaterThanEquals": most}]


def _escape_format(text: str) -> str:
    """Escape ``text`` for the quotes of ``States.Format``."""
    return "".join(f"\\{c}" if c in "'{}\\" else c for c in text)


def _to_seconds(span: timedelta) -> int:
    return round(span.total_seconds())
