"""Make the roles on the destination: the job's, one for each trusted party, and Snowflake's two."""

import json
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
from lakewriter.policy.trust_policies import SERVICE

TRUST_LIMIT: Final = 2048
"""Characters of a trust policy without white space, unless the account's quota "Role trust policy length" is higher.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""
JOB_LOGICAL_ID: Final = "JobRole"
OPTIMIZER_LOGICAL_ID: Final = "OptimizerRole"


@dataclass(frozen=True)
class Consumer:
    """A party and its role; ``shown`` is the role's ARN as people read it.

    ``assumes`` is true for a party that takes the role by its ARN and an external id.
    """

    name: str
    who: Who
    logical_id: str
    role: iam.IRole
    shown: str
    assumes: bool = True


class Roles(Construct):
    """``job`` is new or existing; ``consumers`` are in the order of ``deployment.trust``, Snowflake's last."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, declared: Sequence[Declared]) -> None:
        super().__init__(scope, id_)
        self._settings = settings
        existing = settings.deployment.existing.job_role_arn
        self._identities = {entry.role: entry.identity for entry in settings.deployment.trust if entry.identity}
        self._services = {entry.role for entry in settings.deployment.trust if entry.service}
        job, *others = declared
        self.job: iam.IRole = self._import_role(existing) if existing else self._make_role(job, JOB_LOGICAL_ID)
        self.consumers: list[Consumer] = []
        self.optimizers: iam.Role | None = None
        for other in others:
            if other.role.who is Who.OPTIMIZER:
                self.optimizers = self._make_optimizers(other)
            elif other.role.trust is not None:
                self.consumers.append(self._make_consumer(other))
            elif other.role.name in self._identities:
                self.consumers.append(self._attach_to_host(other))
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
            f"trust {SERVICE}.",
        )
        return iam.Role.from_role_arn(self, "Job", arn, mutable=False)

    def _warn(self, id_: str, message: str) -> None:
        Annotations.of(self).add_warning_v2(f"lakewriter:{id_}", message)

    def _make_consumer(self, declared: Declared) -> Consumer:
        name = declared.role.name
        size = len(json.dumps(declared.role.trust, separators=(",", ":")))
        if size > TRUST_LIMIT:
            self._warn(
                f"trust-length-{name}",
                f"The trust policy of role {name!r} has {size} characters. IAM allows {TRUST_LIMIT} unless the account "
                "has a higher quota 'Role trust policy length'. Remove ids that the party gives no more from "
                "earlier_external_ids, or have the quota raised.",
            )
        logical = make_logical_id("", name, separator="-") + "ConsumerRole"
        role, assumes = self._make_role(declared, logical), name not in {*self._identities, *self._services}
        return Consumer(name, declared.role.who, logical, role, f"<{logical}.Arn>", assumes)

    def _attach_to_host(self, declared: Declared) -> Consumer:
        """Attach a party's policies to the role of the machine that it runs on."""
        name, arn = declared.role.name, self._identities[declared.role.name].ec2
        assert arn is not None
        logical = make_logical_id("", name, separator="-") + "HostRole"
        role = iam.Role.from_role_arn(self, logical, arn)
        path = self._settings.deployment.role_path
        Permissions(self, f"{logical}Permissions", declared=declared, path=path, identity=role)
        boundary = self._settings.deployment.permissions_boundary_arn
        if boundary:
            self._warn(
                f"host-role-{name}",
                f"The policies of {name!r} are attached to {arn}, which this stack does not make. A deployer with "
                "what 'lakewriter policy --who deployer' prints may do so only if that role has the boundary "
                f"{boundary} too.",
            )
        return Consumer(name, declared.role.who, logical, role, arn, assumes=False)

    def _make_optimizers(self, declared: Declared) -> iam.Role | None:
        """Make the role of Glue's optimizers; none for a destination whose owner makes its roles."""
        access, maintenance = self._settings.spec.access, self._settings.spec.maintenance
        assert maintenance is not None
        assert maintenance.optimizer_role is not None
        if access.role_arn:
            self._warn(
                "optimizer-role",
                f"The role {maintenance.optimizer_role} of maintenance.optimizer_role belongs to the account of "
                f"{access.role_arn}. Have its owner make it, with what 'lakewriter policy --who optimizer' prints.",
            )
            return None
        path, _, name = maintenance.optimizer_role.rpartition("/")
        return self._make_role(declared, OPTIMIZER_LOGICAL_ID, name=name, path=f"/{path}/" if path else "/")

    def _make_role(
        self, declared: Declared, logical: str, *, name: str | None = None, path: str | None = None
    ) -> iam.Role:
        """Make a role; ``name`` is for one that the file names, so that the job knows it."""
        deployment = self._settings.deployment
        role = iam.Role(
            self,
            logical,
            description=f"{Stack.of(self).stack_name}: {declared.role.name}",
            # A placeholder: the trust policy set below has conditions that no CDK principal can express.
            assumed_by=iam.AccountRootPrincipal(),
            role_name=name,
            path=path or deployment.role_path,
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
