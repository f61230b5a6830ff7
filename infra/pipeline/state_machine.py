"""Make the state machine that runs a load's attempts."""

import json
from datetime import timedelta
from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.load_permissions import LoadPermissions, make_statement
from infra.pipeline.load_states import Machine
from infra.pipeline.metrics import make_dimensions
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.naming import ControlKeys


class Loads(Construct):
    """The state machine, also as the CloudFormation ``resource``; ``runs`` are those of a load and of its canary."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        runs: tuple[dict[str, Any], dict[str, Any] | None],
        permissions: LoadPermissions,
        watch: str | None,
        log_group: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, id_)
        stack, role = Stack.of(self), permissions.role
        _, canary_run = runs
        machine = make_machine(settings, *runs, watch, stack.partition)
        self.resource = make_logged_machine(self, "StateMachine", machine.build_definition(), role, log_group)
        # Step Functions uses the role when the state machine is created: it makes the rule that reports job runs.
        self.resource.node.add_dependency(*permissions.policies)
        self.state_machine = sfn.StateMachine.from_state_machine_arn(self, "Made", self.resource.attr_arn)
        # In a policy of its own: it refers to the state machine, which depends on the other policies.
        statements = [make_statement("FindRunningLoads", ["states:ListExecutions"], self.resource.attr_arn)]
        if watch is not None:
            statements.append(make_statement("StartWatch", ["states:StartExecution"], watch))
        if canary_run is not None:
            executions = format_executions(stack, self.resource)
            statements.append(make_statement("TellCanaries", ["states:DescribeExecution"], executions))
        guard = iam.Policy(self, "OverlapGuard", statements=statements, roles=[role])
        if canary_run is not None:
            acknowledge_executions(guard, executions)


def format_executions(stack: Stack, machine: sfn.CfnStateMachine) -> str:
    """Format the ARN of all executions of a state machine."""
    return stack.format_arn(
        service="states",
        resource="execution",
        resource_name=f"{machine.attr_name}:*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def acknowledge_executions(policy: iam.Policy, executions: str) -> None:
    """Say why a policy has a wildcard in the ARN of executions."""
    acknowledge(
        policy,
        f"IAM5[Resource::{render_tokens(Stack.of(policy), executions)}]",
        "The executions of the one state machine; each has its name only once it is started.",
    )


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


def make_machine(
    settings: Settings,
    job_run: dict[str, Any],
    canary_run: dict[str, Any] | None,
    watch: str | None,
    partition: str,
) -> Machine:
    """Make the definition's parameters; Step Functions cannot read outcomes from a store with a custom endpoint."""
    spark, access = settings.deployment.spark, settings.spec.access
    runs = ControlKeys(access.prefix, settings.spec.pipeline).runs
    return Machine(
        partition=partition,
        job_run=job_run,
        outcomes=None if access.endpoint else (access.bucket, runs),
        dimensions=make_dimensions(settings),
        attempts=spark.attempts,
        pauses=spark.pauses,
        limits=(timedelta(minutes=spark.timeout_minutes), timedelta(minutes=spark.queue_timeout_minutes)),
        canary_run=canary_run,
        run_lasts=spark.run_lasts,
        watch=watch,
    )
