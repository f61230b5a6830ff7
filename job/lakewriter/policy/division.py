"""Divide statements into as many policy documents as IAM's limits ask for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns
from lakewriter.policy.statements import Statement

LIMIT: Final = 6144
"""Characters of a managed policy without white space."""
MOST: Final = 9
"""The most documents of one role: IAM attaches ten policies by default, and one is the pipeline stack's.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""
_ROOM: Final = LIMIT - len('{"Version":"2012-10-17","Statement":[]}') - 1
_LONGEST: Final = {"key": "k" * 90, "partition": "aws-us-gov", "account": "0" * 12, "region": "ap-southeast-1"}
"""The longest of each part of an ARN; a key's has the others in it. Parts may be CDK tokens, of any length."""


def divide(named: Mapping[str, Sequence[Statement]], arns: Arns) -> dict[str, list[Statement]]:
    """Divide each name's statements, numbering its further documents; together if each alone makes too many.

    Raises ``SPEC_INVALID`` if they do not fit into the policies of a role.
    """
    divided = dict(_divide_each(named, arns))
    if len(divided) > MOST:
        together = [statement for statements in named.values() for statement in statements]
        divided = dict(_divide_each({"All": together}, arns))
    if len(divided) > MOST:
        raise SpecInvalidError(
            f"the permissions of one role make {len(divided)} policies; IAM attaches at most {MOST + 1}, one of them "
            "the pipeline stack's.",
            remedy="Divide the tables over several files, or give their sources common folders.",
        )
    return divided


def count_characters(value: Any, arns: Arns) -> int:
    """Count the characters of a statement without white space, as IAM does, with the longest of ARNs' parts."""
    text = json.dumps(value, separators=(",", ":"))
    for part, longest in _LONGEST.items():
        text = text.replace(getattr(arns, part) or longest, longest)
    return len(text)


def _divide_each(named: Mapping[str, Sequence[Statement]], arns: Arns) -> Iterator[tuple[str, list[Statement]]]:
    for name, statements in named.items():
        for number, document in enumerate(_fill(statements, arns), start=1):
            yield name if number == 1 else f"{name}{number}", document


def _fill(statements: Sequence[Statement], arns: Arns) -> Iterator[list[Statement]]:
    """Fill documents with statements in their order. Two parts of one statement, which have one id, never meet."""
    document: list[Statement] = []
    room = _ROOM
    for statement in statements:
        for part in _split(statement, arns):
            size = count_characters(part, arns) + 1
            if document and (
                size > room or any(statement_before["Sid"] == part["Sid"] for statement_before in document)
            ):
                yield document
                document, room = [], _ROOM
            document.append(part)
            room -= size
    if document:
        yield document


def _split(statement: Statement, arns: Arns) -> Iterator[Statement]:
    """Split a statement that no document holds: by its resources, or by the values of its only condition.

    The parts together allow, or deny, what the whole does: resources and the values of a key are alternatives. That
    is not so for the values of a negated operator, nor of one condition of several.
    """
    if count_characters(statement, arns) <= _ROOM:
        yield statement
        return
    resources = statement["Resource"]
    if len(resources) > 1:
        frame = count_characters({**statement, "Resource": []}, arns)
        yield from ({**statement, "Resource": part} for part in _chunk(resources, _ROOM - frame, arns))
        return
    ((operator, keys),) = statement["Condition"].items()
    ((key, values),) = keys.items()
    frame = count_characters({**statement, "Condition": {operator: {key: []}}}, arns)
    for part in _chunk(values, _ROOM - frame, arns):
        yield {**statement, "Condition": {operator: {key: part}}}


def _chunk(values: Sequence[str], room: int, arns: Arns) -> Iterator[list[str]]:
    chunk: list[str] = []
    left = room
    for value in values:
        size = count_characters(value, arns) + 1
        if chunk and size > left:
            yield chunk
            chunk, left = [], room
        chunk.append(value)
        left -= size
    yield chunk
