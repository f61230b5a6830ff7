"""Describe how the stacks differ from those of a deployed assembly, the most harmful changes first."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from infra.review.harms import (
    MEANINGS,
    NEW,
    NOTABLE,
    TYPES,
    Change,
    Harm,
    Sides,
    compare_statements,
    judge_property,
)
from infra.review.page import Cell, Code, Section, Table, make_codes
from infra.review.permissions import (
    IDENTITIES,
    RESOURCE_POLICIES,
    Holder,
    Statement,
    list_grants,
    list_identities,
    list_protected_resources,
    list_statements,
    list_unattached,
)
from infra.review.sections import LOSSES, RETAINED
from infra.review.templates import NAMES, Resource, Template, Templates, find_stacks
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import is_service

REPLACING: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::Budgets::Budget": ("NotificationsWithSubscribers",),
    "AWS::EMRServerless::Application": ("Name", "Type"),
    "AWS::Glue::Database": ("DatabaseName",),
    "AWS::IAM::AccessKey": ("Serial", "UserName"),
    "AWS::IAM::ManagedPolicy": ("Description", "ManagedPolicyName", "Path"),
    "AWS::IAM::Role": ("Path", "RoleName"),
    "AWS::IAM::User": ("UserName",),
    "AWS::LakeFormation::Tag": ("TagKey",),
    "AWS::LakeFormation::TagAssociation": ("Resource",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::S3Tables::Namespace": ("Namespace", "TableBucketARN"),
    "AWS::S3Tables::TableBucket": ("TableBucketName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::Scheduler::Schedule": ("Name",),
    "AWS::Scheduler::ScheduleGroup": ("Name",),
    "AWS::SecretsManager::Secret": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "StateMachineType"),
}
"""Maps a type to the properties that CloudFormation cannot change, so that it replaces the resource.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
"""
APPLICATION: Final = "AWS::EMRServerless::Application"
ACCESS_KEY: Final = "AWS::IAM::AccessKey"
SECRET: Final = "AWS::SecretsManager::Secret"
OF_IDENTITIES: Final = (
    ACCESS_KEY,
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::LakeFormation::PrincipalPermissions",
)
HELD_BY: Final = ("Roles", "Users", "UserName", "Principal")
"""The properties of these types that name whose they are."""
ENDINGS: Final = ("-destination", "-pipeline")
MOST_VALUES: Final = 8
"""Values of a resource that are shown; a state machine's definition differs in hundreds."""
LONGEST: Final = 160
DOCUMENTS: Final = {"AWS::IAM::Role": "AssumeRolePolicyDocument", "AWS::IAM::Policy": "PolicyDocument"} | {
    kind: document for kind, (document, _) in RESOURCE_POLICIES.items()
}
"""Maps a type to the property whose statements are compared one by one."""
DOCUMENTS["AWS::IAM::ManagedPolicy"] = "PolicyDocument"


def read_deployed(folder: Path, names: tuple[str, ...], others: Collection[str] = ()) -> Templates:
    """Read a destination and a pipeline stack from the assembly in ``folder``.

    They are those called ``names``. If it has none of them, they are its first pair that is not among ``others``, the
    stacks of further files, whatever pipeline and stage it is of; without such a pair both are empty.
    """
    try:
        stacks = list(find_stacks(folder))
        pairs = [tuple(name for name in stacks if name.endswith(ending)) for ending in ENDINGS]
        if set(names) <= set(stacks):
            return Templates.read(folder, names)
        first = next((pair for pair in zip(*pairs, strict=True) if not set(pair) & set(others)), None)
        if first is not None:
            return Templates.read(folder, first)
        deployed = Templates.read(folder, (pairs[0][0], pairs[1][0]))
        return replace(deployed, stacks=tuple(Template(name, False, {"Resources": {}}) for name in names))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise SpecInvalidError(
            f"-c deployed={folder}: expected the folder of an assembly with a destination and a pipeline stack "
            f"({type(error).__name__}).",
            remedy="Give a copy of the cdk.out that was deployed last.",
        ) from error


def describe_changes(before: Templates, after: Templates) -> Section:
    """Describe the difference in a table for each harm; an empty difference in a sentence."""
    changes = compare(before, after)
    columns, widths = ("What", "How", "Before", "After"), (22, 18, 30, 30)
    tables = [
        Table(
            columns,
            tuple(
                (Code(change.what), change.how, change.before, change.after)
                for change in changes
                if change.harm is harm
            ),
            f"{harm}. {MEANINGS[harm]}".strip(". "),
            widths,
        )
        for harm in Harm
    ]
    tables += [
        Table(("Output", "Before", "After"), tuple(_list_outputs(before, after)), "What people outside have by name"),
        Table(
            ("", "Before", "After"), tuple(_list_capacity(before, after)), "The most at a time, which bounds the cost"
        ),
    ]
    shown = tuple(table for table in tables if table.rows)
    text = "Compared with the assembly of -c deployed." if shown else "Nothing: the stacks are as they are deployed."
    return Section("What changes", text, shown)


def list_notable(before: Templates, after: Templates) -> tuple[str, ...]:
    """List the changes that the user of synth should not overlook, one line per change."""
    return tuple(change.describe() for change in compare(before, after) if change.harm in NOTABLE)


def compare(before: Templates, after: Templates) -> list[Change]:
    """List all changes, the most harmful first; each difference of the templates is in one of them."""
    changes = [*_compare_places(before, after), *_compare_statements(before, after), *_compare_grants(before, after)]
    for old, new in zip(before.stacks, after.stacks, strict=True):
        if old.stack != new.stack:
            how = f"new stack; {old.stack} stays as it is, with all it has"
            changes.append(Change(Harm.INTERRUPTED, new.stack, how))
            continue
        changes += _compare_stacks((before, old), (after, new))
    order = list(Harm)
    return sorted(changes, key=lambda change: order.index(change.harm))


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


Side = tuple[Templates, Template]
"""One stack of an assembly, and the assembly, by which references are resolved."""


def _compare_places(before: Templates, after: Templates) -> Iterator[Change]:
    """Compare account and region: another one has none of the data."""
    for what, old, new in (("account", before.account, after.account), ("region", before.region, after.region)):
        if old != new:
            how = "other stacks are made there; the data stays where it is"
            yield Change(Harm.UNREADABLE, f"the {what}", how, Code(old), Code(new))


def _compare_statements(before: Templates, after: Templates) -> Iterator[Change]:
    """Compare the statements of each role, user and protected resource, of a new or removed one too.

    A role or user that leaves is one change: it takes its permissions and refusals with it, and its name leaves the
    policies of others.
    """
    old, new = (_list_holders(templates) for templates in (before, after))
    leaving = [holder for key, holder in old.items() if key not in new and holder.is_identity]
    in_templates = _list_names(before)
    for holder in leaving:
        if holder.name not in in_templates:
            yield Change(Harm.INTERRUPTED, _name_holder(holder), "removed: the policies that it had of these stacks")
    made = frozenset(name for name in _list_names(after) - in_templates if name.startswith("<"))
    deleted = _list_deleted(before, after)
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        # The policy of a topic or a queue ends with what it protects.
        if was not in leaving and (now is not None or was is None or was.name not in deleted):
            yield from _compare_holder(key, was, now, made, [holder.name for holder in leaving])


def _compare_holder(
    key: str, was: Holder | None, now: Holder | None, made: frozenset[str], leaving: Collection[str]
) -> Iterator[Change]:
    older, newer = ([*holder.trusts, *holder.statements] if holder else [] for holder in (was, now))
    older = [left for statement in older for left in _drop_principals(statement, leaving)]
    holder = now or was
    assert holder is not None
    takers = [principal for statement in holder.trusts for principal in statement.principals]
    sides = Sides(
        older,
        newer,
        made,
        is_made=holder.name in made and not holder.is_identity,
        is_open=not holder.is_identity or not holder.is_made or bool(holder.attached),
        by_services=was is None and bool(takers) and all(map(is_service, takers)),
    )
    pairs = list(_pair(older, newer))
    yield from (compare_statements(key, *pair, sides) for pair in pairs)
    if not pairs and list(map(_drop_reason, older)) != list(map(_drop_reason, newer)):
        yield Change(Harm.NONE, key, "policies in another order, or under other numbers")


def _list_holders(templates: Templates) -> dict[str, Holder]:
    holders: tuple[Holder, ...] = (
        *list_identities(templates),
        *list_unattached(templates),
        *list_protected_resources(templates),
    )
    return {_name_holder(holder): holder for holder in holders}


def _name_holder(holder: Holder) -> str:
    return f"{holder.kind} {holder.name.strip('<>')}"


def _list_names(templates: Templates) -> set[str]:
    return {resource.name for _, resource in templates.list_resources()}


def _list_deleted(before: Templates, after: Templates) -> set[str]:
    """List the names of resources that leave their stacks and are not retained."""
    ids = {(template.stack, resource.id) for template, resource in after.list_resources()}
    return {
        resource.name
        for template, resource in before.list_resources()
        if (template.stack, resource.id) not in ids and resource.deletion not in RETAINED
    } - _list_names(after)


def _drop_principals(statement: Statement, leaving: Collection[str]) -> Iterator[Statement]:
    """Yield the statement without roles and users that leave; nothing if it is about these alone."""

    def select(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(value for value in values if value.rpartition("/")[2] not in leaving)

    principals = select(statement.principals)
    conditions = [(name, values, select(values)) for name, values in statement.conditions]
    emptied = {name for name, values, left in conditions if values and not left}
    if (principals or not statement.principals) and not any("Not" not in name.partition(" ")[0] for name in emptied):
        left_conditions = tuple((name, left) for name, _, left in conditions if name not in emptied)
        yield replace(statement, principals=principals, conditions=left_conditions)


def _pair(old: list[Statement], new: list[Statement]) -> Iterator[tuple[Statement | None, Statement | None]]:
    """Pair the statements that differ: by their id, then without the number at its end, then in their order."""
    lost, gained = _subtract(old, new), _subtract(new, old)
    for shorten in (str, _drop_number):
        for was in [statement for statement in lost if statement.sid]:
            now = next((one for one in gained if one.sid and shorten(one.sid) == shorten(was.sid)), None)
            if now is not None:
                lost.remove(was)
                gained.remove(now)
                yield was, now
    for effect in ("Allow", "Deny"):
        unnamed = [
            [statement for statement in side if statement.effect == effect and not statement.sid]
            for side in (lost, gained)
        ]
        yield from zip_longest(*unnamed)
    yield from ((statement, None) for statement in lost if statement.sid)
    yield from ((None, statement) for statement in gained if statement.sid)


def _subtract(some: list[Statement], others: list[Statement]) -> list[Statement]:
    left = Counter(map(_normalise, others))
    remaining = []
    for statement in map(_drop_reason, some):
        same = _normalise(statement)
        if left[same]:
            left[same] -= 1
        else:
            remaining.append(statement)
    return remaining


def _normalise(statement: Statement) -> Statement:
    """Drop what makes no difference: reasons, which are ours, the number of an id, and the order of every list."""
    return replace(
        _drop_reason(statement),
        sid=_drop_number(statement.sid),
        principals=tuple(sorted(statement.principals)),
        actions=tuple(sorted(statement.actions)),
        resources=tuple(sorted(statement.resources)),
        conditions=tuple(sorted((name, tuple(sorted(values))) for name, values in statement.conditions)),
    )


def _drop_number(sid: str) -> str:
    return sid.rstrip("0123456789")


def _drop_reason(statement: Statement) -> Statement:
    return replace(statement, reason="")


def _compare_grants(before: Templates, after: Templates) -> Iterator[Change]:
    """Compare the grants of Lake Formation; those of a role or user that leaves go with it."""
    old, new = ({(who, on): permissions for who, on, permissions in list_grants(side)} for side in (before, after))
    names = _list_names(after)
    for who, on in dict.fromkeys((*old, *new)):
        was, now = old.get((who, on), ()), new.get((who, on), ())
        name = who.rpartition("/")[2]
        if {*was} != {*now} and not (name.startswith("<") and name not in names):
            harm = Harm.INTERRUPTED if {*now} <= {*was} else Harm.LET_IN
            how = "removed" if not now else "changed" if was else "new"
            yield Change(harm, who, f"grant on {on} {how}", make_codes(*was), make_codes(*now))


def _compare_stacks(old: Side, new: Side) -> Iterator[Change]:
    was, now = old[1], new[1]
    if was.protected != now.protected:
        harm = Harm.NONE if now.protected else Harm.DELETABLE
        yield Change(harm, now.stack, "termination protection", *(Code(str(stack.protected)) for stack in (was, now)))
    folded = set(_list_folded(old, new))
    for name in dict.fromkeys((*was.body["Resources"], *now.body["Resources"])):
        if name not in folded:
            yield from _compare_resource(old, new, name)
    for section in sorted({*was.body, *now.body} - {"Resources"}):
        values = list(_list_differences(was.body.get(section), now.body.get(section)))
        if values:
            yield _make_values_change(Harm.NONE, f"{now.stack} {section}", "changed", values)


def _list_folded(old: Side, new: Side) -> Iterator[str]:
    """List the resources that leave with the role or user that they are of, which is a change of its own."""
    left = {_name_holder(holder) for holder in list_identities(new[0])}
    leaving = {holder.name for holder in list_identities(old[0]) if _name_holder(holder) not in left}
    removed = [resource for resource in old[1].list_resources() if resource.id not in new[1].body["Resources"]]
    keys: set[str] = set()
    for resource in sorted(removed, key=lambda one: one.type != ACCESS_KEY):
        named = [text for key in HELD_BY for text in _list_texts(old, resource.properties.get(key))]
        holders = {text.rpartition("/")[2] for text in named}
        if resource.type in OF_IDENTITIES and holders and holders <= leaving:
            if resource.type == ACCESS_KEY:
                keys.add(resource.id)
            yield resource.id
        elif resource.type == SECRET and any(f'"{key}"' in json.dumps(resource.properties) for key in keys):
            yield resource.id


def _list_texts(side: Side, value: Any) -> tuple[str, ...]:
    if isinstance(value, dict) and "DataLakePrincipalIdentifier" in value:
        value = value["DataLakePrincipalIdentifier"]
    return side[0].resolve_all(value, side[1]) if value else ()


def _compare_resource(old: Side, new: Side, name: str) -> Iterator[Change]:
    raw = tuple(side[1].body["Resources"].get(name) for side in (old, new))
    if raw[0] == raw[1]:
        return
    was, now = (side[1].find_resource(name) if body else None for side, body in zip((old, new), raw, strict=True))
    if now is None and was is not None:
        yield _describe_removed(was)
    elif was is None and now is not None:
        yield from _describe_new(old, now)
    elif was is not None and now is not None:
        yield from _describe_changed((old, was), (new, now), raw)


def _describe_removed(was: Resource) -> Change:
    if was.deletion in RETAINED:
        return Change(TYPES.get(was.type, Harm.NONE), _name(was), "removed: kept, and no longer the stack's")
    if was.type in LOSSES and was.type not in IDENTITIES:
        return Change(Harm.DELETABLE, _name(was), "removed", after=LOSSES[was.type])
    return Change(Harm.INTERRUPTED, _name(was), "removed", after=LOSSES.get(was.type, "deleted"))


def _describe_new(old: Side, now: Resource) -> Iterator[Change]:
    harm = TYPES.get(now.type, Harm.NONE)
    yield Change(harm if harm in NEW else Harm.NONE, _name(now), "new")
    taken = [
        resource
        for resource in old[1].list_resources(now.type)
        # Applications need no names of their own: one is made beside that of the earlier release.
        if resource.name == now.name and not resource.name.startswith("<") and now.type != APPLICATION
    ]
    if taken:
        yield Change(
            Harm.IMPOSSIBLE, _name(now), f"new under the name of {taken[0].id}", Code(now.name), Code(now.name)
        )


def _describe_changed(old: tuple[Side, Resource], new: tuple[Side, Resource], raw: tuple[Any, ...]) -> Iterator[Change]:
    """Describe the values that differ: a row for each property that has a harm of its own, one for all others."""
    was, now = old[1], new[1]
    changed = [
        key for key in {**was.properties, **now.properties} if was.properties.get(key) != now.properties.get(key)
    ]
    lost = [key for key in changed if key in REPLACING.get(now.type, ())]
    if lost:
        yield from _describe_replaced(was, now, lost)
    judged: dict[Harm, list[tuple[str, str, str]]] = {}
    for key in changed:
        if key in lost or (key == DOCUMENTS.get(now.type) and _differs_in_statements(old, new, key)):
            continue
        harm = judge_property(now.type, key, was.properties, now.properties)
        judged.setdefault(harm, []).extend(_list_differences(was.properties.get(key), now.properties.get(key), key))
    for key in sorted({*raw[0], *raw[1]} - {"Properties"}):
        loses = key in ("DeletionPolicy", "UpdateReplacePolicy") and raw[1].get(key) not in RETAINED
        harm = Harm.DELETABLE if loses and now.type in LOSSES else Harm.NONE
        judged.setdefault(harm, []).extend(_list_differences(raw[0].get(key), raw[1].get(key), key))
    for harm, values in judged.items():
        if values:
            yield _make_values_change(harm, _name(now), "changed", values)


def _describe_replaced(was: Resource, now: Resource, lost: list[str]) -> Iterator[Change]:
    values = [
        value for key in lost for value in _list_differences(was.properties.get(key), now.properties.get(key), key)
    ]
    arn = "; everybody who has its ARN needs the new one" if now.type == "AWS::IAM::Role" else ""
    harm = Harm.UNREADABLE if now.type in ("AWS::S3::Bucket", "AWS::KMS::Key") else Harm.INTERRUPTED
    yield _make_values_change(harm, _name(now), f"replaced{arn}", values)
    if NAMES.get(now.type) not in lost and was.name == now.name and not now.name.startswith("<"):
        yield Change(Harm.IMPOSSIBLE, _name(now), f"replaced under the name that it has: {', '.join(lost)}")


def _differs_in_statements(old: tuple[Side, Resource], new: tuple[Side, Resource], key: str) -> bool:
    """Return whether the statements of a document differ, which are compared by their holders."""
    documents = [
        list(map(_drop_reason, list_statements(*side, resource.properties.get(key, {"Statement": []}))))
        for side, resource in (old, new)
    ]
    return documents[0] != documents[1]


def _make_values_change(harm: Harm, what: str, how: str, values: list[tuple[str, str, str]]) -> Change:
    paths = [path for path, _, _ in values]
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
    sides = [
        make_codes(*(f"{path}: {value}" for path, *both in values[:MOST_VALUES] for value in [both[i]])) for i in (0, 1)
    ]
    names = ", ".join(dict.fromkeys(path.partition(".")[0] for path in paths))
    return Change(harm, what, f"{how}: {names}{more}", *sides)


def _list_differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """List the values that differ, with their paths; a text that is long is shown where it begins to differ."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from _list_differences(old.get(key, _ABSENT), new.get(key, _ABSENT), f"{path}.{key}".strip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _list_differences(one, other, f"{path}.{index}")
    else:
        yield path, *_shorten(_write(old), _write(new))


_ABSENT: Final = object()


def _write(value: Any) -> str:
    if value is _ABSENT or value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _shorten(old: str, new: str) -> tuple[str, str]:
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    first = max(0, start - LONGEST // 4) if max(len(old), len(new)) > LONGEST else 0

    def cut(text: str) -> str:
        return ("..." if first else "") + text[first : first + LONGEST] + ("..." if len(text) > first + LONGEST else "")

    return cut(old), cut(new)


def _name(resource: Resource) -> str:
    return f"{resource.name.strip('<>')} ({resource.type.removeprefix('AWS::').replace('::', ' ')})"


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
    return next((resource.properties["MaximumCapacity"] for _, resource in templates.list_resources(APPLICATION)), {})
