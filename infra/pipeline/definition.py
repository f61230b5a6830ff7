"""The state machine of a load, in the Amazon States Language with JSONPath: its attempts and its ends.

https://states-language.net/spec.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from infra.pipeline.metrics import FIELDS, NAMESPACE, UNITS, Told
from infra.pipeline.starts import EVERYTHING, SERVICE_RETRY, WHICH_LOAD, State, service_call, which_load

SLACK: Final = timedelta(minutes=10)
"""For what Step Functions does beside the job runs, and for its learning that one has ended."""

JOB_RUN: Final = "Run the job"
"""The state that starts the job run and waits for its end."""


@dataclass(frozen=True)
class Machine:
    """What a definition is made of; texts may be CDK tokens.

    ``job_run`` holds StartJobRun's parameters but for the client token and the entry point's arguments;
    ``outcomes`` is bucket and key prefix of what attempts leave, None where this account's S3 does not have it.
    """

    partition: str
    job_run: Mapping[str, Any]
    outcomes: tuple[str, str] | None
    dimensions: Mapping[str, str]
    attempts: int
    pauses: tuple[timedelta, ...]
    attempt_timeout: timedelta | None
    """None for a run that goes on until it is stopped, whose loads have ids of their own."""

    def states(self) -> dict[str, State]:
        """All of them, in the order in which a load meets them."""
        return which_load(self.partition, then="First attempt") | self._attempt() | self._ends()

    def definition(self) -> dict[str, Any]:
        """As Step Functions takes it."""
        whole: dict[str, Any] = {
            "Comment": "One load: its attempts until it is done, or until a retry cannot help.",
            "StartAt": WHICH_LOAD,
            "States": self.states(),
        }
        if self.attempt_timeout is not None:
            pauses = sum(self.pauses, timedelta())
            whole["TimeoutSeconds"] = _seconds(self.attempts * self.attempt_timeout + pauses + SLACK)
        return whole

    def _attempt(self) -> dict[str, State]:
        # An execution's name may be used again after 90 days.
        name = "States.Format('{} {} {} {}', $.load.id, $$.Execution.Id, $$.Execution.StartTime, $.number)"
        pauses = ", ".join(str(_seconds(pause)) for pause in (*self.pauses, timedelta()))
        return {
            "First attempt": {
                "Type": "Pass",
                "Parameters": {"load.$": "$.load", "number": 0},
                "Next": "Attempt",
            },
            "Attempt": {
                "Type": "Pass",
                "Parameters": {
                    "load.$": "$.load",
                    "name.$": f"States.Hash({name}, 'SHA-256')",
                    "number.$": "States.MathAdd($.number, 1)",
                    "pause.$": f"States.ArrayGetItem(States.Array({pauses}), $.number)",
                },
                "Next": JOB_RUN,
            },
            JOB_RUN: self._job_run(),
            **(self._read(*self.outcomes) if self.outcomes else {}),
            "Nothing read": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.failure", "IsPresent": True, "Next": "None was written"}],
                "Default": "Done all the same",
            },
            "None was written": {
                "Type": "Pass",
                "Parameters": {
                    "status": "failed",
                    "code": "NO_OUTCOME",
                    "message.$": "States.JsonToString($.failure)",
                    "transient": True,
                },
                "ResultPath": "$.outcome",
                "Next": "Can a retry help",
            },
            "Done all the same": {
                "Type": "Pass",
                "Result": {"status": "done", **dict.fromkeys(FIELDS.values(), 0)},
                "ResultPath": "$.outcome",
                "Next": "Tell of the load",
            },
            "Can a retry help": {
                "Type": "Choice",
                "Choices": [
                    {
                        "And": [
                            {"Variable": "$.outcome.transient", "BooleanEquals": True},
                            {"Variable": "$.number", "NumericLessThan": self.attempts},
                        ],
                        "Next": "Pause",
                    },
                    {"Variable": "$.outcome.code", "IsString": True, "Next": "Failed"},
                ],
                "Default": "Crashed",
            },
            "Pause": {"Type": "Wait", "SecondsPath": "$.pause", "Next": "Attempt"},
        }

    def _ends(self) -> dict[str, State]:
        return {
            "Tell of the load": self._tell({Told.LOADS_DONE: 1}, list(FIELDS), "Done"),
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

    def _job_run(self) -> State:
        which = "$.load.option, $.load.id" if self.attempt_timeout is not None else "'--continuous'"
        arguments = f"States.Array('run', 'lake/lake.yaml', {which}, '--outcome', $.name)"
        driver = dict(self.job_run["JobDriver"]["SparkSubmit"]) | {"EntryPointArguments.$": arguments}
        parameters = {**self.job_run, "ClientToken.$": "$.name", "JobDriver": {"SparkSubmit": driver}}
        read = "Read the outcome" if self.outcomes else "Nothing read"
        state: State = {
            "Type": "Task",
            "Resource": f"arn:{self.partition}:states:::emr-serverless:startJobRun.sync",
            "Parameters": parameters,
            "ResultPath": None,
            "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.failure", "Next": read}],
            "Next": read,
        }
        if self.attempt_timeout is not None:
            state["TimeoutSeconds"] = _seconds(self.attempt_timeout)
        return state

    def _read(self, bucket: str, prefix: str) -> dict[str, State]:
        key = f"States.Format('{_in_format(prefix)}{{}}.json', $.name)"
        return {
            "Read the outcome": service_call(self.partition, "s3:getObject", {"Bucket": bucket, "Key.$": key})
            | {
                "ResultSelector": {"outcome.$": "States.StringToJson($.Body)"},
                "ResultPath": "$.told",
                # Where nothing was written, S3 answers 403 to those who may not list the bucket.
                "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.unread", "Next": "Nothing read"}],
                "Next": "Outcome",
            },
            "Outcome": {
                "Type": "Pass",
                "InputPath": "$.told.outcome",
                "ResultPath": "$.outcome",
                "Next": "How it ended",
            },
            "How it ended": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.outcome.status", "StringEquals": "done", "Next": "Tell of the load"}],
                "Default": "Tell of the failure",
            },
            "Tell of the failure": self._tell({Told.ATTEMPTS_FAILED: 1}, [Told.PENDING_HOURS], "Can a retry help"),
        }

    def _tell(self, counts: Mapping[Told, int], read: list[Told], following: str) -> State:
        values: dict[Told, State] = {each: {"Value": value} for each, value in counts.items()}
        values |= {each: {"Value.$": f"$.outcome.{FIELDS[each]}"} for each in read}
        named = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        data = [
            {"MetricName": str(each), "Unit": UNITS.get(each, "Count"), "Dimensions": named, **value}
            for each, value in values.items()
        ]
        return service_call(
            self.partition, "cloudwatch:putMetricData", {"Namespace": NAMESPACE, "MetricData": data}
        ) | {
            "ResultPath": None,
            "Retry": [SERVICE_RETRY],
            # The load has ended as it has, whoever hears of it.
            "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.untold", "Next": following}],
            "Next": following,
        }


def _in_format(text: str) -> str:
    """``text`` inside the quotes of ``States.Format``."""
    return "".join(f"\\{c}" if c in "'{}\\" else c for c in text)


def _seconds(span: timedelta) -> int:
    return round(span.total_seconds())
