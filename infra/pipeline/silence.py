"""Watch how long no load has succeeded, by a state machine that publishes the hours as a value.

An alarm looks back seven days at most, so it cannot count the loads of a month:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html. A success starts an execution
that waits and counts until a newer one is started; a deployment starts the first. None needs a load or a schedule.
"""

import json
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.load_permissions import (
    allow_logs,
    allow_metrics,
    allow_traces,
    make_statement,
    trust_state_machine,
)
from infra.pipeline.metrics import NAMESPACE, LoadMetric, make_dimensions
from infra.pipeline.old_releases import match_deployment, start_by_rules
from infra.pipeline.start_states import EVERYTHING, SERVICE_RETRY, State, make_service_call
from infra.pipeline.state_machine import make_logged_machine
from infra.settings import Settings
from lakewriter.policy.deployed_names import SILENCE
from lakewriter.spec.deployment import LONGEST_SILENCE, Deployment

MOST_TICKS: Final = 400
"""After so many an execution hands over to another: a history has 25,000 events, and each tick about twenty.

https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""
_MOST_TICK_HOURS: Final = 6
DEPLOYED: Final = {"start": "deployed"}


def compute_silence_hours(deployment: Deployment) -> int | None:
    """Compute after how many hours without a successful load to alarm; None if there is nothing to expect."""
    schedule, spark = deployment.schedule, deployment.spark
    if spark.mode == "STREAMING":
        return None
    if deployment.alarms.no_success_hours:
        return deployment.alarms.no_success_hours
    periods = schedule.measure_periods() if schedule and schedule.enabled else None
    if schedule is None or periods is None:
        return None
    _, longest = periods
    whole = longest + timedelta(minutes=schedule.flexible_minutes + spark.queue_timeout_minutes + spark.timeout_minutes)
    hours = math.ceil(whole / timedelta(hours=1))
    return hours if hours <= LONGEST_SILENCE else None


def compute_tick_hours(hours: int) -> int:
    """Compute how often the value is published: every hour if it matters within days, four times a day otherwise."""
    return max(1, min(hours // 24, _MOST_TICK_HOURS))


@dataclass(frozen=True)
class Watch:
    """The parameters of the definition; ``tick_hours`` pass between two values."""

    partition: str
    dimensions: dict[str, str]
    tick_hours: int

    def build_definition(self) -> dict[str, Any]:
        """Build the definition of the state machine."""
        return {
            "Comment": "The hours since the last load that succeeded, until a newer one starts this anew.",
            "StartAt": "ListAtStart",
            "States": self._build_start() | self._build_ticks() | self._build_end(),
        }

    def _list_running(self, selected: dict[str, str], following: str) -> State:
        """List the executions of this machine, the newest first."""
        listing = {"StateMachineArn.$": "$$.StateMachine.Id", "StatusFilter": "RUNNING"}
        return make_service_call(self.partition, "sfn:listExecutions", listing) | {
            "ResultSelector": selected,
            "ResultPath": "$.running",
            "Retry": [SERVICE_RETRY],
            "Next": following,
        }

    def _build_start(self) -> dict[str, State]:
        """Build the states that begin at zero, or where an earlier execution has handed over."""
        is_deployed = [
            {"Variable": "$.start", "IsPresent": True},
            {"Variable": "$.start", "StringEquals": DEPLOYED["start"]},
            {"Variable": "$.running.count", "NumericGreaterThan": 1},
        ]
        is_handed_over = [{"Variable": "$.hours", "IsPresent": True}, {"Variable": "$.hours", "IsNumeric": True}]
        return {
            "ListAtStart": self._list_running({"count.$": "States.ArrayLength($.Executions)"}, "WhyStarted"),
            "WhyStarted": {
                "Type": "Choice",
                "Choices": [
                    {"And": is_deployed, "Next": "Superseded"},
                    {"And": is_handed_over, "Next": "TakeOver"},
                ],
                "Default": "BeginAtZero",
            },
            "TakeOver": {"Type": "Pass", "Parameters": {"hours.$": "$.hours", "ticks": 0}, "Next": "PublishHours"},
            "BeginAtZero": {"Type": "Pass", "Parameters": {"hours": 0, "ticks": 0}, "Next": "PublishHours"},
        }

    def _build_ticks(self) -> dict[str, State]:
        named = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        datum = {
            "MetricName": str(LoadMetric.HOURS_WITHOUT_SUCCESS),
            "Unit": "None",
            "Dimensions": named,
            "Value.$": "$.hours",
        }
        counted = {
            "hours.$": f"States.MathAdd($.hours, {self.tick_hours})",
            "ticks.$": "States.MathAdd($.ticks, 1)",
        }
        return {
            "PublishHours": make_service_call(
                self.partition, "cloudwatch:putMetricData", {"Namespace": NAMESPACE, "MetricData": [datum]}
            )
            | {
                "ResultPath": None,
                "Retry": [SERVICE_RETRY],
                # The next value follows in any case.
                "Catch": [{"ErrorEquals": EVERYTHING, "ResultPath": "$.metrics_error", "Next": "WaitForTick"}],
                "Next": "WaitForTick",
            },
            "WaitForTick": {
                "Type": "Wait",
                "Seconds": round(timedelta(hours=self.tick_hours).total_seconds()),
                "Next": "ListRunning",
            },
            # This one is listed by now: the list is eventually consistent.
            "ListRunning": self._list_running(
                {"newest.$": "States.ArrayGetItem($.Executions, 0)", "this.$": "$$.Execution.Id"}, "IsThisTheNewest"
            ),
            "IsThisTheNewest": {
                "Type": "Choice",
                "Choices": [
                    {
                        "Variable": "$.running.newest.ExecutionArn",
                        "StringEqualsPath": "$.running.this",
                        "Next": "AddHours",
                    }
                ],
                "Default": "Superseded",
            },
            "AddHours": {"Type": "Pass", "Parameters": counted, "Next": "IsHistoryLong"},
            "IsHistoryLong": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.ticks", "NumericGreaterThanEquals": MOST_TICKS, "Next": "PrepareHandover"}],
                "Default": "PublishHours",
            },
        }

    def _build_end(self) -> dict[str, State]:
        start = {"StateMachineArn.$": "$$.StateMachine.Id", "Input.$": "States.JsonToString($.input)"}
        return {
            "PrepareHandover": {"Type": "Pass", "Parameters": {"input": {"hours.$": "$.hours"}}, "Next": "HandOver"},
            "HandOver": make_service_call(self.partition, "sfn:startExecution", start)
            | {"ResultPath": None, "Retry": [SERVICE_RETRY], "Next": "Superseded"},
            "Superseded": {"Type": "Succeed"},
        }


class Silence(Construct):
    """The ``state_machine``, whose ARN is ``arn``, and the name of the ``rule`` that starts it after a deployment."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, hours: int, log_group: logs.ILogGroup
    ) -> None:
        super().__init__(scope, id_)
        stack, path = Stack.of(self), settings.deployment.role_path
        role = iam.Role(self, "Role", assumed_by=trust_state_machine(stack, SILENCE), path=path)
        telling = iam.Policy(
            self, "Telling", statements=[allow_metrics("TellOfSilence"), allow_logs(), allow_traces()], roles=[role]
        )
        acknowledge(
            telling,
            "IAM5[Resource::*]",
            "Metrics, traces and the delivery of logs are not resources that a policy can name; the namespace bounds "
            "the metrics.",
        )
        watch = Watch(stack.partition, make_dimensions(settings), compute_tick_hours(hours))
        machine = make_logged_machine(self, "Watch", watch.build_definition(), role, log_group)
        machine.node.add_dependency(telling)
        self.resource: sfn.CfnStateMachine = machine
        self.arn: str = machine.attr_arn
        self.state_machine = sfn.StateMachine.from_state_machine_arn(self, "Made", self.arn)
        again = make_statement("WatchOn", ["states:ListExecutions", "states:StartExecution"], self.arn)
        iam.Policy(self, "Again", statements=[again], roles=[role])
        (self.rule,) = start_by_rules(
            self,
            settings,
            self.arn,
            {"Deployed": match_deployment(stack)},
            sid="StartWatch",
            machine_input=json.dumps(DEPLOYED),
        )


def add_silence(scope: Construct, *, settings: Settings, log_group: logs.ILogGroup) -> Silence | None:
    """Add the watch of a stage in which a success is expected by a time; else warn that nobody is called, and why."""
    hours = compute_silence_hours(settings.deployment)
    if hours is not None:
        return Silence(scope, "Silence", settings=settings, hours=hours, log_group=log_group)
    schedule = settings.deployment.schedule
    if settings.deployment.spark.mode != "STREAMING":
        reason = "it has no schedule" if schedule is None else "its schedule is off"
        if schedule and schedule.enabled:
            reason = f"{schedule.expression} starts none within {LONGEST_SILENCE} hours of another"
        Annotations.of(scope).add_warning_v2(
            "lakewriter:no-success",
            f"Nobody will be called if loads of {settings.spec.pipeline!r} stop succeeding, since {reason}. Give "
            "deployment.alarms.no_success_hours the hours after which to call.",
        )
    return None
