"""Compare what statements of policies apply to: whether one is within others, and whether two meet at all.

A statement is taken apart into one principal, action and resource each, so that the order and the number of statements,
and of what each lists, make no difference.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, product
from operator import and_
from typing import Final

from infra.review.permissions import ANYONE, Statement

_POSITIVE: Final = frozenset({"StringEquals", "StringLike", "ArnEquals", "ArnLike"})
_NEGATED: Final = frozenset({"StringNotEquals", "StringNotLike", "ArnNotEquals", "ArnNotLike"})
_IF_EXISTS: Final = "IfExists"


def list_uncovered(some: Iterable[Statement], others: Sequence[Statement]) -> Iterator[Statement]:
    """List the parts of ``some`` that are not certainly within one of ``others``."""
    for statement in some:
        for part in _take_apart(statement):
            if not any(_covers(other, part) for other in others):
                yield part


def meet(one: Statement, other: Statement) -> bool:
    """Return whether some request may be of both statements."""
    parts = ((one.principals, other.principals), (one.actions, other.actions), (one.resources, other.resources))
    for some, others in parts:
        if some and others and not any(_intersect(a.lower(), b.lower()) for a, b in product(some, others)):
            return False
    return not any(
        name_key == other_key and not any(_intersect(a, b) for a, b in product(values, other_values))
        for (name_key, values), (other_key, other_values) in product(_list_required(one), _list_required(other))
    )


def _take_apart(statement: Statement) -> Iterator[Statement]:
    """Yield a statement for each combination; a list that the document does not have stays empty."""
    parts = (statement.principals or (None,), statement.actions or (None,), statement.resources or (None,))
    for principal, action, resource in product(*parts):
        yield replace(
            statement,
            principals=(principal,) if principal is not None else (),
            actions=(action,) if action is not None else (),
            resources=(resource,) if resource is not None else (),
        )


def _covers(wide: Statement, narrow: Statement) -> bool:
    """Return whether all that ``narrow`` applies to is certainly what ``wide`` applies to as well."""
    parts = ((wide.principals, narrow.principals), (wide.actions, narrow.actions), (wide.resources, narrow.resources))
    is_within = all(
        all(any(pattern == ANYONE or _matches(pattern.lower(), one.lower()) for pattern in patterns) for one in ones)
        for patterns, ones in parts
    )
    return is_within and all(_admits(name, values, narrow) for name, values in wide.conditions)


def _admits(name: str, wide: Sequence[str], narrow: Statement) -> bool:
    """Return whether a condition holds wherever the conditions of the narrow statement do."""
    operator, _, key = name.partition(" ")
    base, optional = operator.removesuffix(_IF_EXISTS), operator.endswith(_IF_EXISTS)
    for other_name, values in narrow.conditions:
        other, _, other_key = other_name.partition(" ")
        other_base, other_optional = other.removesuffix(_IF_EXISTS), other.endswith(_IF_EXISTS)
        if other_key.lower() != key.lower() or (other_optional and not optional):
            continue
        if base in _POSITIVE and other_base in _POSITIVE and values:
            return all(any(_matches(pattern, value) for pattern in wide) for value in values)
        if base in _NEGATED and other_base == base:
            return {*wide} <= {*values}
        if other_base == base:
            return {*wide} == {*values}
    return False


def _list_required(statement: Statement) -> list[tuple[str, tuple[str, ...]]]:
    """List the keys that a request has to have, with the values of which it has one."""
    named = ((name.partition(" "), values) for name, values in statement.conditions)
    return [(key, values) for (operator, _, key), values in named if operator in _POSITIVE]


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    # A question mark is no wildcard of the text that is matched, which may itself be a pattern.
    return re.compile("".join({"*": ".*", "?": "[^*]"}.get(character, re.escape(character)) for character in pattern))


def _matches(pattern: str, text: str) -> bool:
    return _compile(pattern).fullmatch(text) is not None


@cache
def _intersect(one: str, other: str) -> bool:
    """Return whether some text matches both patterns: by the beginnings of both, a row for each of the first one's."""
    row: list[bool] = [True, *accumulate((character == "*" for character in other), and_)]
    for character in one:
        above, row = row, [row[0] and character == "*"]
        for number, against in enumerate(other, start=1):
            if "*" in (character, against):
                row.append(above[number] or row[-1])
            else:
                row.append(above[number - 1] and (character == against or "?" in (character, against)))
    return row[-1]
