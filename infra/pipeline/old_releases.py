"""Run the handover after each deployment and each load, and allow it what it needs."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.application import Application
from infra.pipeline.handover import Handover
from infra.pipeline.load_permissions import allow_logs, allow_traces, make_statement, trust_state_machine
from infra.pipeline.state_machine import Loads, acknowledge_executions, format_executions, make_logged_machine
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.policy.arns import Arns, name_principal
from lakewriter.policy.deployed_names import HANDOVER, DeployedNames
from lakewriter.spec.deployment import STACK_TAG

DEPLOYED = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/event-detail-stack-status-change.html"""
ENDED = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
"""https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html"""


class OldReleases(Construct):
    """The state machine that follows deployments, and the names of the ``rules`` that start it."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        application: Application,
        loads: Loads,
        log_group: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, id_)
        stack, path = Stack.of(self), settings.deployment.role_path
        is_stream = settings.deployment.spark.mode == "STREAMING"
        role = iam.Role(self, "Role", assumed_by=trust_state_machine(stack, HANDOVER), path=path)
        policies = [
            self._allow_loads(role, loads.resource, is_stream=is_stream),
            self._allow_applications(role),
            self._allow_telling(role),
        ]
        handover = Handover(
            stack.partition,
            loads=loads.resource.attr_arn,
            application=application.application_id,
            name=application.name,
            stack=stack.stack_name,
            is_stream=is_stream,
        )
        machine = make_logged_machine(self, "Handover", handover.build_definition(), role, log_group)
        self.resource: sfn.CfnStateMachine = machine
        machine.node.add_dependency(*policies)
        self.state_machine = sfn.StateMachine.from_state_machine_arn(self, "Made", machine.attr_arn)
        ended = {
            "source": ["aws.states"],
            "detail-type": ["Step Functions Execution Status Change"],
            "detail": {"stateMachineArn": [loads.resource.attr_arn], "status": ENDED},
        }
        patterns = {"Deployed": match_deployment(stack), "LoadEnded": ended}
        self.rules = start_by_rules(self, settings, machine.attr_arn, patterns, sid="StartHandovers")

    def _allow_loads(self, role: iam.Role, loads: sfn.CfnStateMachine, *, is_stream: bool) -> iam.Policy:
        machine = loads.attr_arn
        executions = format_executions(Stack.of(self), loads)
        reading = ["states:DescribeStateMachine", "states:ListExecutions"]
        statements = [
            make_statement("ReadPresentRelease", reading, machine),
            make_statement("ReadReleaseOfLoads", ["states:DescribeStateMachineForExecution"], executions),
        ]
        if is_stream:
            statements += [
                make_statement("StopStreams", ["states:DescribeExecution", "states:StopExecution"], executions),
                make_statement("RestartStreams", ["states:StartExecution"], machine),
            ]
        policy = iam.Policy(self, "OfLoads", statements=statements, roles=[role])
        acknowledge_executions(policy, executions)
        return policy

    def _allow_applications(self, role: iam.Role) -> iam.Policy:
        """Allow the deletion of this stack's applications; IDs of earlier ones are not known at synth."""
        stack = Stack.of(self)
        applications = stack.format_arn(service="emr-serverless", resource="/applications", resource_name="*")
        actions = [f"emr-serverless:{verb}Application" for verb in ("Get", "Stop", "Delete")]
        ours = {"StringEquals": {f"aws:ResourceTag/{STACK_TAG}": stack.stack_name}}
        statements = [
            make_statement("FindEarlierApplications", ["emr-serverless:ListApplications"], "*"),
            make_statement("DeleteEarlierApplications", actions, applications, ours),
        ]
        policy = iam.Policy(self, "OfApplications", statements=statements, roles=[role])
        acknowledge(policy, "IAM5[Resource::*]", "ListApplications has no resources.")
        acknowledge(
            policy,
            f"IAM5[Resource::{render_tokens(stack, applications)}]",
            "The condition on the tag leaves this stack's own applications; their ids are AWS's to choose.",
        )
        return policy

    def _allow_telling(self, role: iam.Role) -> iam.Policy:
        policy = iam.Policy(self, "Telling", statements=[allow_logs(), allow_traces()], roles=[role])
        acknowledge(
            policy, "IAM5[Resource::*]", "Traces and the delivery of logs are not resources that a policy can name."
        )
        return policy


def match_deployment(stack: Stack) -> dict[str, Any]:
    """Match the events of CloudFormation that end a deployment of the stack."""
    return {
        "source": ["aws.cloudformation"],
        "detail-type": ["CloudFormation Stack Status Change"],
        "detail": {"stack-id": [stack.stack_id], "status-details": {"status": DEPLOYED}},
    }


def start_by_rules(
    scope: Construct,
    settings: Settings,
    machine: str,
    patterns: Mapping[str, Any],
    *,
    sid: str,
    machine_input: str | None = None,
) -> tuple[str, ...]:
    """Start a state machine by a rule for each pattern, and return the names of the rules.

    The role trusts the rules by the beginning of their names, since they refer to it.
    """
    starting = make_statement(sid, ["states:StartExecution"], machine)
    stack = Stack.of(scope)
    arns = Arns(stack.partition, stack.account, stack.region)
    rules = DeployedNames(settings.spec.pipeline, settings.stage).list_arns("Rules", arns)
    trusted = iam.ServicePrincipal(name_principal("events")).with_conditions(
        {"StringEquals": {"aws:SourceAccount": stack.account}, "ArnLike": {"aws:SourceArn": rules}}
    )
    role = iam.Role(scope, "Starts", assumed_by=trusted, path=settings.deployment.role_path)
    iam.Policy(role, "Permissions", statements=[starting], roles=[role])
    target = events.CfnRule.TargetProperty(id="Machine", arn=machine, role_arn=role.role_arn, input=machine_input)
    return tuple(
        events.CfnRule(scope, name, event_pattern=pattern, state="ENABLED", targets=[target]).ref
        for name, pattern in patterns.items()
    )
