"""Make the role of an operator, who follows the runbook."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.destination.declared import make_readable
from infra.destination.policies import Declared, Permissions
from infra.pipeline.application import Application
from infra.pipeline.load_permissions import FOLLOWING
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.roles import Role
from lakewriter.policy.statements import allow, make_document

LONGEST_SESSION: Final = Duration.hours(1)


class Operators(Construct):
    """The ``role`` that ``deployment.operators`` may take."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        machines: Sequence[sfn.CfnStateMachine],
        application: Application,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id_)
        stack, deployment = Stack.of(self), settings.deployment
        arns = Arns(stack.partition, stack.account, stack.region, key.key_arn if key else None)
        shown = make_readable(arns, key="<Key.Arn>" if key else None)
        trusted = [iam.ArnPrincipal(arn) for arn in deployment.operators]
        self.role: iam.Role = iam.Role(
            self,
            "Role",
            description=f"{stack.stack_name}: operators",
            assumed_by=iam.CompositePrincipal(*trusted),
            path=deployment.role_path,
            max_session_duration=LONGEST_SESSION,
        )
        made, readable = (
            _make_role(settings, of, [of.regional("states", f"stateMachine:{name}") for name in names], of_application)
            for of, names, of_application in (
                (arns, [machine.attr_name for machine in machines], application.arn),
                (
                    shown,
                    [render_tokens(stack, machine.attr_name) for machine in machines],
                    render_tokens(stack, application.arn),
                ),
            )
        )
        Permissions(
            self.role,
            "Permissions",
            declared=Declared(made, readable),
            path=deployment.role_path,
            identity=self.role,
        )


def _make_role(settings: Settings, arns: Arns, machines: Sequence[str], application: str) -> Role:
    documents = make_documents(
        settings.spec, settings.deployment, Who.OPERATOR, arns, stage=settings.stage, state_machines=machines
    )
    if settings.deployment.spark.plain_start:
        following = allow("FollowRunsOfApplication", FOLLOWING, [f"{application}/jobruns/*"])
        documents |= {"Runs": make_document([following])}
    return Role("operators", Who.OPERATOR, documents, None)
