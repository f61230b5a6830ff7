"""docs/documents.md is whole: what it names exists, each key of a destination has a row, and rows are counted."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from lakewriter.dialects.lake_schema import make_lake_schema

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "documents.md").read_text("utf-8")
ROW = re.compile(r"^\| (?P<what>.+?) \| `(?P<built>[^`|]+)` \| `(?P<test>[^`|]+)::(?P<name>\w+)` \| .*\|$", re.M)
SECTION = re.compile(r"^## (?P<title>.+): (?P<count>\d+)\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
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
