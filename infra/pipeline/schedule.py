"""Make the EventBridge schedule that starts the state machine with the scheduled time as input."""

import json
from datetime import timedelta
from typing import Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.nag import acknowledge
from infra.pipeline.load_permissions import make_statement
from infra.settings import Settings
from lakewriter.policy.arns import name_principal, name_services
from lakewriter.spec.deployment import Schedule

LOGICAL_ID: Final = "DeadLetters"
RETRIES: Final = 10
SHORTEST_AGE: Final = timedelta(minutes=1)
LONGEST_AGE: Final = timedelta(hours=1)

INPUT: Final = {"start": "schedule", "scheduled_at": "<aws.scheduler.scheduled-time>"}
"""Scheduler fills in the scheduled time, even if it delivers the start later.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""


class LoadSchedule(Construct):
    """The schedule; ``dead_letters`` is the queue of starts that could not be delivered."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        schedule: Schedule,
        state_machine: sfn.IStateMachine,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id_)
        self.dead_letters = self._make_queue(key)
        group = scheduler.CfnScheduleGroup(self, "Group")
        role, permissions = self._make_role(settings, group, state_machine, key)
        flexible = schedule.flexible_minutes
        resource = scheduler.CfnSchedule(
            self,
            "Schedule",
            description=f"Starts the loads of {settings.spec.pipeline}, stage {settings.stage}",
            group_name=group.ref,
            schedule_expression=schedule.expression,
            schedule_expression_timezone=schedule.timezone,
            state="ENABLED" if schedule.enabled else "DISABLED",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(
                mode="FLEXIBLE" if flexible else "OFF", maximum_window_in_minutes=flexible or None
            ),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=state_machine.state_machine_arn,
                role_arn=role.role_arn,
                input=json.dumps(INPUT),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=RETRIES,
                    maximum_event_age_in_seconds=round(compute_longest_age(schedule).total_seconds()),
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self.dead_letters.queue_arn),
            ),
        )
        resource.node.add_dependency(permissions)

    def _make_queue(self, key: kms.IKey | None) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            LOGICAL_ID,
            encryption=sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED,
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            # As the schedule: its alarm has reported every message, and a file without a schedule leaves no queue.
            removal_policy=RemovalPolicy.DESTROY,
        )
        pin(queue, LOGICAL_ID)
        acknowledge(queue, "SQS3", "It is the dead-letter queue of the schedule, which cdk-nag does not know as one.")
        return queue

    def _make_role(
        self,
        settings: Settings,
        group: scheduler.CfnScheduleGroup,
        state_machine: sfn.IStateMachine,
        key: kms.IKey | None,
    ) -> tuple[iam.Role, iam.Policy]:
        stack = Stack.of(self)
        # Scheduler's SourceArn is the schedule group, not the schedule.
        trusted = iam.ServicePrincipal(name_principal("scheduler")).with_conditions(
            {"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group.attr_arn}}
        )
        role = iam.Role(self, "Role", assumed_by=trusted, path=settings.deployment.role_path)
        statements = [
            make_statement("StartLoads", ["states:StartExecution"], state_machine.state_machine_arn),
            make_statement("KeepUndelivered", ["sqs:SendMessage"], self.dead_letters.queue_arn),
        ]
        if key:
            through = {"StringEquals": {"kms:ViaService": name_services(["sqs"], stack.region)}}
            actions = ["kms:Decrypt", "kms:GenerateDataKey"]
            statements.append(make_statement("EncryptUndelivered", actions, key.key_arn, through))
        return role, iam.Policy(role, "Permissions", statements=statements, roles=[role])


def compute_longest_age(schedule: Schedule) -> timedelta:
    """Compute how late a start may be delivered: before the next one is due, and within an hour."""
    periods = schedule.measure_periods()
    return max(SHORTEST_AGE, min(periods[0], LONGEST_AGE)) if periods else LONGEST_AGE
