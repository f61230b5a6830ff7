"""Classify changes of a stack by the harm that they may do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from infra.review.page import Cell, Code, Strong
from infra.review.permissions import ANYONE, Statement


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


def compare_statements(what: str, before: Statement | None, after: Statement | None) -> Change:
    """Make the change from one statement to another; ``None`` where it is new or removed."""
    how = "new" if before is None else "removed" if after is None else "changed"
    sides = (_render(before, after), _render(after, before))
    one = before or after
    assert one is not None
    return Change(_judge(before, after), what, f"{how} {one.effect} {one.sid}".strip(), *sides)


def _judge(before: Statement | None, after: Statement | None) -> Harm:
    """Judge the change of a statement: an Allow that reaches further, a Deny that reaches less far."""
    if before is not None and after is not None and before.effect != after.effect:
        return Harm.LET_IN if after.effect == "Allow" else Harm.INTERRUPTED
    if any(statement is not None and statement.effect == "Deny" for statement in (before, after)):
        lost = before is not None and (after is None or not _covers(after, before))
        return Harm.NOT_KEPT_OUT if lost else Harm.INTERRUPTED
    if after is not None and (before is None or not _covers(before, after)):
        return Harm.LET_IN
    return Harm.UNREADABLE if _is_about_keys(before) else Harm.INTERRUPTED


def _is_about_keys(statement: Statement | None) -> bool:
    return statement is not None and any(fnmatchcase("kms:decrypt", action.lower()) for action in statement.actions)


def _covers(wide: Statement, narrow: Statement) -> bool:
    """Return whether all that ``narrow`` applies to is certainly what ``wide`` applies to as well."""
    parts = ((wide.principals, narrow.principals), (wide.actions, narrow.actions), (wide.resources, narrow.resources))
    is_within = all(
        all(any(pattern == ANYONE or fnmatchcase(one.lower(), pattern.lower()) for pattern in patterns) for one in ones)
        for patterns, ones in parts
    )
    required = dict(narrow.conditions)
    return is_within and all(_admits(name, values, required.get(name, ())) for name, values in wide.conditions)


def _admits(name: str, wide: Sequence[str], narrow: Sequence[str]) -> bool:
    """Return whether a condition holds wherever the narrow one of that name does. One that a value must equal holds for
    each of its values; every other kind has to be the same."""
    if name.startswith(("StringEquals ", "StringLike ", "ArnEquals ", "ArnLike ")):
        return bool(narrow) and {*narrow} <= {*wide}
    return [*wide] == [*narrow]


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
