"""Describe how the stacks differ from those of a deployed assembly: replacements, permissions, outputs, capacity."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from infra.review.page import Cell, Code, Section, Strong, Table, make_codes
from infra.review.permissions import Holder, Statement, list_identities, list_protected_resources, list_unattached
from infra.review.sections import KEPT
from infra.review.templates import Resource, Template, Templates
from lakewriter.errors import SpecInvalidError

REPLACING: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::EMRServerless::Application": ("Name", "Type"),
    "AWS::Glue::Database": ("DatabaseName",),
    "AWS::IAM::AccessKey": ("Serial", "UserName"),
    "AWS::IAM::ManagedPolicy": ("Description", "ManagedPolicyName", "Path"),
    "AWS::IAM::Role": ("Path", "RoleName"),
    "AWS::IAM::User": ("UserName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::Scheduler::Schedule": ("Name",),
    "AWS::Scheduler::ScheduleGroup": ("Name",),
    "AWS::SecretsManager::Secret": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "StateMachineType"),
}
"""By type: the properties that CloudFormation cannot change, so that it replaces the resource.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
"""
APPLICATION: Final = "AWS::EMRServerless::Application"
ENDINGS: Final = ("-destination", "-pipeline")


def read_deployed(folder: Path) -> Templates:
    """Read the two stacks of the assembly in ``folder``, whatever its pipeline and stage are called."""
    try:
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
        stacks = [name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"]
        names = tuple(next(name for name in stacks if name.endswith(ending)) for ending in ENDINGS)
        return Templates.read(folder, names)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        raise SpecInvalidError(
            f"-c deployed={folder}: expected the folder of an assembly with a destination and a pipeline stack "
            f"({type(error).__name__}).",
            remedy="Give a copy of the cdk.out that was deployed last.",
        ) from error


def describe_changes(before: Templates, after: Templates) -> Section:
    """Describe the difference in tables; an empty difference in a sentence."""
    columns = ("", "Resource", "What", "How")
    tables = [
        Table(columns, tuple(_list_resources(before, after)), "Resources"),
        Table(("", "Who", "Actions", "On"), tuple(_list_permissions(before, after)), "Permissions"),
        Table(("Output", "Before", "After"), tuple(_list_outputs(before, after)), "What people outside have by name"),
        Table(
            ("", "Before", "After"), tuple(_list_capacity(before, after)), "The most at a time, which bounds the cost"
        ),
    ]
    changed = tuple(table for table in tables if table.rows)
    text = "Compared with the assembly of -c deployed." if changed else "Nothing: the stacks are as they are deployed."
    return Section("What changes", text, changed)


def list_notable(before: Templates, after: Templates) -> tuple[str, ...]:
    """List what nobody should overlook, a line each, for whoever runs synth."""
    return tuple(
        f"{_to_text(action)}: {_to_text(name)} ({_to_text(kind)}) {_to_text(how)}".strip()
        for action, name, kind, how in _list_resources(before, after)
        if isinstance(action, Strong)
    )


def require_stopped(before: Templates, after: Templates, stopped: Collection[str]) -> None:
    """Raise ``SPEC_INVALID`` if the pipeline stack has another name than the deployed one, which is not in ``stopped``.

    CloudFormation would leave the old stack as it is: its schedule or stream would load beside the new one's.
    """
    old, new = (templates.stacks[-1].stack for templates in (before, after))
    if old != new and old not in stopped:
        raise SpecInvalidError(
            f"-c deployed has the stack {old!r}, and this file makes {new!r} beside it: the old stack's schedule, "
            "stream and running loads would go on.",
            remedy=f"Keep the pipeline's and the stage's name; or stop the loads of {old!r} (disable its schedule, "
            f"stop its executions), and give deployment.stopped_stacks: [{old}].",
        )


def _list_resources(before: Templates, after: Templates) -> Iterator[tuple[Cell, Cell, Cell, Cell]]:
    for old, new in zip(before.stacks, after.stacks, strict=True):
        if old.stack != new.stack:
            how = f"{old.stack} stays as it is, with all it has; this is another stack beside it"
            yield Strong("new stack"), Code(new.stack), "Stack", how
            continue
        for name in dict.fromkeys((*old.body["Resources"], *new.body["Resources"])):
            if row := _compare(old, new, name):
                yield row


def _compare(old: Template, new: Template, name: str) -> tuple[Cell, Cell, Cell, Cell] | None:
    was, now = (_find(template, name) for template in (old, new))
    found = now or was
    if found is None or was == now:
        return None
    what: tuple[Cell, Cell] = (Code(name), found.type.removeprefix("AWS::").replace("::", " "))
    if was is None:
        return ("new", *what, "")
    if now is None:
        return (Strong("removed"), *what, "kept, and no longer the stack's" if was.deletion in KEPT else "deleted")
    changed = [
        key for key in {**was.properties, **now.properties} if was.properties.get(key) != now.properties.get(key)
    ]
    if lost := [key for key in changed if key in REPLACING.get(found.type, ())]:
        arn = "; whoever has its ARN has to get the new one" if found.type == "AWS::IAM::Role" else ""
        return (Strong("replaced"), *what, f"{', '.join(lost)}{arn}")
    return ("changed", *what, ", ".join(changed) or "what becomes of it on a destroy")


def _find(template: Template, name: str) -> Resource | None:
    return template.find_resource(name) if name in template.body["Resources"] else None


def _list_permissions(before: Templates, after: Templates) -> Iterator[tuple[Cell, Cell, Cell, Cell]]:
    old, new = (_list_statements(templates) for templates in (before, after))
    for sign, those, others in ((Strong("taken away"), old, new), (Strong("given"), new, old)):
        for holder, statement in those:
            if (holder, statement) not in others:
                denied = "Deny " if statement.effect == "Deny" else ""
                yield sign, Code(f"{denied}{holder}"), make_codes(*statement.actions), make_codes(*statement.resources)


def _list_statements(templates: Templates) -> list[tuple[str, Statement]]:
    holders: tuple[Holder, ...] = (
        *list_identities(templates),
        *list_unattached(templates),
        *list_protected_resources(templates),
    )
    return [(each.name.strip("<>"), statement) for each in holders for statement in (*each.trusts, *each.statements)]


def _list_outputs(before: Templates, after: Templates) -> Iterator[tuple[Cell, Cell, Cell]]:
    old, new = (_read_outputs(templates) for templates in (before, after))
    for label in dict.fromkeys((*old, *new)):
        if old.get(label) != new.get(label):
            yield label, Code(old.get(label, "none")), Code(new.get(label, "none"))


def _read_outputs(templates: Templates) -> dict[str, str]:
    return {
        output["Description"]: templates.resolve(output["Value"], template)
        for template in templates.stacks[:1]
        for output in template.body.get("Outputs", {}).values()
        if "Description" in output and "Export" not in output
    }


def _list_capacity(before: Templates, after: Templates) -> Iterator[tuple[Cell, Cell, Cell]]:
    old, new = (_read_capacity(templates) for templates in (before, after))
    for kind in ("Cpu", "Memory", "Disk"):
        if old.get(kind) != new.get(kind):
            yield kind, str(old.get(kind)), str(new.get(kind))


def _read_capacity(templates: Templates) -> Mapping[str, Any]:
    return next((each.properties["MaximumCapacity"] for _, each in templates.list_resources(APPLICATION)), {})


def _to_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else "" if isinstance(cell, tuple) else cell.text
