"""Write a lake.yaml with comments: lines of keys, each with what it means or why it is proposed."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewriter.dialects.common.yaml_text import write_flow

WIDTH: Final = 112
_INDENT: Final = "  "


@dataclass(frozen=True)
class Line:
    """A key at ``depth``; its value in one line, or None for a mapping below it. ``is_item`` begins an item of a list,
    ``is_off`` puts the whole line into a comment."""

    depth: int
    key: str
    value: Any = None
    comment: str = ""
    is_item: bool = False
    is_off: bool = False
    is_mapping: bool = False

    def write(self) -> list[str]:
        """Return the line, or the comment above it and the line."""
        start = _INDENT * (self.depth - self.is_item) + ("- " if self.is_item else "")
        text = f"{start}{self.key}:" + ("" if self.is_mapping else f" {write_flow(self.value)}")
        if self.is_off:
            text = f"{_INDENT * (self.depth - self.is_item)}# {text.strip()}"
        return _add_comment(text, self.comment, self.depth)


def write_item(value: Any, comment: str, depth: int, *, is_off: bool) -> list[str]:
    """Return an item of a list, or the comment above it and the item; ``is_off`` puts the item into a comment."""
    return _add_comment(f"{_INDENT * depth}{'# ' if is_off else ''}- {write_flow(value)}", comment, depth)


def _add_comment(text: str, comment: str, depth: int) -> list[str]:
    """Put the comment behind the text, or above it where both are too long for a line."""
    comment = " ".join(comment.split())
    if not comment:
        return [text]
    if len(text) + len(comment) + 4 <= WIDTH:
        return [f"{text}  # {comment}"]
    return [*write_comment(comment, depth), text]


def write_comment(text: str, depth: int = 0) -> list[str]:
    """Lines of a comment, wrapped."""
    start = f"{_INDENT * depth}# "
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def write_lines(lines: Iterable[Line | str]) -> list[str]:
    """Lines of keys, and lines of text as they are."""
    return [text for line in lines for text in (line.write() if isinstance(line, Line) else [line])]


def write_mapping(key: str, content: Mapping[str, tuple[Any, str]], depth: int) -> list[Line]:
    """Return a mapping whose values have a comment each."""
    head = Line(depth, key, is_mapping=True)
    return [head, *(Line(depth + 1, write_flow(name), *entry) for name, entry in content.items())]
