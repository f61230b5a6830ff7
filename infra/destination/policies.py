"""Attach managed policies to roles and users: one for each document of ``lakewriter.policy``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.nag import acknowledge
from infra.reasons import find_wildcard_reason
from lakewriter.policy.roles import Role
from lakewriter.policy.statements import Document


@dataclass(frozen=True)
class Declared:
    """One role with CDK tokens in its ARNs, for the template, and with readable names, for people and cdk-nag."""

    role: Role
    readable: Role


class Permissions(Construct):
    """The managed policies ``S3``, ``Glue`` and so on of one role or user."""

    def __init__(
        self, scope: Construct, id_: str, *, declared: Declared, path: str, identity: iam.IRole | iam.User
    ) -> None:
        super().__init__(scope, id_)
        for name, document in declared.role.documents.items():
            readable = declared.readable.documents[name]
            policy = iam.ManagedPolicy(
                self,
                name,
                description=f"{Stack.of(self).stack_name}: {name} for {declared.role.name}",
                document=iam.PolicyDocument.from_json(document),
                path=path,
                roles=None if isinstance(identity, iam.User) else [identity],
                users=[identity] if isinstance(identity, iam.User) else None,
            )
            for finding, why in find_wildcards(readable):
                acknowledge(policy, finding, why)


def find_wildcards(document: Document) -> Iterable[tuple[str, str]]:
    """Find the wildcards in a document of readable ARNs: each once, as cdk-nag spells it, with its reason."""
    reasons: dict[str, str] = {}
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            for kind in ("Action", "Resource"):
                for value in _select_wildcards(statement[kind]):
                    spelt = value.replace("${", "<").replace("}", ">")
                    reasons.setdefault(f"IAM5[{kind}::{spelt}]", find_wildcard_reason(statement["Sid"]))
    return reasons.items()


def _select_wildcards(values: Sequence[str]) -> list[str]:
    return [value for value in values if "*" in value]
