"""How deep JSON text nests, told from its bytes before anything decodes it.

A decoder calls itself once a level and ends with RecursionError where the interpreter's limit is reached: at another
depth on another thread, and as no error of the value. So a depth is decided on here, and room is made to decode it.
"""

import re
import sys
from typing import Final

LEVELS: Final = 994
"""Objects and arrays inside one another that a document may have, itself included.

Jackson, which Spark and Athena read JSON with, takes 1,000; a message and a line of a file put up to six around it.
"""
MESSAGE_LEVELS: Final = LEVELS + 2
"""The same of an Airbyte message, which has its record's data two levels inside."""

_FRAMES: Final = 4000
"""Of the interpreter's limit: four times what a document takes, as a caller may be a thousand calls deep, and what
walks through values takes more than one call a level."""
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)', re.DOTALL)
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_OPENS: Final = ord("[")
_ROUNDS: Final = 20
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))

sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))


def is_too_deep(text: str | bytes, levels: int = LEVELS) -> bool:
    """Whether JSON text nests more than so many levels; text that is no JSON may be either."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    rest = _STRINGS.sub(b"", raw).translate(_AS_ARRAYS, _OTHERS)
    rounds = min(_ROUNDS, levels)
    for _ in range(rounds):
        # The innermost of all branches: what is wide and not deep is empty soon.
        rest = rest.replace(b"[]", b"")
    level = rounds
    for mark in rest:
        level += 1 if mark == _OPENS else -1
        if level > levels:
            return True
    return False


def too_deep(levels: int = LEVELS) -> str:
    """What is wrong with such a text."""
    return f"it nests more than {levels} levels deep"


def outline(text: bytes, levels: int) -> bytes:
    """JSON text with null for all that lies deeper than so many levels."""
    pieces: list[bytes] = []
    level = end = 0
    for found in _PARTS.finditer(text):
        mark = found[0]
        if mark in b"[{":
            level += 1
            if level == levels + 1:
                pieces += [text[end : found.start()], b"null"]
        elif mark in b"]}":
            if level == levels + 1:
                end = found.end()
            level -= 1
    return b"".join([*pieces, text[end:]]) if level <= levels else b"".join(pieces)


_PARTS: Final = re.compile(_STRINGS.pattern + rb"|[\[\]{}]", re.DOTALL)
