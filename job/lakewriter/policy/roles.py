"""List every role on a destination: its name, its permissions, and who may assume it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from lakewriter.policy.arns import Arns
from lakewriter.policy.parties import require_separate
from lakewriter.policy.role_documents import Document, Who, find_who, make_documents
from lakewriter.policy.trust_policies import (
    Principal,
    make_closed_trust,
    make_job_trust,
    make_optimizer_trust,
    make_pod_trust,
    make_role_trust,
    make_service_trust,
    make_web_identity_trust,
)
from lakewriter.spec.access import SecretText
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Party, Snowflake, SnowflakePrincipal, Trust

USER: Final = "user"
"""The name of the user with an access key among the roles."""


OPTIMIZERS: Final = "optimizers"
"""The name of the role of Glue's optimizers among the roles."""


@dataclass(frozen=True)
class Role:
    """``trust`` is None if the stacks do not write it: for an existing role, such as a machine's, and for a user."""

    name: str
    who: Who
    documents: dict[str, Document]
    trust: Document | None


def list_roles(
    spec: Spec, deployment: Deployment, arns: Arns, *, show: Callable[[SecretText], str] = lambda secret: secret.text
) -> Iterator[Role]:
    """List the job's role, the role it assumes, one for each entry of ``trust``, the IAM user, Snowflake's two, and
    that of Glue's optimizers.

    ``show`` returns an external id as the trust policy is to hold it; the default keeps a reference as it is.
    """

    def make_role(name: str, who: Who, trust: Document | None, party: Party | None = None) -> Role:
        return Role(name, who, make_documents(spec, deployment, who, arns, party), trust)

    require_separate(spec, deployment)
    trust = None
    if not deployment.existing.job_role_arn:
        trust = make_job_trust(arns, conditions=deployment.source_role_conditions)
    yield make_role("job", Who.JOB, trust)
    if spec.access.role_arn:
        yield make_role(spec.access.role_arn.rpartition("/")[2], Who.LOADER, None)
    for entry in deployment.trust:
        yield make_role(entry.role, find_who(entry), _make_party_trust(entry, show), entry)
    if user := deployment.user:
        yield make_role(USER, find_who(user), None, user)
    if snowflake := find_snowflake(spec, deployment):
        yield make_role("snowflake-catalog", Who.CATALOG, make_snowflake_trust(snowflake.catalog, arns))
        yield make_role("snowflake-compute", Who.READER, make_snowflake_trust(snowflake.compute, arns))
    if spec.maintenance and spec.maintenance.makes_role:
        yield make_role(OPTIMIZERS, Who.OPTIMIZER, make_optimizer_trust())


def _make_party_trust(entry: Trust, show: Callable[[SecretText], str]) -> Document | None:
    """Make the trust policy of a party; None for a role that is there already."""
    ids = tuple(map(show, entry.external_ids))
    if entry.service is not None:
        return make_service_trust(entry.service, ids)
    if entry.identity is None:
        return make_role_trust(Principal(entry.arn, ids))
    if entry.identity.eks_pod_identity:
        return make_pod_trust(entry.identity.eks_pod_identity)
    return make_web_identity_trust(entry.identity.irsa) if entry.identity.irsa else None


def find_snowflake(spec: Spec, deployment: Deployment) -> Snowflake | None:
    """Find Snowflake's settings; empty ones for a catalog that needs its two roles before they are known."""
    is_needed = spec.service is not None and spec.service.takes_roles
    return deployment.snowflake or (Snowflake() if is_needed else None)


def make_snowflake_trust(principal: SnowflakePrincipal, arns: Arns) -> Document:
    """Make Snowflake's trust policy; it admits nobody until Snowflake's IAM user is known."""
    if principal.iam_user_arn is None:
        return make_closed_trust(arns)
    return make_role_trust(Principal(principal.iam_user_arn, principal.external_ids))
