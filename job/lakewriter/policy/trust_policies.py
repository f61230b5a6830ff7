"""Make trust policies, with one statement for each party that may assume the role."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from lakewriter.policy.arns import Arns, name_principal
from lakewriter.policy.statements import Document, Statement, make_document
from lakewriter.spec.trust import PodIdentity, WebIdentity

SERVICE = name_principal("emr-serverless")
PARTY: Final = "TrustParty"
"""Begins the names of statements that let in a party of ``deployment.trust``, or Snowflake."""
OPTIMIZER_SERVICE = name_principal("glue")
SERVICES: Final[Mapping[str, tuple[str, ...]]] = {"redshift": ("redshift", "redshift-serverless")}
"""The services of AWS that take the role of each ``service`` of ``deployment.trust``."""


class Principal(NamedTuple):
    """A principal outside this account, and the external ids of which it alone must present one."""

    arn: str
    external_ids: tuple[str, ...]


def make_job_trust(arns: Arns, *, conditions: bool = True) -> Document:
    """Trust EMR Serverless for this account's applications in this region; for any account without ``conditions``."""
    statement: Statement = {
        "Sid": "TrustEmrServerless",
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": "sts:AssumeRole",
    }
    if conditions:
        statement["Condition"] = {
            "StringEquals": {"aws:SourceAccount": arns.account},
            "ArnLike": {"aws:SourceArn": arns.applications()},
        }
    return make_document([statement])


def make_optimizer_trust() -> Document:
    """Trust Glue, to which nobody can pass the role but from this account.

    https://docs.aws.amazon.com/glue/latest/dg/optimization-prerequisites.html
    """
    principal = {"Service": OPTIMIZER_SERVICE}
    trusted = {"Sid": "TrustGlue", "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return make_document([trusted])


def make_service_trust(service: str, external_ids: Sequence[str]) -> Document:
    """Trust a service of AWS, to which nobody can pass the role but from this account; its users by ``external_ids``,
    all of them without any.

    https://docs.aws.amazon.com/redshift/latest/mgmt/authorizing-redshift-service-database-users.html
    """
    trusted: Statement = {
        "Sid": "TrustService",
        "Effect": "Allow",
        "Principal": {"Service": [name_principal(name) for name in SERVICES[service]]},
        "Action": "sts:AssumeRole",
    }
    if external_ids:
        trusted["Condition"] = {"StringEquals": {"sts:ExternalId": list(external_ids)}}
    return make_document([trusted])


def make_role_trust(*parties: Principal) -> Document:
    """Trust each party in its own statement: in a shared one each could use the others' external ids."""
    return make_document(_trust_party(number, party) for number, party in enumerate(parties, start=1))


def make_pod_trust(pods: PodIdentity) -> Document:
    """Trust EKS Pod Identity for the pods of one service account in one cluster, by the tags of their sessions.

    https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html,
    https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
    """
    tags = {
        "eks-cluster-arn": pods.cluster,
        "kubernetes-namespace": pods.namespace,
        "kubernetes-service-account": pods.service_account,
    }
    statement = {
        "Sid": f"{PARTY}1",
        "Effect": "Allow",
        "Principal": {"Service": name_principal("pods.eks")},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {f"aws:RequestTag/{tag}": value for tag, value in tags.items()}},
    }
    return make_document([statement])


def make_web_identity_trust(pods: WebIdentity) -> Document:
    """Trust the tokens of one service account, issued for STS by the cluster's OpenID Connect provider.

    https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html
    """
    claims = {
        f"{pods.issuer}:aud": name_principal("sts"),
        f"{pods.issuer}:sub": f"system:serviceaccount:{pods.namespace}:{pods.service_account}",
    }
    statement = {
        "Sid": f"{PARTY}1",
        "Effect": "Allow",
        "Principal": {"Federated": pods.provider},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": claims},
    }
    return make_document([statement])


def make_closed_trust(arns: Arns) -> Document:
    """Trust nobody yet: a trust policy must name a principal, and the intended one is not known, so deny the root."""
    return make_document(
        [
            {
                "Sid": "NobodyYet",
                "Effect": "Deny",
                "Principal": {"AWS": arns.root()},
                "Action": "sts:AssumeRole",
            }
        ]
    )


def _trust_party(number: int, party: Principal) -> Statement:
    first, *others = party.external_ids
    return {
        "Sid": f"{PARTY}{number}",
        "Effect": "Allow",
        "Principal": {"AWS": party.arn},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": [first, *others] if others else first}},
    }
