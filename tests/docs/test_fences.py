"""Every block of code in the pages: loaded, run, or held to the program that takes it."""

import ast
import inspect
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import duckdb
import pytest
import sqlglot

import lakewriter
from lakewriter.dialects.lake_yaml import load_spec
from tests.docs.fences import Fence, list_fences
from tests.docs.shell import check_command, read_commands, require_syntax, split_commands
from tests.docs.yaml_fences import load_fence

FENCES: Final = list_fences()
NAMES: Final = [str(fence) for fence in FENCES]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder with what commands of the pages name."""
    for name in ("lake.yaml", "my/lake.yaml", "data/orders.csv", "destination.json", "configured_catalog.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("fence", FENCES, ids=NAMES)
def test_a_block_is_what_its_language_says(fence, reader):
    assert fence.language in WAYS, f"{fence} has the language {fence.language!r}, expected one of {sorted(WAYS)}"
    WAYS[fence.language](fence, reader)


def test_there_are_blocks_of_each_language():
    """The pages are found: a language that is gone from all of them goes from here too."""
    assert Counter(fence.language for fence in FENCES).keys() == WAYS.keys()


QUICKSTARTS: Final = [fence for fence in FENCES if "quickstarts/" in fence.page and fence.language == "yaml"]


@pytest.mark.parametrize("fence", QUICKSTARTS, ids=str)
def test_a_quickstart_is_taken_without_a_warning(fence, tmp_path):
    assert load_fence(fence, tmp_path) == "whole"
    assert load_spec(tmp_path / "lake.yaml").warnings == ()


def check_shell(fence: Fence, _: Any) -> None:
    script = read_commands(fence.code, fence.language)
    require_syntax(script)
    for words in split_commands(script):
        try:
            check_command(words)
        except Exception as error:
            raise AssertionError(f"{fence}: {' '.join(words)}: {error}") from error


def check_yaml(fence: Fence, folder: Any) -> None:
    load_fence(fence, folder)


def check_json(fence: Fence, _: Any) -> None:
    json.loads(fence.code)


def check_sql(fence: Fence, _: Any) -> None:
    """DuckDB's by its own parser, Athena's by sqlglot's."""
    if "read_parquet" in fence.code or "read_json" in fence.code:
        assert duckdb.extract_statements(fence.code)
    else:
        assert sqlglot.parse(fence.code, dialect="athena")


def check_python(fence: Fence, _: Any) -> None:
    """Each name of the package is there, and each call of a function of it has arguments that it takes."""
    for node in ast.walk(ast.parse(fence.code)):
        if isinstance(node, ast.Call) and (name := _read_name(node.func)):
            by_name = {str(each.arg): None for each in node.keywords}
            inspect.signature(getattr(lakewriter, name)).bind(*node.args, **by_name)
        elif name := _read_name(node):
            assert hasattr(lakewriter, name), f"{fence}: lakewriter has no {name}"


def _read_name(node: ast.AST) -> str:
    """``write`` of ``lakewriter.write``, blank for anything else."""
    is_ours = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lakewriter"
    return node.attr if isinstance(node, ast.Attribute) and is_ours else ""


def check_text(fence: Fence, _: Any) -> None:
    """Keys and output, which no program takes."""
    assert fence.code.strip()


WAYS: Final[dict[str, Callable[[Fence, Any], None]]] = {
    "sh": check_shell,
    "console": check_shell,
    "yaml": check_yaml,
    "json": check_json,
    "sql": check_sql,
    "python": check_python,
    "text": check_text,
}
