"""Every table of the pages is whole: no row outside it, none with more or fewer cells than its head."""

import re
from typing import Final

import pytest
from markdown_it import MarkdownIt

from tests.docs.fences import PAGES, ROOT

PARSER: Final = MarkdownIt().enable("table")
BAR: Final = re.compile(r"(?<!\\)\|")
"""GitHub divides cells at these, in code too: https://github.github.com/gfm/#tables-extension-"""


def list_broken(text: str) -> list[str]:
    """List the lines of rows that are outside a table, or not as wide as its head."""
    lines, broken = text.splitlines(), []
    for token in PARSER.parse(text):
        if token.type == "table_open" and token.map:
            rows = [lines[number].strip() for number in range(*token.map)]
            broken += [row for row in rows if len(BAR.findall(row)) != len(BAR.findall(rows[0]))]
        if token.type == "inline" and token.content.startswith("|"):
            broken += token.content.splitlines()
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_whole(page):
    assert list_broken(page.read_text("utf-8")) == []


HEAD = "| a | b |\n|---|---|\n"
TABLES: list[tuple[str, list[str]]] = [
    (f"{HEAD}| 1 | 2 |\n", []),
    (f"{HEAD}| 1 | `x \\| y` |\n", []),
    (f"{HEAD}| 1 | 2 |\n\n| 3 | 4 |\n| 5 | 6 |\n", ["| 3 | 4 |", "| 5 | 6 |"]),
    (f"{HEAD}| 1 | `x | y` |\n", ["| 1 | `x | y` |"]),
    (f"{HEAD}| 1 |\n", ["| 1 |"]),
    (f"```\n{HEAD}\n| 3 |\n```\n", []),
]


@pytest.mark.parametrize(("text", "expected"), TABLES)
def test_a_broken_table_is_seen(text, expected):
    assert list_broken(text) == expected
