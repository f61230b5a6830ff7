"""Every role on a destination: what it is called, what it may do, and who may take it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, documents, who_of
from lakewriter.policy.trust_policies import Party, closed_trust, job_trust, role_trust
from lakewriter.spec.access import SecretText
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Snowflake, SnowflakePrincipal


@dataclass(frozen=True)
class Role:
    """``trust`` is None where it is not ours to say: a role that is there already, or a user."""

    name: str
    who: Who
    documents: dict[str, Document]
    trust: Document | None


def roles(
    spec: Spec, deployment: Deployment, arns: Arns, *, shown: Callable[[SecretText], str] = lambda secret: secret.text
) -> Iterator[Role]:
    """The job's, the one it takes, one for each entry of ``trust``, the key-based user, Snowflake's.

    ``shown`` gives an external id as a trust policy is to have it; by default a reference stays one.
    """

    def role(name: str, who: Who, trust: Document | None) -> Role:
        return Role(name, who, documents(spec, deployment, who, arns), trust)

    own = None if deployment.existing.job_role_arn else job_trust(arns, conditions=deployment.source_role_conditions)
    yield role("job", Who.JOB, own)
    if spec.access.role_arn:
        yield role(spec.access.role_arn.rpartition("/")[2], Who.LOADER, None)
    for entry in deployment.trust:
        yield role(entry.role, who_of(entry), role_trust(Party(entry.arn, shown(entry.external_id))))
    if deployment.iam_user:
        yield role("user", Who.VENDOR, None)
    if snowflake := snowflake_of(spec, deployment):
        yield role("snowflake-catalog", Who.CATALOG, snowflake_trust(snowflake.catalog, arns))
        yield role("snowflake-compute", Who.READER, snowflake_trust(snowflake.compute, arns))


def snowflake_of(spec: Spec, deployment: Deployment) -> Snowflake | None:
    """Open Catalog cannot do without its two roles, whatever is known of Snowflake yet."""
    return deployment.snowflake or (Snowflake() if spec.rest_service else None)


def snowflake_trust(principal: SnowflakePrincipal, arns: Arns) -> Document:
    """Closed until Snowflake has said who it is."""
    if principal.iam_user_arn is None:
        return closed_trust(arns)
    return role_trust(Party(principal.iam_user_arn, principal.external_id))
