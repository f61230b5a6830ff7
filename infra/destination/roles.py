"""Make the roles on the destination: the job's, one for each trusted party, and Snowflake's two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.destination.logical_ids import make_logical_id, pin
from infra.destination.policies import Declared, Permissions
from infra.settings import Settings
from lakewriter.policy.role_documents import Who

JOB_LOGICAL_ID: Final = "JobRole"


@dataclass(frozen=True)
class Consumer:
    """A party outside this account and the role that it assumes."""

    name: str
    who: Who
    logical_id: str
    role: iam.Role


class Roles(Construct):
    """``job`` is new or existing; ``consumers`` are in the order of ``deployment.trust``, Snowflake's last."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, declared: Sequence[Declared]) -> None:
        super().__init__(scope, id_)
        self._settings = settings
        existing = settings.deployment.existing.job_role_arn
        job, *others = declared
        self.job: iam.IRole = self._import_role(existing) if existing else self._make_role(job, JOB_LOGICAL_ID)
        self.consumers: list[Consumer] = [self._make_consumer(each) for each in others if each.role.trust is not None]
        taken = settings.spec.access.role_arn
        if taken:
            self._warn(
                "destination-role",
                f"The job takes the role {taken}, which this stack does not make. Have its owner attach what "
                "'lakewriter policy' prints for it, and trust the job's role.",
            )

    def _import_role(self, arn: str) -> iam.IRole:
        self._warn(
            "job-role",
            f"Role {arn} is used as it is. Have its owner attach what 'lakewriter policy' prints for the job, and "
            "trust emr-serverless.amazonaws.com.",
        )
        return iam.Role.from_role_arn(self, "Job", arn, mutable=False)

    def _warn(self, id_: str, message: str) -> None:
        Annotations.of(self).add_warning_v2(f"lakewriter:{id_}", message)

    def _make_consumer(self, declared: Declared) -> Consumer:
        name = declared.role.name
        logical = make_logical_id("", name, separator="-") + "ConsumerRole"
        return Consumer(name, declared.role.who, logical, self._make_role(declared, logical))

    def _make_role(self, declared: Declared, logical: str) -> iam.Role:
        deployment = self._settings.deployment
        role = iam.Role(
            self,
            logical,
            description=f"{Stack.of(self).stack_name}: {declared.role.name}",
            # A placeholder: the trust policy set below has conditions that no CDK principal can express.
            assumed_by=iam.AccountRootPrincipal(),
            path=deployment.role_path,
            max_session_duration=Duration.hours(1),
        )
        resource = role.node.default_child
        if isinstance(resource, iam.CfnRole):
            resource.assume_role_policy_document = declared.role.trust
        # With its policies: a role without them is of no use, and policies that outlive a change allow what it took.
        role.apply_removal_policy(RemovalPolicy.DESTROY)
        pin(role, logical)
        Permissions(role, "Permissions", declared=declared, path=deployment.role_path, identity=role)
        return role
