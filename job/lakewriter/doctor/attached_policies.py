"""Whether the policies that are attached are those the file needs, as far as IAM lets them be read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lakewriter import aws
from lakewriter.doctor.probe import Finding, Probe, call
from lakewriter.errors import LakeError
from lakewriter.policy.arns import Arns, partition_of
from lakewriter.policy.difference import Permission, permissions, uncovered
from lakewriter.policy.role_documents import Document, Who, documents
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/(?:.*/)?([^/]+)")
_MOST_SHOWN: Final = 5
_REMEDY: Final = "Deploy the stacks again, or attach what `lakewriter policy` prints for this role."
_UNNAMED: Final = "the file names no role that writes: a role that the stacks make gets its name from CloudFormation."
_NAME_IT: Final = (
    "A role of your own is compared once {role_arn} or deployment.existing.job_role_arn names it; for the stacks' "
    "own have CloudFormation detect the drift of the destination's stack."
)
_UNREADABLE: Final = (
    "Nothing has to be done; with iam:GetRole, iam:ListRolePolicies, iam:GetRolePolicy, iam:ListAttachedRolePolicies, "
    "iam:GetPolicy and iam:GetPolicyVersion the policies can be compared."
)


@dataclass(frozen=True)
class PolicyProbes:
    """One probe of the role that the job has at its destination; ``gate`` is what identity depends on."""

    spec: Spec
    deployment: Deployment
    clients: aws.Clients
    gate: str

    def probes(self) -> list[Probe]:
        """None for a store that is not AWS's."""
        return [] if self.spec.access.endpoint else [Probe("policies", self.policies, (self.gate,))]

    def policies(self) -> Iterator[Finding]:
        """Every permission on its own: how they are put together into statements makes no difference."""
        found = self._role()
        if found is None:
            yield Finding(
                "policies", "skipped", _UNNAMED, _NAME_IT.format(role_arn=self.spec.access.key_names.role_arn)
            )
            return
        account, name = found
        try:
            attached = permissions(self._attached(name))
        except LakeError as error:
            yield Finding("policies", "skipped", f"role {name!r}: {error.message}", _UNREADABLE)
            return
        yield self._compared(name, account, attached)

    def _compared(self, name: str, account: str, attached: Sequence[Permission]) -> Finding:
        arns = self._arns(account, attached)
        who = Who.LOADER if self.spec.access.role_arn else Who.JOB
        needed = permissions(documents(self.spec, self.deployment, who, arns).values())
        lacking = uncovered(needed, attached)
        beyond = [each for each in uncovered(attached, needed) if self._on_destination(each, arns)]
        if not lacking and not beyond:
            return Finding("policies", "ok", f"role {name!r} has what the file needs on its destination, and no more.")
        said = [f"lacks {_shown(lacking)}"] if lacking else []
        said += [f"may do more than the file needs: {_shown(beyond)}"] if beyond else []
        return Finding("policies", "warning", f"role {name!r} {'; it '.join(said)}.", _REMEDY)

    def _role(self) -> tuple[str, str] | None:
        """Account and name of the role that the file names; whoever asks here need not be the job."""
        found = _ROLE.fullmatch(self.spec.access.role_arn or self.deployment.existing.job_role_arn or "")
        return (found[1], found[2]) if found else None

    def _arns(self, account: str, attached: Sequence[Permission]) -> Arns:
        """A key that a stack made is known by its place in the role's policy alone."""
        region = self.spec.access.region
        partition = partition_of(region)
        keys = (each.resource for each in attached if each.action.startswith("kms:"))
        key = None
        if self.deployment.encryption == "SSE-KMS" and not self.deployment.existing.kms_key_arn:
            key = next(keys, f"arn:{partition}:kms:{region}:{account}:key/*")
        return Arns(partition, account, region, key)

    def _on_destination(self, permission: Permission, arns: Arns) -> bool:
        """What the role may do elsewhere, such as write its logs, is not this file's business."""
        bucket = arns.bucket(self.spec.access.bucket)
        ours = permission.action.lower().startswith(("s3:", "glue:", "*"))
        there = permission.resource in ("*", bucket) or permission.resource.startswith((f"{bucket}/", arns.glue("")))
        return ours and there

    def _attached(self, role: str) -> Iterator[Document]:
        """Inline and managed, read by whoever runs this: the role itself needs no right to read IAM."""
        own = aws.Clients(self.spec.access.model_copy(update={"role_arn": None, "external_id": None}))
        ask = partial(self._ask, own.iam)
        ask("GetRole", RoleName=role)
        for name in ask("ListRolePolicies", RoleName=role)["PolicyNames"]:
            yield ask("GetRolePolicy", RoleName=role, PolicyName=name)["PolicyDocument"]
        for policy in ask("ListAttachedRolePolicies", RoleName=role)["AttachedPolicies"]:
            arn = policy["PolicyArn"]
            version = ask("GetPolicy", PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield ask("GetPolicyVersion", PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]

    def _ask(self, iam: Any, action: str, **arguments: str) -> Any:
        """The answer, of a list all pages in one."""
        operation = re.sub(r"(?<!^)([A-Z])", r"_\1", action).lower()

        def request() -> Any:
            if iam.can_paginate(operation):
                return iam.get_paginator(operation).paginate(**arguments).build_full_result()
            return getattr(iam, operation)(**arguments)

        return call(f"iam:{action} on {next(iter(arguments.values()))}", self.spec.access, request)


def _shown(found: Sequence[Permission]) -> str:
    shown = ", ".join(map(str, found[:_MOST_SHOWN]))
    rest = len(found) - _MOST_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
