"""Logical ids of what must not be replaced: they follow from names alone, wherever a construct stands in the tree."""

import hashlib
import re

from aws_cdk import CfnElement
from constructs import IConstruct

_CAPITAL = re.compile(r"[A-Z]")
LONGEST = 200


def logical_id(kind: str, name: str, *, separator: str) -> str:
    """``kind`` and ``name`` in capitals; a name that this does not keep apart from all others gets a hash."""
    words = "".join(word[:1].upper() + word[1:] for word in name.split(separator))
    back = _CAPITAL.sub(lambda found: separator + found[0].lower(), words).removeprefix(separator)
    if back == name and len(words) <= LONGEST:
        return kind + words
    return f"{kind}{words[:LONGEST]}{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def pin(construct: IConstruct, logical: str) -> None:
    """Gives the construct's own resource a logical id that stays."""
    resource = construct.node.default_child
    if not isinstance(resource, CfnElement):
        raise TypeError(f"{construct.node.path} has no resource of its own to call {logical!r}")
    resource.override_logical_id(logical)
