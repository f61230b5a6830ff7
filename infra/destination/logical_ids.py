"""Give stateful resources logical ids that depend on names alone, so that moving a construct does not replace them."""

import hashlib
import re

from aws_cdk import CfnElement
from constructs import IConstruct

_CAPITAL = re.compile(r"[A-Z]")
LONGEST = 200


def make_logical_id(kind: str, name: str, *, separator: str) -> str:
    """Join ``kind`` and ``name`` in camel case; if the name cannot be read back from it, a hash is appended."""
    words = "".join(word[:1].upper() + word[1:] for word in name.split(separator))
    back = _CAPITAL.sub(lambda match: separator + match[0].lower(), words).removeprefix(separator)
    if back == name and len(words) <= LONGEST:
        return kind + words
    return f"{kind}{words[:LONGEST]}{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def pin(construct: IConstruct, logical: str) -> None:
    """Give the construct's own resource a fixed logical id."""
    resource = construct.node.default_child
    if not isinstance(resource, CfnElement):
        raise TypeError(f"{construct.node.path} has no resource of its own to call {logical!r}")
    resource.override_logical_id(logical)
