"""Collect every policy statement of the templates by the role, user or resource that it applies to."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.reasons import REASONS, find_reason
from infra.review.templates import Resource, Template, Templates
from lakewriter.policy.arns import name_principal

ANYONE: Final = "anyone"
IDENTITIES: Final = ("AWS::IAM::Role", "AWS::IAM::User")
ATTACHED: Final = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
RESOURCE_POLICIES: Final = {
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::KMS::Key": ("KeyPolicy", None),
}
"""Maps a type to the property with the document, and the one that names what it protects."""


@dataclass(frozen=True)
class Statement:
    """One statement with resolved references; only trust and resource policies have ``principals``."""

    effect: str
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    """Operator and key such as ``StringEquals sts:ExternalId``, and the values."""
    reason: str
    sid: str = ""


@dataclass(frozen=True)
class Holder:
    """A role or user with its permissions and its trust policy, or a resource with its own policy."""

    name: str
    kind: str
    description: str
    trusts: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    attached: tuple[str, ...] = ()
    """Managed policies of others, by ARN."""
    boundary: str = ""
    """The policy beyond which nothing is allowed, by ARN."""
    is_made: bool = True
    """False for what no stack makes: it may have policies of others."""

    @property
    def is_identity(self) -> bool:
        """Return True for a role or user."""
        return self.kind in {"Role", "User"}


def list_identities(templates: Templates) -> tuple[Holder, ...]:
    """List roles and users in the order of the templates, and then the roles of machines that get policies."""
    made = tuple(
        _make_holder(templates, template, resource)
        for kind in IDENTITIES
        for template, resource in templates.list_resources(kind)
    )
    return (*made, *list_hosts(templates))


def list_hosts(templates: Templates) -> tuple[Holder, ...]:
    """List the roles that policies are attached to by name and that no stack makes; what else they may is not known."""
    made = {resource.name for _, resource in templates.list_resources("AWS::IAM::Role")}
    statements: dict[str, list[Statement]] = {}
    for template, policy in templates.list_resources("AWS::IAM::ManagedPolicy"):
        for name in templates.resolve_all(policy.properties.get("Roles", []), template):
            if name not in made:
                document = policy.properties["PolicyDocument"]
                statements.setdefault(name, []).extend(list_statements(templates, template, document))
    return tuple(
        Holder(name, "Role", "of a machine", (), tuple(has), is_made=False) for name, has in statements.items()
    )


def list_unattached(templates: Templates) -> tuple[Holder, ...]:
    """List the policies that the owner of an existing role has to attach."""
    return tuple(
        Holder(
            policy.name,
            "Policy",
            templates.resolve(policy.properties.get("Description", ""), template),
            (),
            tuple(list_statements(templates, template, policy.properties["PolicyDocument"])),
        )
        for template, policy in templates.list_resources("AWS::IAM::ManagedPolicy")
        if not (policy.properties.get("Roles") or policy.properties.get("Users"))
    )


def list_grants(templates: Templates) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """List Lake Formation's grants: principal, database or tables, by name or by LF-tags, and permissions."""
    grants = []
    for template, grant in templates.list_resources("AWS::LakeFormation::PrincipalPermissions"):
        who = templates.resolve(grant.properties["Principal"]["DataLakePrincipalIdentifier"], template)
        on = grant.properties["Resource"]
        grants.append((who, _name_target(on), templates.resolve_all(grant.properties["Permissions"], template)))
    return tuple(grants)


def _name_target(resource: Mapping[str, Any]) -> str:
    if database := resource.get("Database"):
        return f"database {database['Name']}"
    if policy := resource.get("LFTagPolicy"):
        tags = " and ".join(f"{tag['TagKey']}={' or '.join(tag['TagValues'])}" for tag in policy["Expression"])
        return f"every {policy['ResourceType'].lower()} with {tags}"
    return f"all tables of {resource['Table']['DatabaseName']}"


def list_protected_resources(templates: Templates) -> tuple[Holder, ...]:
    """List buckets, queues, topics and keys that have a resource policy."""
    holders = []
    for kind, (document, protects) in RESOURCE_POLICIES.items():
        for template, resource in templates.list_resources(kind):
            of = resource.properties[protects] if protects else {"Ref": resource.id}
            name = ", ".join(templates.resolve_all(of, template))
            statements = tuple(list_statements(templates, template, resource.properties[document]))
            holders.append(Holder(name, kind.split("::")[1], "", (), statements))
    return tuple(holders)


def _make_holder(templates: Templates, template: Template, resource: Resource) -> Holder:
    properties = resource.properties
    statements: list[Statement] = []
    for inline in properties.get("Policies", ()):
        statements += list_statements(templates, template, inline["PolicyDocument"])
    for other, policy in _find_attached(templates, resource):
        statements += list_statements(templates, other, policy.properties["PolicyDocument"])
    trust = properties.get("AssumeRolePolicyDocument")
    return Holder(
        name=resource.name,
        kind=resource.type.rpartition("::")[2],
        description=templates.resolve(properties.get("Description", ""), template),
        trusts=tuple(list_statements(templates, template, trust)) if trust else (),
        statements=tuple(statements),
        attached=templates.resolve_all(properties.get("ManagedPolicyArns", []), template),
        boundary=templates.resolve(properties.get("PermissionsBoundary", ""), template),
    )


def _find_attached(templates: Templates, holder: Resource) -> Iterator[tuple[Template, Resource]]:
    """Find the policies attached to ``holder``: by reference in its own stack, by name in another."""
    field = "Roles" if holder.type == "AWS::IAM::Role" else "Users"
    for kind in ATTACHED:
        for template, policy in templates.list_resources(kind):
            named = policy.properties.get(field, ())
            if holder.name in (templates.resolve(reference, template) for reference in named):
                yield template, policy


def list_statements(templates: Templates, template: Template, document: Mapping[str, Any]) -> Iterator[Statement]:
    for statement in document["Statement"]:
        yield Statement(
            effect=statement["Effect"],
            principals=tuple(_list_principals(templates, template, statement.get("Principal", {}))),
            actions=templates.resolve_all(statement["Action"], template),
            resources=templates.resolve_all(statement.get("Resource", []), template),
            sid=statement.get("Sid", ""),
            conditions=tuple(_list_conditions(templates, template, statement.get("Condition", {}))),
            reason=find_statement_reason(statement),
        )


def _list_principals(templates: Templates, template: Template, principal: Any) -> Iterator[str]:
    if isinstance(principal, str):
        yield ANYONE if principal == "*" else principal
        return
    for values in principal.values():
        yield from (ANYONE if principal == "*" else principal for principal in templates.resolve_all(values, template))


def _list_conditions(
    templates: Templates, template: Template, conditions: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for operator, keys in conditions.items():
        for key, values in keys.items():
            yield f"{operator} {key}", templates.resolve_all(values, template)


Raw = Mapping[str, Any]


def _list_actions(statement: Raw) -> list[str]:
    actions = statement["Action"]
    return actions if isinstance(actions, list) else [actions]


def _read_service(statement: Raw) -> str:
    principal = statement.get("Principal", {})
    return str(principal.get("Service", "")) if isinstance(principal, dict) else ""


def _is_tls_denial(statement: Raw) -> bool:
    return statement["Effect"] == "Deny" and "aws:SecureTransport" in statement.get("Condition", {}).get("Bool", {})


def _is_own_account(statement: Raw) -> bool:
    return _list_actions(statement) == ["kms:*"] and "AWS" in statement.get("Principal", {})


def _is_access_log_delivery(statement: Raw) -> bool:
    return _read_service(statement) == name_principal("logging.s3")


def _is_secret_key(statement: Raw) -> bool:
    through = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", "")
    return str(through).startswith("secretsmanager.")


def _is_bucket_emptying(statement: Raw) -> bool:
    return "s3:PutBucketPolicy" in _list_actions(statement)


def _is_service_role(statement: Raw) -> bool:
    return _list_actions(statement) == ["sts:AssumeRole"] and bool(_read_service(statement))


GENERATED: Final[tuple[tuple[Callable[[Raw], bool], str], ...]] = (
    (_is_tls_denial, REASONS["RequireTls"].statement),
    (_is_own_account, "The account's own IAM policies decide who else may use the key."),
    (_is_service_role, "This service of AWS does its work with the role."),
    (_is_secret_key, "Secrets Manager keeps the vendor user's access key under this key."),
    (_is_bucket_emptying, "deployment.destroy_data is on: a destroy empties the bucket first."),
    (_is_access_log_delivery, "S3 delivers the lake's access logs."),
)
"""The reasons for statements that CDK's own constructs make, which have no id."""


def find_statement_reason(statement: Raw) -> str:
    """Find the reason for ``statement``; blank if none is recorded."""
    named = find_reason(str(statement.get("Sid", "")))
    return named.statement if named else next((why for fits, why in GENERATED if fits(statement)), "")
