"""Who may do what on which resource: every statement of the templates, under whoever it speaks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.review.reasons import reason
from infra.review.templates import Resource, Template, Templates

IDENTITIES: Final = ("AWS::IAM::Role", "AWS::IAM::User")
ATTACHED: Final = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
RESOURCE_POLICIES: Final = {
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::KMS::Key": ("KeyPolicy", None),
}
"""By type: the property with the document, and the one that names what it protects."""


@dataclass(frozen=True)
class Statement:
    """One statement, its references followed; ``principals`` only in trust and resource policies."""

    effect: str
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    """Operator and key such as ``StringEquals sts:ExternalId``, and the values."""
    reason: str


@dataclass(frozen=True)
class Holder:
    """A role or user with what it may do and who may take it, or a resource with its own policy."""

    name: str
    kind: str
    description: str
    trusts: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    attached: tuple[str, ...] = ()
    """Managed policies of others, by ARN."""
    boundary: str = ""
    """The policy beyond which nothing is allowed, by ARN."""


def identities(templates: Templates) -> tuple[Holder, ...]:
    """Roles and users, in the order of the templates."""
    found = []
    for kind in IDENTITIES:
        for template, resource in templates.resources(kind):
            found.append(_identity(templates, template, resource))
    return tuple(found)


def unattached(templates: Templates) -> tuple[Holder, ...]:
    """Policies that the owner of a role from elsewhere has to attach."""
    return tuple(
        Holder(
            policy.name,
            "Policy",
            templates.text(policy.properties.get("Description", ""), template),
            (),
            tuple(_statements(templates, template, policy.properties["PolicyDocument"])),
        )
        for template, policy in templates.resources("AWS::IAM::ManagedPolicy")
        if not (policy.properties.get("Roles") or policy.properties.get("Users"))
    )


def lake_formation(templates: Templates) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Grants: to whom, on which database or tables, and which permissions."""
    found = []
    for template, grant in templates.resources("AWS::LakeFormation::PrincipalPermissions"):
        who = templates.text(grant.properties["Principal"]["DataLakePrincipalIdentifier"], template)
        on = grant.properties["Resource"]
        database, tables = on.get("Database"), on.get("Table")
        target = f"database {database['Name']}" if database else f"all tables of {tables['DatabaseName']}"
        found.append((who, target, templates.texts(grant.properties["Permissions"], template)))
    return tuple(found)


def protected_resources(templates: Templates) -> tuple[Holder, ...]:
    """Buckets, queues, topics and keys that say themselves who may use them."""
    found = []
    for kind, (document, protects) in RESOURCE_POLICIES.items():
        for template, resource in templates.resources(kind):
            of = resource.properties[protects] if protects else {"Ref": resource.id}
            name = ", ".join(templates.texts(of, template))
            statements = tuple(_statements(templates, template, resource.properties[document]))
            found.append(Holder(name, kind.split("::")[1], "", (), statements))
    return tuple(found)


def _identity(templates: Templates, template: Template, resource: Resource) -> Holder:
    properties = resource.properties
    own = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
    statements = [each for document in own for each in _statements(templates, template, document)]
    for other, policy in _attached(templates, template, resource):
        statements += _statements(templates, other, policy.properties["PolicyDocument"])
    trust = properties.get("AssumeRolePolicyDocument")
    return Holder(
        name=resource.name,
        kind=resource.type.rpartition("::")[2],
        description=templates.text(properties.get("Description", ""), template),
        trusts=tuple(_statements(templates, template, trust)) if trust else (),
        statements=tuple(statements),
        attached=templates.texts(properties.get("ManagedPolicyArns", []), template),
        boundary=templates.text(properties.get("PermissionsBoundary", ""), template),
    )


def _attached(templates: Templates, home: Template, holder: Resource) -> Iterator[tuple[Template, Resource]]:
    """Policies that name ``holder``, in its own stack by reference, in another by its name."""
    field = "Roles" if holder.type == "AWS::IAM::Role" else "Users"
    for kind in ATTACHED:
        for template, policy in templates.resources(kind):
            named = policy.properties.get(field, ())
            if holder.name in (templates.text(each, template) for each in named):
                yield template, policy


def _statements(templates: Templates, template: Template, document: Mapping[str, Any]) -> Iterator[Statement]:
    for statement in document["Statement"]:
        yield Statement(
            effect=statement["Effect"],
            principals=tuple(_principals(templates, template, statement.get("Principal", {}))),
            actions=templates.texts(statement["Action"], template),
            resources=templates.texts(statement.get("Resource", []), template),
            conditions=tuple(_conditions(templates, template, statement.get("Condition", {}))),
            reason=reason(statement),
        )


def _principals(templates: Templates, template: Template, principal: Any) -> Iterator[str]:
    if isinstance(principal, str):
        yield "anyone" if principal == "*" else principal
        return
    for values in principal.values():
        yield from ("anyone" if each == "*" else each for each in templates.texts(values, template))


def _conditions(
    templates: Templates, template: Template, conditions: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for operator, keys in conditions.items():
        for key, values in keys.items():
            yield f"{operator} {key}", templates.texts(values, template)
