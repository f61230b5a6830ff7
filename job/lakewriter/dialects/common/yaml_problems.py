"""Explain what is wrong with a YAML text, in the same words whichever parser has found it.

No message shows the text around the place, which may hold a secret.
"""

import re
from typing import Any, Final

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""https://yaml.org/spec/1.1/#c-printable"""


class YamlProblemError(Exception):
    """The reason why a text cannot be read, and its line (from 1)."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def refuse_unprintable(text: str) -> None:
    """Raise ``YamlProblemError`` for a control character and its kin, which no YAML may have."""
    match = _UNPRINTABLE.search(text, 1 if text.startswith("\ufeff") else 0)
    if match:
        line = len(_BREAK.findall(text, 0, match.start())) + 1
        raise YamlProblemError(line, f"the character U+{ord(match[0]):04X} is not allowed in YAML; remove it")


def explain_error(error: Any, text: str) -> YamlProblemError:
    """Explain a parser's error. The two parsers differ in words and marks; the text is made of what both share."""
    problem, context = str(getattr(error, "problem", None) or ""), str(getattr(error, "context", None) or "")
    mark = getattr(error, "problem_mark", None)
    begun = getattr(error, "context_mark", None) or mark
    lines = _BREAK.split(text.rstrip())
    line, begins = (min(mark_of.line, len(lines) - 1) + 1 if mark_of else 1 for mark_of in (mark, begun))
    before, at = _split_at_mark(lines[line - 1], mark)
    if "mapping values are not allowed" in problem and (above := _find_line_without_key(lines[:line])):
        return YamlProblemError(above, "expected ': ' between a key and its value")
    for pattern, said, is_of_context in _FAULTS:
        if re.search(pattern, f"{context}: {problem}: {_describe_position(before)}"):
            said_line = begins if is_of_context else line
            return YamlProblemError(said_line, said.format(at=at))
    return YamlProblemError(line, "this is not YAML; put text with special characters in quotes")


def _find_line_without_key(lines: list[str]) -> int | None:
    """Return the number of the line above the last one if it begins as far left and is a key without its colon."""
    number = next((at for at in range(len(lines) - 1, 0, -1) if lines[at - 1].split("#")[0].strip()), None)
    if number is None:
        return None
    above, last = lines[number - 1], lines[-1]
    is_aligned = len(above) - len(above.lstrip(" -")) == len(last) - len(last.lstrip(" -"))
    return number if is_aligned and ":" not in above else None


def _split_at_mark(line: str, mark: Any) -> tuple[str, str]:
    """Return the text before the mark in its line, and the character at the mark."""
    column = mark.column if mark else 0
    return line[:column], repr(line[column]) if column < len(line) else "the end"


def _describe_position(before: str) -> str:
    return "first in line" if not before.strip() else "further on"


_OUTDENTED: Final = "this line is not indented like those above that it belongs with; align it with them"

_FAULTS: Final = (
    # what the parsers say, what is said here, whether the line is that on which the faulty thing begins
    (r"'\\t'|tab character|cannot start any token: first in line$", "a tab or {at} cannot begin a line; indent with "
     "spaces, and put text that begins with a special character in quotes", False),
    ("cannot start any token", "a value cannot begin with {at}; put it in quotes", False),
    ("mapping values are not allowed", "a ': ' is not allowed here; put a value that has one in quotes, and align keys "
     "of one mapping", False),
    ("sequence entries are not allowed", "a list's '- ' is not allowed here; begin the list on a line of its own",
     False),
    ("flow sequence.*expected ',' or ']'", "the list that begins here with '[' has no ']', or no ',' between two "
     "items", True),
    ("flow mapping.*expected ',' or '}'", "the mapping that begins here with '{{' has no '}}', or no ',' between two "
     "keys", True),
    ("flow node", "a '[' or '{{' before the end of this line has no end", False),
    ("quoted scalar: found unexpected", "the text that begins here with a quote does not end with one", True),
    ("could not find expected ':'", "expected a key with ': ' behind it, or a value indented below its key", True),
    ("unknown escape|escape sequence|escape code", "this backslash in double quotes begins no known escape; use "
     "single quotes, or two backslashes", False),
    ("block scalar", "text of several lines begins on the line below its '|' or '>'", True),
    ("block mapping.*first in line$", _OUTDENTED, False),
    ("block mapping", "{at} follows the end of a value; put the whole value in quotes", False),
    ("block collection", "expected '- ' as in the items above, or a key indented below one of them", False),
    ("node content", "expected a value, got {at}; put text that begins with it in quotes", False),
    ("tag", "'!' begins a tag that is not known here; put text that begins with it in quotes", True),
    ("anchor|alias", "'&' and '*' begin a name that others refer to; put text that begins with them in quotes", True),
    ("directive|incompatible|<document start>|percent", "a line that begins with '%' is a directive of another YAML, "
     "and what follows no document; remove it", False),
)  # fmt: skip
