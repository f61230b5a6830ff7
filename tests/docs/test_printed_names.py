"""What messages, remedies and comments of the code name in the documentation is there, down to the heading."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lakewriter.errors import CODES
from tests.docs.fences import ROOT

DOCS: Final = ROOT / "docs"
SOURCES: Final = [
    *(path for folder in ("job", "infra") for path in sorted((ROOT / folder).rglob("*.py"))),
    *(path for folder in ("examples", "scripts") for path in sorted((ROOT / folder).rglob("*")) if path.is_file()),
    ROOT / "app.py",
]
LINK: Final = re.compile(r"(?<![\w/])docs/([\w./-]+\.md)(?:#([\w-]+))?")
PAGE: Final = re.compile(r"lakewriter docs ([A-Za-z_-]+|\{\w[\w.]*\})")
SAID: Final = re.compile(r"lakewriter docs (?:lists|finds|WORDS|PAGE|CODE)")
"""Of the command itself."""


def list_anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in titles}


def list_named(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for path in SOURCES:
        # A message may go on in the next line: "lakewriter docs " "guide-iceberg".
        text = re.sub(r'["\']\s*\n\s*f?["\']|\n\s*#?\s*', " ", path.read_text("utf-8", "ignore"))
        yield from ((str(path.relative_to(ROOT)), found) for found in pattern.finditer(text))


LINKS: Final = sorted({(found[1], found[2] or "", where) for where, found in list_named(LINK)})
PAGES: Final = sorted(
    {(found[1], where) for where, found in list_named(PAGE) if not SAID.match(found[0])}, key=lambda row: row[::-1]
)


def test_the_code_names_pages():
    """As the alarms do, whose anchors are their own names: tests/infra/pipeline/test_runbook.py has these."""
    assert {page for page, *_ in LINKS} >= {"troubleshooting.md"}
    assert {name for name, _ in PAGES} >= {"{error.code}", "guide-iceberg"}


@pytest.mark.parametrize(("page", "anchor", "where"), LINKS)
def test_a_page_and_its_heading_are_there(page, anchor, where):
    assert (DOCS / page).is_file()
    assert not anchor or anchor in list_anchors(DOCS / page)


@pytest.mark.parametrize(("name", "where"), PAGES)
def test_what_docs_is_asked_for_is_there(name, where):
    if name.startswith("{"):
        # The code of whatever error it is.
        assert name.strip("{}").endswith("code")
        anchors = list_anchors(DOCS / "troubleshooting.md")
        assert {code.lower() for code in CODES} <= anchors
    else:
        assert name in CODES or (DOCS / f"{name}.md").is_file()
