"""Make the state machine that runs a load's attempts."""

import json
from datetime import timedelta
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.pipeline.definition import SLACK, Machine
from infra.pipeline.load_permissions import LoadPermissions
from infra.pipeline.metrics import make_dimensions
from infra.settings import Settings
from lakewriter.naming import ControlKeys


class Loads(Construct):
    """The state machine as an interface, and as the CloudFormation ``resource``."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        job_run: dict[str, Any],
        permissions: LoadPermissions,
        log_group: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, id_)
        stack, role = Stack.of(self), permissions.role
        machine = make_machine(settings, job_run, stack.partition)
        self.resource = make_logged_machine(self, "StateMachine", machine.build_definition(), role, log_group)
        # Step Functions uses the role when the state machine is created: it makes the rule that reports job runs.
        self.resource.node.add_dependency(*permissions.policies)
        self.state_machine = sfn.StateMachine.from_state_machine_arn(self, "Made", self.resource.attr_arn)
        # In a policy of its own: it refers to the state machine, which depends on the other policies.
        listing = iam.PolicyStatement(
            sid="FindRunningLoads", actions=["states:ListExecutions"], resources=[self.resource.attr_arn]
        )
        iam.Policy(self, "OverlapGuard", statements=[listing], roles=[role])


def make_logged_machine(
    scope: Construct, id_: str, definition: dict[str, Any], role: iam.IRole, log_group: logs.ILogGroup
) -> sfn.CfnStateMachine:
    """Make a state machine whose every step is logged and traced."""
    group = sfn.CfnStateMachine.CloudWatchLogsLogGroupProperty(log_group_arn=log_group.log_group_arn)
    # Not sfn.StateMachine, which would add dependencies twice, and policies that this stack writes itself.
    return sfn.CfnStateMachine(
        scope,
        id_,
        role_arn=role.role_arn,
        # Not by Stack.to_json_string, which drops the nulls of ResultPath.
        definition_string=json.dumps(definition),
        logging_configuration=sfn.CfnStateMachine.LoggingConfigurationProperty(
            level="ALL",
            include_execution_data=True,
            destinations=[sfn.CfnStateMachine.LogDestinationProperty(cloud_watch_logs_log_group=group)],
        ),
        tracing_configuration=sfn.CfnStateMachine.TracingConfigurationProperty(enabled=True),
    )


def make_machine(settings: Settings, job_run: dict[str, Any], partition: str) -> Machine:
    """Make the definition's parameters; Step Functions cannot read outcomes from a store with a custom endpoint."""
    spark, access = settings.deployment.spark, settings.spec.access
    runs = ControlKeys(access.prefix, settings.spec.pipeline).runs
    running, waiting = timedelta(minutes=spark.timeout_minutes), timedelta(minutes=spark.queue_timeout_minutes)
    is_stream = spark.mode == "STREAMING"
    return Machine(
        partition=partition,
        job_run=job_run,
        outcomes=None if access.endpoint else (access.bucket, runs),
        dimensions=make_dimensions(settings),
        attempts=spark.attempts,
        pauses=spark.pauses,
        limits=(timedelta() if is_stream else running, waiting),
        attempt_timeout=None if is_stream else running + waiting + SLACK,
    )
