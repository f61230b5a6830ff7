"""Control objects as a later release may write them: with fields that ours does not know, or with needs."""

import json
from typing import Any, Final

LATER: Final = {"since": "a later release", "list": [1, {"deep": True}]}
_MAPS: Final = ("running", "requests", "undeclared", "columns", "tables", "writers")
"""Fields whose keys are names of something, not fields."""


def grow(value: Any, *, is_map: bool = False) -> Any:
    """The content with a field ``later`` at every level."""
    if isinstance(value, list):
        return [grow(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {name: grow(each, is_map=name in _MAPS) for name, each in value.items()}
    return inner if is_map else inner | {"later": LATER}


def grow_body(body: bytes) -> bytes:
    """The same of an object's bytes."""
    return json.dumps(grow(json.loads(body)), indent=1).encode()


def kept(value: Any, path: str = "") -> list[str]:
    """The places at which ``later`` is."""
    if isinstance(value, list):
        return [found for number, each in enumerate(value) for found in kept(each, f"{path}.{number}")]
    if not isinstance(value, dict):
        return []
    own = [path or "."] if value.get("later") == LATER else []
    return own + [found for name, each in value.items() if name != "later" for found in kept(each, f"{path}.{name}")]
