"""What one set of documents allows and another does not, permission by permission."""

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
        """Whether all that ``other`` allows is allowed by this one alone."""
        return (
            _matches(self.action.lower(), other.action.lower())
            and _matches(self.resource, other.resource)
            and all(any(_weaker(mine, theirs) for theirs in other.conditions) for mine in self.conditions)
        )

    def __str__(self) -> str:
        return f"{self.action} on {self.resource}"


def permissions(documents: Iterable[Document]) -> tuple[Permission, ...]:
    """What the documents allow; statements by ``NotAction`` or ``NotResource``, and what they deny, are left out."""
    return tuple(dict.fromkeys(found for each in documents for found in _allowed(each)))


def uncovered(wanted: Iterable[Permission], given: Iterable[Permission]) -> list[Permission]:
    """Those of ``wanted`` that no single one of ``given`` covers."""
    held = tuple(given)
    return [each for each in wanted if not any(other.covers(each) for other in held)]


def _allowed(document: Document) -> Iterator[Permission]:
    for statement in _listed(document["Statement"]):
        if statement["Effect"] == "Allow" and "Action" in statement and "Resource" in statement:
            conditions = frozenset(_conditions(statement))
            for action in _listed(statement["Action"]):
                for resource in _listed(statement["Resource"]):
                    yield Permission(action, resource, conditions)


def _conditions(statement: Statement) -> Iterator[tuple[str, str, frozenset[str]]]:
    conditions: Mapping[str, Mapping[str, Any]] = statement.get("Condition", {})
    for operator, keys in conditions.items():
        for key, values in keys.items():
            yield operator.lower(), key.lower(), frozenset(map(str, _listed(values)))


def _weaker(mine: tuple[str, str, frozenset[str]], theirs: tuple[str, str, frozenset[str]]) -> bool:
    return mine[:2] == theirs[:2] and mine[2] >= theirs[2]


def _matches(pattern: str, text: str) -> bool:
    """``text`` may be a pattern itself: a wildcard in it is met by one in ``pattern`` only."""
    parts = ("." if c == "?" else ".*" if c == "*" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
