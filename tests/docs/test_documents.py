"""docs/documents.md is whole: what it names exists, each key of a destination has a row, and rows are counted."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.write_differences import DIFFERS, ROW, SECTION, VENDORS, make_pages
from lakewriter.dialects.lake_schema import make_lake_schema

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "documents.md").read_text("utf-8")
NOT_A_DOCUMENTS = {"lakewriter-s3"}
"""The destination that no vendor documents."""


@cache
def list_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", list(ROW.finditer(TEXT)), ids=lambda row: row["what"][:60])
def test_what_a_row_names_is_there(row: re.Match[str]) -> None:
    built = row["built"]
    assert (ROOT / "job" / "lakewriter" / built).exists() or (ROOT / built).exists(), built
    assert row["name"] in list_tests(ROOT / "tests" / row["test"])


@pytest.mark.parametrize("section", list(SECTION.finditer(TEXT)), ids=lambda section: section["title"])
def test_rows_are_as_many_as_the_heading_says(section: re.Match[str]) -> None:
    lines = [line for line in section["body"].splitlines() if line.startswith("| ")]
    # All lines of the table but its head are rows that name what they should.
    assert (len(ROW.findall(section["body"])), len(lines)) == (int(section["count"]), int(section["count"]) + 1)


@pytest.mark.parametrize("row", list(ROW.finditer(TEXT)), ids=lambda row: row["what"][:60])
def test_a_row_has_a_state_and_says_what_it_means(row: re.Match[str]) -> None:
    assert row["state"] in {"same", "more", DIFFERS}
    assert row["here"] or row["state"] == "same"


@pytest.mark.parametrize(("page", "text"), make_pages().items())
def test_pages_of_what_differs_are_current(page: str, text: str) -> None:
    assert (ROOT / "docs" / page).read_text("utf-8") == text, "run scripts/reference"


@pytest.mark.parametrize(("vendor", "name", "guide"), [(vendor, *pages) for vendor, pages in VENDORS.items()])
def test_each_vendor_has_a_page_of_what_differs(vendor: str, name: str, guide: str) -> None:
    sections = [section for section in SECTION.finditer(TEXT) if section["title"].startswith(vendor)]
    rows = [row for section in sections for row in ROW.finditer(section["body"]) if row["state"] == DIFFERS]
    text = make_pages()[f"differences-{name}.md"]
    assert [f"| {row['what']} | {row['here']} |" for row in rows] == re.findall(r"^\| (?!the document).*", text, re.M)
    # Whoever moves over reads it in five minutes.
    assert rows
    assert len(text.split()) < 1000
    guides = [ROOT / "docs" / "documents.md", ROOT / "docs" / guide.partition("#")[0]]
    assert all(f"](differences-{name}.md)" in page.read_text("utf-8") for page in guides)


def list_keys() -> set[str]:
    """List the keys of the vendors' destinations."""
    keys: set[str] = set()
    for model in make_lake_schema()["$defs"].values():
        properties = model.get("properties", {})
        kinds = {properties.get("type", {}).get("const"), *properties.get("type", {}).get("enum", ())} - {None}
        if kinds and not kinds & NOT_A_DOCUMENTS and "upload_parallelism" in properties:
            keys |= set(properties)
    return keys


def test_every_key_of_a_vendors_destination_has_a_row() -> None:
    assert sorted(key for key in list_keys() if f"`{key}`" not in TEXT) == []
    assert len(list_keys()) > 40
