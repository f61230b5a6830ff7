"""Classify changes of a stack by the harm that they may do."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from infra.review.coverage import list_uncovered, meet
from infra.review.page import Cell, Code, Strong
from infra.review.permissions import Statement
from infra.review.templates import Properties
from lakewriter.policy.arns import name_principal

Harmless = Callable[[Properties, Properties], bool]
"""Tells, by all properties of a resource before and after, that a change of one does no harm."""
_OF_DATA: Final = frozenset({"glue", "iam", "kms", "lakeformation", "s3", "secretsmanager", "ssm", "sts"})
"""Services that have data, keys and secrets, or lead to roles that do."""
_SENDERS: Final = {name_principal("cloudwatch"), name_principal("events"), name_principal("budgets")}
_DESCRIBING: Final = frozenset({"Description", "Tags"})
_NONCURRENT: Final = "NoncurrentVersionExpiration"
_FILTERS: Final = frozenset({"Prefix", "TagFilters", "ObjectSizeGreaterThan", "ObjectSizeLessThan"})
_OF_RULES: Final = _FILTERS | {"Id", "Status", "ExpiredObjectDeleteMarker"}
"""Keys of a lifecycle rule that delete no data."""


class Harm(StrEnum):
    """The harm of a change, the worst first."""

    LET_IN = "Let in"
    NOT_KEPT_OUT = "No longer kept out"
    UNREADABLE = "Unreadable"
    DELETABLE = "Deletable"
    IMPOSSIBLE = "Cannot be made"
    INTERRUPTED = "Interrupted"
    NONE = "Other changes"


NOTABLE: Final = (Harm.LET_IN, Harm.NOT_KEPT_OUT, Harm.UNREADABLE, Harm.DELETABLE)
"""Nobody should overlook these harms: synth prints these changes on standard error."""
MEANINGS: Final[Mapping[Harm, str]] = {
    Harm.LET_IN: "Somebody may do more than before.",
    Harm.NOT_KEPT_OUT: "A refusal goes, or covers less.",
    Harm.UNREADABLE: "Data or records stay behind, or under a key that fewer may use.",
    Harm.DELETABLE: "Data may be deleted, or overwritten, where it was kept.",
    Harm.IMPOSSIBLE: "CloudFormation makes the new resource before it deletes the old one, which has the name.",
    Harm.INTERRUPTED: "Something stops, starts anew, or may do less than before.",
    Harm.NONE: "",
}
TYPES: Final[Mapping[str, Harm]] = {
    "AWS::EMRServerless::Application": Harm.INTERRUPTED,
    "AWS::Events::Rule": Harm.INTERRUPTED,
    "AWS::Glue::Database": Harm.INTERRUPTED,
    "AWS::IAM::AccessKey": Harm.LET_IN,
    "AWS::IAM::Role": Harm.INTERRUPTED,
    "AWS::IAM::User": Harm.INTERRUPTED,
    "AWS::KMS::Key": Harm.UNREADABLE,
    "AWS::LakeFormation::PrincipalPermissions": Harm.LET_IN,
    "AWS::LakeFormation::Tag": Harm.INTERRUPTED,
    "AWS::LakeFormation::TagAssociation": Harm.LET_IN,
    "AWS::Lambda::Permission": Harm.LET_IN,
    "AWS::Logs::ResourcePolicy": Harm.LET_IN,
    "AWS::SNS::Subscription": Harm.LET_IN,
    "AWS::Scheduler::Schedule": Harm.INTERRUPTED,
    "AWS::SecretsManager::ResourcePolicy": Harm.LET_IN,
    "AWS::StepFunctions::StateMachine": Harm.INTERRUPTED,
    "Custom::S3AutoDeleteObjects": Harm.DELETABLE,
}
"""Maps a type to the harm of a change that ``PROPERTIES`` does not name, or of a new resource that lets somebody in."""
PROPERTIES: Final[Mapping[tuple[str, str], Harm]] = {
    ("AWS::IAM::ManagedPolicy", "Roles"): Harm.LET_IN,
    ("AWS::IAM::ManagedPolicy", "Users"): Harm.LET_IN,
    ("AWS::IAM::Policy", "Roles"): Harm.LET_IN,
    ("AWS::IAM::Policy", "Users"): Harm.LET_IN,
    ("AWS::IAM::Role", "ManagedPolicyArns"): Harm.LET_IN,
    ("AWS::IAM::Role", "MaxSessionDuration"): Harm.LET_IN,
    ("AWS::IAM::Role", "PermissionsBoundary"): Harm.LET_IN,
    ("AWS::IAM::User", "Groups"): Harm.LET_IN,
    ("AWS::IAM::User", "ManagedPolicyArns"): Harm.LET_IN,
    ("AWS::IAM::User", "PermissionsBoundary"): Harm.LET_IN,
    ("AWS::KMS::Key", "PendingWindowInDays"): Harm.DELETABLE,
    ("AWS::Logs::LogGroup", "KmsKeyId"): Harm.UNREADABLE,
    ("AWS::Logs::LogGroup", "RetentionInDays"): Harm.DELETABLE,
    ("AWS::S3::Bucket", "AccessControl"): Harm.LET_IN,
    ("AWS::S3::Bucket", "BucketEncryption"): Harm.UNREADABLE,
    ("AWS::S3::Bucket", "BucketName"): Harm.UNREADABLE,
    ("AWS::S3::Bucket", "LifecycleConfiguration"): Harm.DELETABLE,
    ("AWS::S3::Bucket", "ObjectLockConfiguration"): Harm.DELETABLE,
    ("AWS::S3::Bucket", "ObjectLockEnabled"): Harm.DELETABLE,
    ("AWS::S3::Bucket", "OwnershipControls"): Harm.LET_IN,
    ("AWS::S3::Bucket", "PublicAccessBlockConfiguration"): Harm.LET_IN,
    ("AWS::S3::Bucket", "ReplicationConfiguration"): Harm.LET_IN,
    ("AWS::S3::Bucket", "VersioningConfiguration"): Harm.DELETABLE,
    ("AWS::S3Tables::Namespace", "TableBucketARN"): Harm.UNREADABLE,
    ("AWS::S3Tables::TableBucket", "EncryptionConfiguration"): Harm.UNREADABLE,
    ("AWS::S3Tables::TableBucket", "TableBucketName"): Harm.UNREADABLE,
    ("AWS::S3Tables::TableBucket", "UnreferencedFileRemoval"): Harm.DELETABLE,
    ("AWS::SNS::Topic", "KmsMasterKeyId"): Harm.UNREADABLE,
    ("AWS::SQS::Queue", "KmsMasterKeyId"): Harm.UNREADABLE,
    ("AWS::SecretsManager::Secret", "KmsKeyId"): Harm.UNREADABLE,
    ("AWS::StepFunctions::StateMachine", "RoleArn"): Harm.LET_IN,
}
"""Maps a type and a property to the harm of its change."""
NEW: Final = (Harm.LET_IN, Harm.DELETABLE)
"""Harms that a new resource of a type in ``TYPES`` does."""


@dataclass(frozen=True)
class Change:
    """One change: of ``what``, ``how`` in a word or two, and both sides as they are shown."""

    harm: Harm
    what: str
    how: str
    before: Cell = ""
    after: Cell = ""

    def describe(self) -> str:
        """Describe the change in one line, for a terminal."""
        sides = [join_lines(side) for side in (self.before, self.after)]
        values = f": {sides[0] or 'nothing'} -> {sides[1] or 'nothing'}" if any(sides) else ""
        return f"{self.harm.lower()}: {self.what} ({self.how}){values}"


def join_lines(cell: Cell) -> str:
    """Join the lines of a cell, without their fonts."""
    lines = cell if isinstance(cell, tuple) else (cell,)
    return " ".join(line if isinstance(line, str) else line.text for line in lines).strip()


@dataclass(frozen=True)
class Sides:
    """All statements of one holder before and after, and what a single one of them cannot tell."""

    before: Sequence[Statement]
    after: Sequence[Statement]
    made: frozenset[str] = frozenset()
    """The names of resources that the change makes: access to them reaches nothing that was there."""
    is_made: bool = False
    """True for the policy of a resource that the change makes."""
    is_open: bool = True
    """True if others may allow what the statements do not: of a resource, of a role with policies of others."""
    by_services: bool = False
    """True for a new role that AWS's services alone take."""

    def list_others(self, effect: str, *, is_after: bool) -> list[Statement]:
        """List the statements of one side and one effect."""
        return [statement for statement in (self.after if is_after else self.before) if statement.effect == effect]

    def lets_in(self, part: Statement) -> bool:
        """Return whether a part of a permission that is new lets somebody reach what was there before."""
        if self.is_made or any(name in resource for name in self.made for resource in part.resources):
            return False
        if not self.by_services:
            return not _is_of_senders(part)
        of_data = any(action.partition(":")[0].lower() in _OF_DATA for action in part.actions)
        return of_data and not part.principals and not _is_for_messages(part)


def compare_statements(what: str, before: Statement | None, after: Statement | None, sides: Sides) -> Change:
    """Make the change from one statement to another; ``None`` where it is new or removed."""
    how = "new" if before is None else "removed" if after is None else "changed"
    cells = (_render(before, after), _render(after, before))
    one = before or after
    assert one is not None
    return Change(_judge(before, after, sides), what, f"{how} {one.effect} {one.sid}".strip(), *cells)


def _judge(before: Statement | None, after: Statement | None, sides: Sides) -> Harm:
    """Judge the change of a statement: an Allow that reaches further, a Deny that reaches less far.

    What another statement of the same holder has as well is neither new nor lost.
    """
    if before is not None and after is not None and before.effect != after.effect:
        return Harm.LET_IN if after.effect == "Allow" else Harm.INTERRUPTED
    effect = next(statement.effect for statement in (before, after) if statement is not None)
    lost = list(list_uncovered([before] if before else [], sides.list_others(effect, is_after=True)))
    gained = list(list_uncovered([after] if after else [], sides.list_others(effect, is_after=False)))
    if effect == "Deny":
        allowed = sides.list_others("Allow", is_after=True)
        if any(sides.is_open or any(meet(part, other) for other in allowed) for part in lost):
            return Harm.NOT_KEPT_OUT
        return Harm.INTERRUPTED if gained else Harm.NONE
    if any(map(sides.lets_in, gained)):
        return Harm.LET_IN
    if any(_is_about_keys(part) and not _is_of_senders(part) for part in lost):
        return Harm.UNREADABLE
    return Harm.INTERRUPTED if lost else Harm.NONE


def _is_about_keys(statement: Statement) -> bool:
    return any(fnmatchcase("kms:decrypt", action.lower()) for action in statement.actions)


def _is_of_senders(part: Statement) -> bool:
    """Return whether a part lets services that send messages use a key for them: nothing stays under it."""
    return bool(part.principals) and {*part.principals} <= _SENDERS and _is_of_key(part)


def _is_for_messages(part: Statement) -> bool:
    """Return whether a part is the use of a key through SQS or SNS alone."""
    through = dict(part.conditions).get("StringEquals kms:ViaService", ())
    return _is_of_key(part) and bool(through) and all(service.startswith(("sqs.", "sns.")) for service in through)


def _is_of_key(part: Statement) -> bool:
    return all(action.lower().startswith("kms:") for action in part.actions)


def judge_property(kind: str, key: str, before: Properties, after: Properties) -> Harm:
    """Judge the change of one property of a resource; ``before`` and ``after`` are all its properties."""
    if key in _DESCRIBING or _is_reordered(before.get(key), after.get(key)):
        return Harm.NONE
    is_harmless = HARMLESS.get((kind, key))
    if is_harmless is not None and is_harmless(before, after):
        return Harm.NONE
    return PROPERTIES.get((kind, key), TYPES.get(kind, Harm.NONE))


def _is_reordered(before: Any, after: Any) -> bool:
    """Return whether two lists have the same values: no property of the stacks has an order of its own."""
    return isinstance(before, list) and isinstance(after, list) and _write_all(before) == _write_all(after)


def _write_all(values: Any) -> list[str]:
    return sorted(json.dumps(value, sort_keys=True) for value in values or ())


def _was_none(key: str) -> Harmless:
    """Return the test that nothing was bound, or encrypted with a key: what is there stays readable."""
    return lambda before, _: before.get(key) is None


def _is_none(key: str) -> Harmless:
    return lambda _, after: after.get(key) is None


def _is_within(key: str) -> Harmless:
    return lambda before, after: {*_write_all(after.get(key))} <= {*_write_all(before.get(key))}


def _keeps_as_long(key: str, shortest: int | None = None) -> Harmless:
    """Return the test of a number of days, without which nothing is deleted, or which is ``shortest`` by default."""

    def is_longer(before: Properties, after: Properties) -> bool:
        old, new = before.get(key, shortest), after.get(key, shortest)
        return new is None or (isinstance(old, int) and isinstance(new, int) and new >= old)

    return is_longer


def _had_no_key(before: Properties, _: Properties) -> bool:
    return "KMSMasterKeyID" not in json.dumps(before.get("BucketEncryption"))


def _had_no_table_key(before: Properties, _: Properties) -> bool:
    return "KMSKeyArn" not in before.get("EncryptionConfiguration", {})


def _takes_files_no_sooner(before: Properties, after: Properties) -> bool:
    """Compare what S3 Tables does with unreferenced files: by default it takes them after 3 days, for good after 10."""
    defaults = {"Status": "Enabled", "UnreferencedDays": 3, "NoncurrentDays": 10}
    old, new = (defaults | side.get("UnreferencedFileRemoval", {}) for side in (before, after))
    if new["Status"] != "Enabled":
        return True
    return old["Status"] == "Enabled" and all(new[key] >= old[key] for key in ("UnreferencedDays", "NoncurrentDays"))


def _deletes_no_sooner(before: Properties, after: Properties) -> bool:
    """Return whether no rule deletes sooner; those that come with versions are about these alone, of which none was."""
    old, new = _list_deletions(before), _list_deletions(after)
    had_versions = before.get("VersioningConfiguration") is not None
    return all(
        days >= old[rule] if rule in old else rule[-1] == _NONCURRENT and not had_versions for rule, days in new.items()
    )


def _list_deletions(properties: Properties) -> dict[tuple[str, str], int]:
    """List the days after which rules delete, by what they are for; an unknown rule is one for itself."""
    deletions = {}
    for rule in properties.get("LifecycleConfiguration", {}).get("Rules", ()):
        filters = json.dumps({key: value for key, value in rule.items() if key in _FILTERS}, sort_keys=True)
        for key, value in rule.items():
            if rule.get("Status") == "Enabled" and key not in _OF_RULES:
                days = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else value
                name = key if isinstance(days, int) else json.dumps({key: value}, sort_keys=True)
                deletions[(filters, name)] = days if isinstance(days, int) else 0
    return deletions


def _render(statement: Statement | None, other: Statement | None) -> Cell:
    """Render a statement; what the other one has not is strong."""
    if statement is None:
        return ""
    compared = set(_list_lines(other)) if other else set()
    return tuple(
        Code(text) if other is None or (label, text) in compared else Strong(text)
        for label, text in _list_lines(statement)
    )


def _list_lines(statement: Statement) -> list[tuple[str, str]]:
    lines = [("principal", principal) for principal in statement.principals]
    lines += [("action", action) for action in statement.actions]
    lines += [("resource", f"on {resource}") for resource in statement.resources]
    lines += [("condition", f"if {name} {' or '.join(values)}") for name, values in statement.conditions]
    return lines


HARMLESS: Final[Mapping[tuple[str, str], Harmless]] = {
    **{
        (f"AWS::IAM::{kind}", key): _is_within(key)
        for kind, keys in {
            "ManagedPolicy": ("Roles", "Users"),
            "Policy": ("Roles", "Users"),
            "Role": ("ManagedPolicyArns",),
            "User": ("Groups", "ManagedPolicyArns"),
        }.items()
        for key in keys
    },
    ("AWS::IAM::Role", "MaxSessionDuration"): lambda before, after: (
        after.get("MaxSessionDuration", 3600) <= before.get("MaxSessionDuration", 3600)
    ),
    ("AWS::IAM::Role", "PermissionsBoundary"): _was_none("PermissionsBoundary"),
    ("AWS::IAM::User", "PermissionsBoundary"): _was_none("PermissionsBoundary"),
    ("AWS::KMS::Key", "EnableKeyRotation"): lambda *_: True,
    ("AWS::KMS::Key", "PendingWindowInDays"): _keeps_as_long("PendingWindowInDays", 30),
    ("AWS::Logs::LogGroup", "KmsKeyId"): _was_none("KmsKeyId"),
    ("AWS::Logs::LogGroup", "RetentionInDays"): _keeps_as_long("RetentionInDays"),
    ("AWS::S3::Bucket", "BucketEncryption"): _had_no_key,
    ("AWS::S3::Bucket", "LifecycleConfiguration"): _deletes_no_sooner,
    ("AWS::S3Tables::TableBucket", "EncryptionConfiguration"): _had_no_table_key,
    ("AWS::S3Tables::TableBucket", "UnreferencedFileRemoval"): _takes_files_no_sooner,
    ("AWS::S3::Bucket", "PublicAccessBlockConfiguration"): lambda _, after: (
        len(block := after.get("PublicAccessBlockConfiguration", {})) == 4 and all(block.values())
    ),
    ("AWS::S3::Bucket", "ReplicationConfiguration"): _is_none("ReplicationConfiguration"),
    ("AWS::S3::Bucket", "VersioningConfiguration"): lambda _, after: (
        after.get("VersioningConfiguration") == {"Status": "Enabled"}
    ),
    ("AWS::SNS::Topic", "KmsMasterKeyId"): _was_none("KmsMasterKeyId"),
    ("AWS::SQS::Queue", "KmsMasterKeyId"): _was_none("KmsMasterKeyId"),
    ("AWS::SecretsManager::Secret", "KmsKeyId"): _was_none("KmsKeyId"),
}
"""Maps a type and a property of ``PROPERTIES`` to the direction in which a change of it does no harm."""
