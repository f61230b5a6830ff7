"""documents.csv is whole: what it names exists, and each key of a vendor's destination has a row."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.write_differences import DIFFERS, VENDORS, make_pages, read_statements
from lakewriter.dialects.lake_schema import make_lake_schema

ROOT = Path(__file__).parents[2]
NOT_A_DOCUMENTS = {"lakewriter-s3"}
"""The destination that no vendor documents."""
ROWS = {
    "Supaflow Amazon S3, and what S3 Data Lake shares with it": 53,
    "Supaflow S3 Data Lake": 30,
    "Airbyte S3": 40,
    "Hero Pixel S3": 20,
    "Estuary Parquet in S3": 18,
    "Keys that no document has": 5,
}
"""The statements of each document: one that goes is a decision."""


@cache
def list_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", read_statements(), ids=lambda row: row.statement[:60])
def test_what_a_row_names_is_there(row) -> None:
    assert (ROOT / "job" / "lakewriter" / row.built_in).exists() or (ROOT / row.built_in).exists(), row.built_in
    file, _, name = row.held_by.partition("::")
    assert name in list_tests(ROOT / "tests" / file)
    assert row.state in {"same", "more", DIFFERS}
    assert row.here or row.state == "same"


def test_no_statement_has_gone() -> None:
    documents = [row.document for row in read_statements()]
    assert {document: documents.count(document) for document in documents} == ROWS


@pytest.mark.parametrize(("page", "text"), make_pages().items())
def test_pages_of_what_differs_are_current(page: str, text: str) -> None:
    assert (ROOT / "docs" / page).read_text("utf-8") == text, "run scripts/reference"


@pytest.mark.parametrize(("vendor", "name", "guide"), [(vendor, *pages) for vendor, pages in VENDORS.items()])
def test_each_vendor_has_a_page_of_what_differs(vendor: str, name: str, guide: str) -> None:
    rows = [row for row in read_statements() if row.document.startswith(vendor) and row.state == DIFFERS]
    text = make_pages()[f"differences-{name}.md"]
    assert [f"| {row.statement} | {row.here} |" for row in rows] == re.findall(r"^\| (?!the document).*", text, re.M)
    # Whoever moves over reads it in five minutes.
    assert rows
    assert len(text.split()) < 1000
    assert f"](differences-{name}.md)" in (ROOT / "docs" / guide.partition("#")[0]).read_text("utf-8")


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
    text = "\n".join(row.statement for row in read_statements())
    assert sorted(key for key in list_keys() if f"`{key}`" not in text) == []
    assert len(list_keys()) > 40
