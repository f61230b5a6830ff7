"""Find the permissions that one set of policies allows and another does not."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakewriter.policy.statements import Document, Statement


@dataclass(frozen=True)
class Permission:
    """One action on one resource, both as patterns; ``conditions`` are (operator, key, values)."""

    action: str
    resource: str
    conditions: frozenset[tuple[str, str, frozenset[str]]] = frozenset()

    def covers(self, other: "Permission") -> bool:
        """Return True if this permission alone allows everything that ``other`` allows."""
        return (
            _is_match(self.action.lower(), other.action.lower())
            and _is_match(self.resource, other.resource)
            and all(any(_is_weaker(one, another) for another in other.conditions) for one in self.conditions)
        )

    def __str__(self) -> str:
        return f"{self.action} on {self.resource}"


def list_permissions(documents: Iterable[Document]) -> tuple[Permission, ...]:
    """List what the documents allow; denials and statements with ``NotAction`` or ``NotResource`` are left out."""
    return tuple(dict.fromkeys(permission for document in documents for permission in _list_allowed(document)))


def find_uncovered(wanted: Iterable[Permission], given: Iterable[Permission]) -> list[Permission]:
    """Find the ``wanted`` permissions that no single one of ``given`` covers."""
    held = tuple(given)
    return [permission for permission in wanted if not any(other.covers(permission) for other in held)]


def _list_allowed(document: Document) -> Iterator[Permission]:
    for statement in _as_list(document["Statement"]):
        if statement["Effect"] == "Allow" and "Action" in statement and "Resource" in statement:
            conditions = frozenset(_list_conditions(statement))
            for action in _as_list(statement["Action"]):
                for resource in _as_list(statement["Resource"]):
                    yield Permission(action, resource, conditions)


def _list_conditions(statement: Statement) -> Iterator[tuple[str, str, frozenset[str]]]:
    conditions: Mapping[str, Mapping[str, Any]] = statement.get("Condition", {})
    for operator, keys in conditions.items():
        for key, values in keys.items():
            yield operator.lower(), key.lower(), frozenset(map(str, _as_list(values)))


def _is_weaker(one: tuple[str, str, frozenset[str]], another: tuple[str, str, frozenset[str]]) -> bool:
    return one[:2] == another[:2] and one[2] >= another[2]


def _is_match(pattern: str, text: str) -> bool:
    """Return True if ``pattern`` matches ``text``; only a wildcard in ``pattern`` matches a wildcard in ``text``."""
    parts = ("." if c == "?" else ".*" if c == "*" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
