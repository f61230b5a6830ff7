"""Statements and documents of the policy language."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Statement = dict[str, Any]
Document = dict[str, Any]
Conditions = Mapping[str, Mapping[str, str | list[str]]]


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None = None
) -> Statement:
    """An identity's permission."""
    return _statement("Allow", sid, actions, resources, conditions)


def deny(sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None = None) -> Statement:
    """An identity's prohibition; it holds whatever else is attached."""
    return _statement("Deny", sid, actions, resources, conditions)


def document(statements: Iterable[Statement]) -> Document:
    """Statements as IAM takes them."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _statement(
    effect: str, sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None
) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": effect, "Action": list(actions), "Resource": list(resources)}
    if conditions:
        statement["Condition"] = {operator: dict(keys) for operator, keys in conditions.items()}
    return statement
