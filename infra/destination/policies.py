"""What a role or user may do, attached as managed policies: one for each document of ``lakewriter.policy``."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.destination.reasons import reason
from infra.nag import acknowledge
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.roles import Role
from lakewriter.policy.statements import Document

LIMIT: Final = 6144
"""Characters of a managed policy without white space.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""


@dataclass(frozen=True)
class Declared:
    """One role as templates have it, and with tokens as people and cdk-nag read them."""

    role: Role
    readable: Role


class Permissions(Construct):
    """Managed policies ``S3``, ``Glue`` and so on, attached from their side to whom they are for."""

    def __init__(
        self, scope: Construct, id_: str, *, declared: Declared, path: str, identity: iam.Role | iam.User
    ) -> None:
        super().__init__(scope, id_)
        for name, document in declared.role.documents.items():
            readable = declared.readable.documents[name]
            _require_room(name, declared.role, readable)
            policy = iam.ManagedPolicy(
                self,
                name,
                description=f"{Stack.of(self).stack_name}: {name} for {declared.role.name}",
                document=iam.PolicyDocument.from_json(document),
                path=path,
                roles=[identity] if isinstance(identity, iam.Role) else None,
                users=[identity] if isinstance(identity, iam.User) else None,
            )
            for finding, why in wildcards(readable):
                acknowledge(policy, finding, why)


def wildcards(document: Document) -> Iterable[tuple[str, str]]:
    """cdk-nag's findings in a document of readable ARNs, spelt as it does, each once, with the reason."""
    found: dict[str, str] = {}
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            for kind in ("Action", "Resource"):
                for value in _starred(statement[kind]):
                    spelt = value.replace("${", "<").replace("}", ">")
                    found.setdefault(f"IAM5[{kind}::{spelt}]", reason(statement["Sid"]))
    return found.items()


def size(document: Mapping[str, object]) -> int:
    """As IAM counts."""
    return len(json.dumps(document, separators=(",", ":")))


def _starred(values: Sequence[str]) -> list[str]:
    return [value for value in values if "*" in value]


def _require_room(name: str, role: Role, document: Document) -> None:
    if size(document) > LIMIT:
        raise SpecInvalidError(
            f"policy {name!r} of {role.name!r} has {size(document)} characters, and IAM takes at most {LIMIT}.",
            remedy="Divide the tables over several files, or give their sources common folders.",
        )
