"""What the templates create, who may use it, and what becomes of it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from infra.review.page import Cell, Code, Line, Section, Strong, Table, codes
from infra.review.permissions import Holder, Statement, lake_formation
from infra.review.templates import Resource, Templates

EXTERNAL_ID: Final = "StringEquals sts:ExternalId"
KEPT: Final = {"Retain", "RetainExceptOnCreate"}
EMPTYING: Final = "Custom::S3AutoDeleteObjects"
LOSSES: Final = {
    "AWS::Glue::Database": "deleted with its tables; their files stay",
    "AWS::KMS::Key": "scheduled for deletion: after that, nothing encrypted with it can be read",
    "AWS::Logs::LogGroup": "deleted with its logs",
    "AWS::S3::Bucket": "deleted if it is empty; otherwise the destroy stops here",
    "AWS::SQS::Queue": "deleted with the starts in it that could not be delivered",
    "AWS::SecretsManager::Secret": "deleted; the key in it stops working",
}
"""What deleting a resource of each type that holds something comes to."""
STATEMENT: Final = ("Actions", "On", "Only if", "Why")


def outside(holders: Sequence[Holder]) -> Section:
    """Principals of other accounts, each with the external id it has to show."""
    rows: list[tuple[Cell, ...]] = [
        (Code(_plain(holder.name)), codes(*statement.principals), _external_id(statement), statement.reason)
        for holder in holders
        for statement in holder.trusts
        if not _of_aws(statement)
    ]
    users = [_plain(holder.name) for holder in holders if holder.kind == "User"]
    rows += [(Code(user), "whoever has its access key", "none", "deployment.iam_user is on.") for user in users]
    text = "Each has a role of its own, and takes it with the external id beside it." if rows else "Nobody."
    tables = (Table(("Role", "Principal", "External id", "Why"), tuple(rows)),) if rows else ()
    return Section("Who from outside may come in", text, tables)


def _of_aws(statement: Statement) -> bool:
    return all(principal.endswith((".amazonaws.com", ".amazonaws.com.cn")) for principal in statement.principals)


def _external_id(statement: Statement) -> Cell:
    if statement.effect == "Deny":
        return "denied to everybody"
    found = dict(statement.conditions).get(EXTERNAL_ID)
    return codes(*found) if found else "none"


def permissions(holders: Sequence[Holder], templates: Templates) -> Section:
    """One table for each role and user, and one for Lake Formation's grants."""
    grants = [(Code(who), on, codes(*granted)) for who, on, granted in lake_formation(templates)]
    table = Table(("Who", "On", "Permissions"), tuple(grants), "Grants in Lake Formation")
    return Section(
        "Who may do what",
        "Every statement of every policy, with its references followed. What AWS names is in <angle brackets>.",
        (*(_holder(holder) for holder in holders), *([table] if grants else [])),
    )


def resource_policies(holders: Sequence[Holder]) -> Section:
    """One table for each resource that has a policy of its own."""
    tables = tuple(
        Table(
            ("", "Who", *STATEMENT),
            tuple((_effect(each), codes(*each.principals), *_what(each)) for each in holder.statements),
            f"{_plain(holder.name)} ({holder.kind})",
            (5, 15, 20, 24, 20, 16),
        )
        for holder in holders
    )
    return Section("What the resources themselves refuse and allow", "These hold whatever a role allows.", tables)


def _holder(holder: Holder) -> Table:
    taken_by = [who for statement in holder.trusts if statement.effect == "Allow" for who in statement.principals]
    taken = f", taken by {' and '.join(taken_by) or 'nobody yet'}" if holder.trusts else ""
    described = f": {holder.description}" if holder.description else ""
    bounded = f", bounded by {holder.boundary}" if holder.boundary else ""
    rows = [(_effect(each), *_what(each)) for each in holder.statements]
    rows += [
        ("Allow", Code("whatever it allows"), Code(arn), "", "A managed policy of AWS.") for arn in holder.attached
    ]
    caption = f"{holder.kind} {_plain(holder.name)}{described}{taken}{bounded}"
    return Table(("", *STATEMENT), tuple(rows), caption, (5, 23, 34, 20, 18))


def _effect(statement: Statement) -> Cell:
    return Strong("Deny") if statement.effect == "Deny" else statement.effect


def _what(statement: Statement) -> tuple[Cell, ...]:
    conditions: list[Line] = []
    for name, values in statement.conditions:
        conditions += [name, *map(Code, values)]
    return codes(*statement.actions), codes(*statement.resources), tuple(conditions), statement.reason


def resources(templates: Templates) -> Section:
    """One table for each stack."""
    tables = []
    for template in templates.stacks:
        rows = [(Code(_plain(each.name)), _kind(each), _fate(each, ())) for each in template.resources()]
        tables.append(Table(("Name", "What", "On a destroy"), tuple(rows), f"{template.stack}: {len(rows)} resources"))
    return Section("What is created", "What has no name of its own stands under its logical id.", tuple(tables))


def destroy(templates: Templates) -> Section:
    """What holds data or a secret, and whether it outlives its stack."""
    emptied = {
        templates.text(each.properties["BucketName"], template) for template, each in templates.resources(EMPTYING)
    }
    rows = [
        (Code(_plain(each.name)), _kind(each), each.stack, _fate(each, emptied))
        for _, each in templates.resources()
        if each.type in LOSSES
    ]
    protected = [template.stack for template in templates.stacks if template.protected]
    guard = f"CloudFormation refuses to delete {' and '.join(protected)}." if protected else "No stack is protected."
    others = sum(each.type not in LOSSES and each.deletion not in KEPT for _, each in templates.resources())
    text = f"{guard} Beside what follows, the stacks have {others} resources that go with them; none holds data."
    return Section(
        "What a destroy would delete", text, (Table(("Name", "What", "Stack", "On a destroy"), tuple(rows)),)
    )


def _fate(resource: Resource, emptied: Collection[str]) -> str:
    if resource.deletion in KEPT:
        return "kept"
    if resource.name in emptied:
        return "deleted with every object in it"
    return LOSSES.get(resource.type, "deleted")


def outputs(templates: Templates) -> Section:
    """What a person types into other systems, by the labels they have there."""
    rows = [
        (output["Description"], Code(templates.text(output["Value"], template)))
        for template in templates.stacks
        for output in template.body.get("Outputs", {}).values()
        if "Description" in output and "Export" not in output
    ]
    text = "Under the labels of the vendor's form, where it has such a field."
    return Section("Outputs of the stacks", text, (Table((), tuple(rows)),))


def acknowledged(found: Mapping[tuple[str, str], Sequence[str]]) -> Section:
    """Findings of cdk-nag that are meant: by finding and reason, where."""
    rows = [(Code(rule), reason, codes(*places)) for (rule, reason), places in found.items()]
    tables = (Table(("Finding", "Why it is meant", "Where"), tuple(rows)),) if rows else ()
    return Section(
        "Findings of cdk-nag that are acknowledged", "Every other rule of its AwsSolutions pack holds.", tables
    )


def _kind(resource: Resource) -> str:
    return " ".join(resource.type.split("::")[1:])


def _plain(name: str) -> str:
    return name.strip("<>")
