"""Make statements and documents of the IAM policy language."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Statement = dict[str, Any]
Document = dict[str, Any]
Conditions = Mapping[str, Mapping[str, str | list[str]]]


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None = None
) -> Statement:
    """Make a statement of an identity policy that allows."""
    return _make_statement("Allow", sid, actions, resources, conditions)


def deny(sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None = None) -> Statement:
    """Make a statement of an identity policy that denies, whatever other policies allow."""
    return _make_statement("Deny", sid, actions, resources, conditions)


def make_document(statements: Iterable[Statement]) -> Document:
    """Make a policy document of statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _make_statement(
    effect: str, sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None
) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": effect, "Action": list(actions), "Resource": list(resources)}
    if conditions:
        statement["Condition"] = {operator: dict(keys) for operator, keys in conditions.items()}
    return statement
