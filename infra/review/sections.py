"""Describe the templates' resources, who may use them, and which of them a destroy deletes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from infra.review.page import Cell, Code, Line, Section, Strong, Table, make_codes
from infra.review.permissions import Holder, Statement, list_grants
from infra.review.templates import Resource, Templates
from lakewriter.policy.arns import is_service
from lakewriter.policy.trust_policies import PARTY

HOST_REASON: Final = "lake.yaml names the role of the machine that this party runs on."
EXTERNAL_ID: Final = "StringEquals sts:ExternalId"
RETAINED: Final = {"Retain", "RetainExceptOnCreate"}
EMPTYING: Final = "Custom::S3AutoDeleteObjects"
LOSSES: Final = {
    "AWS::Glue::Database": "deleted with its tables; their files stay",
    "AWS::IAM::Role": "deleted with its policies: holders of its ARN lose access, and a new one has another ARN",
    "AWS::IAM::User": "deleted with its policies and its access key",
    "AWS::KMS::Key": "scheduled for deletion: after that, nothing encrypted with it can be read",
    "AWS::Logs::LogGroup": "deleted with its logs",
    "AWS::S3::Bucket": "deleted if it is empty; otherwise the destroy stops here",
    "AWS::S3Tables::Namespace": "deleted if it has no table; otherwise the destroy stops here",
    "AWS::S3Tables::TableBucket": "deleted if it is empty; otherwise the destroy stops here",
    "AWS::SQS::Queue": "deleted with the starts in it that could not be delivered",
    "AWS::SecretsManager::Secret": "deleted; the key in it stops working",
}
"""The effect of deleting a resource, by type, for types that hold data or a secret."""
STATEMENT: Final = ("Actions", "On", "Only if", "Why")


def describe_outsiders(holders: Sequence[Holder], hosts: Sequence[Holder] = ()) -> Section:
    """Describe the parties of the file, each with what it has to present; ``hosts`` are roles that are there."""
    rows: list[tuple[Cell, ...]] = [
        (
            Code(_strip_brackets(holder.name)),
            make_codes(*statement.principals),
            _describe_external_id(statement),
            statement.reason,
        )
        for holder in holders
        for statement in holder.trusts
        if statement.sid.startswith(PARTY) or not _is_aws(statement)
    ]
    rows += [(Code(host.name), "the machine that has the role", "none", HOST_REASON) for host in hosts]
    users = [_strip_brackets(holder.name) for holder in holders if holder.kind == "User"]
    rows += [(Code(user), "holders of its access key", "none", "deployment.iam_user is on.") for user in users]
    text = "Each has a role of its own, and takes it with what is beside it." if rows else "Nobody."
    tables = (Table(("Role", "Principal", "External id", "Why"), tuple(rows)),) if rows else ()
    return Section("Who from outside may come in", text, tables)


def _is_aws(statement: Statement) -> bool:
    return all(map(is_service, statement.principals))


def _describe_external_id(statement: Statement) -> Cell:
    if statement.effect == "Deny":
        return "denied to everybody"
    ids = dict(statement.conditions).get(EXTERNAL_ID)
    if ids:
        return make_codes(*ids)
    required = [f"{name.partition(' ')[2]} = {' or '.join(values)}" for name, values in statement.conditions]
    return ("none", *map(Code, required)) if required else "none"


def describe_permissions(holders: Sequence[Holder], templates: Templates) -> Section:
    """Describe permissions: one table for each role and user, and one for Lake Formation's grants."""
    grants = [(Code(who), on, make_codes(*granted)) for who, on, granted in list_grants(templates)]
    table = Table(("Who", "On", "Permissions"), tuple(grants), "Grants in Lake Formation")
    return Section(
        "Who may do what",
        "Every statement of every policy, with its references followed. What AWS names is in <angle brackets>.",
        (*(_make_holder_table(holder) for holder in holders), *([table] if grants else [])),
    )


def describe_resource_policies(holders: Sequence[Holder]) -> Section:
    """Describe resource policies: one table for each resource that has one."""
    tables = tuple(
        Table(
            ("", "Who", *STATEMENT),
            tuple(
                (_render_effect(statement), make_codes(*statement.principals), *_render_statement(statement))
                for statement in holder.statements
            ),
            f"{_strip_brackets(holder.name)} ({holder.kind})",
            (5, 15, 20, 24, 20, 16),
        )
        for holder in holders
    )
    return Section("What the resources themselves refuse and allow", "These hold whatever a role allows.", tables)


def _make_holder_table(holder: Holder) -> Table:
    taken_by = [who for statement in holder.trusts if statement.effect == "Allow" for who in statement.principals]
    taken = f", taken by {' and '.join(taken_by) or 'nobody yet'}" if holder.trusts else ""
    described = f": {holder.description}" if holder.description else ""
    bounded = f", bounded by {holder.boundary}" if holder.boundary else ""
    rows = [(_render_effect(statement), *_render_statement(statement)) for statement in holder.statements]
    rows += [
        ("Allow", Code("whatever it allows"), Code(arn), "", "A managed policy of AWS.") for arn in holder.attached
    ]
    caption = f"{holder.kind} {_strip_brackets(holder.name)}{described}{taken}{bounded}"
    return Table(("", *STATEMENT), tuple(rows), caption, (5, 23, 34, 20, 18))


def _render_effect(statement: Statement) -> Cell:
    return Strong("Deny") if statement.effect == "Deny" else statement.effect


def _render_statement(statement: Statement) -> tuple[Cell, ...]:
    conditions: list[Line] = []
    for name, values in statement.conditions:
        conditions += [name, *map(Code, values)]
    return make_codes(*statement.actions), make_codes(*statement.resources), tuple(conditions), statement.reason


def describe_resources(templates: Templates) -> Section:
    """Describe the resources: one table for each stack."""
    tables = []
    for template in templates.stacks:
        rows = [
            (Code(_strip_brackets(resource.name)), _name_kind(resource), _describe_fate(resource, ()))
            for resource in template.list_resources()
        ]
        tables.append(Table(("Name", "What", "On a destroy"), tuple(rows), f"{template.stack}: {len(rows)} resources"))
    return Section("What is created", "What has no name of its own is listed by its logical id.", tuple(tables))


def describe_destroy(templates: Templates) -> Section:
    """Describe which resources hold data or a secret, and whether a destroy deletes them."""
    emptied = {
        templates.resolve(resource.properties["BucketName"], template)
        for template, resource in templates.list_resources(EMPTYING)
    }
    rows = [
        (Code(_strip_brackets(resource.name)), _name_kind(resource), resource.stack, _describe_fate(resource, emptied))
        for _, resource in templates.list_resources()
        if resource.type in LOSSES
    ]
    protected = [template.stack for template in templates.stacks if template.protected]
    guard = f"CloudFormation refuses to delete {' and '.join(protected)}." if protected else "No stack is protected."
    others = sum(
        resource.type not in LOSSES and resource.deletion not in RETAINED for _, resource in templates.list_resources()
    )
    text = f"{guard} Beside what follows, the stacks have {others} resources that go with them; none holds data."
    return Section(
        "What a destroy would delete", text, (Table(("Name", "What", "Stack", "On a destroy"), tuple(rows)),)
    )


def _describe_fate(resource: Resource, emptied: Collection[str]) -> str:
    if resource.deletion in RETAINED:
        return "kept"
    if resource.name in emptied:
        return "deleted with every object in it"
    return LOSSES.get(resource.type, "deleted")


def describe_outputs(templates: Templates) -> Section:
    """Describe the outputs that people type into other systems."""
    rows = [
        (output["Description"], Code(templates.resolve(output["Value"], template)))
        for template in templates.stacks
        for output in template.body.get("Outputs", {}).values()
        if "Description" in output and "Export" not in output
    ]
    text = "Under the labels of the vendor's form, where it has such a field."
    return Section("Outputs of the stacks", text, (Table((), tuple(rows)),))


def describe_acknowledged(acknowledged: Mapping[tuple[str, str], Sequence[str]]) -> Section:
    """Describe cdk-nag's acknowledged findings: rule, reason, constructs."""
    rows = [(Code(rule), reason, make_codes(*constructs)) for (rule, reason), constructs in acknowledged.items()]
    tables = (Table(("Finding", "Why it is meant", "Where"), tuple(rows)),) if rows else ()
    return Section(
        "Findings of cdk-nag that are acknowledged", "Every other rule of its AwsSolutions pack holds.", tables
    )


def _name_kind(resource: Resource) -> str:
    return " ".join(resource.type.split("::")[1:])


def _strip_brackets(name: str) -> str:
    return name.strip("<>")
