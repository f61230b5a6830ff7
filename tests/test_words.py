"""The words of docstrings and names: counts that may only fall.

A function's docstring begins with what it does ("Return the rows"), not with a question word or an article, which
leave the verb to the reader. Names such as ``found`` or ``place`` stand for a thing that has a name of its own.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUESTION = re.compile(r"(?:What|Where|Whether|Who|Whose|Which|When|Why|How)\b")
ARTICLE = re.compile(r"(?:The|A|An)\b")
VAGUE = ("place", "places", "each", "found", "own", "known", "kept", "told")
MOST = {
    "functions that begin with a question word": 0,
    "modules that begin with a question word": 0,
    "functions that begin with an article": 0,
    **{f"names {name!r}": most for name, most in zip(VAGUE, (28, 10, 28, 29, 33, 36, 31, 6), strict=True)},
}


def list_bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module binds: parameters, variables and attributes of dataclasses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@cache
def count_words() -> Counter[str]:
    counts: Counter[str] = Counter()
    for folder in ("job", "infra"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            counts["modules that begin with a question word"] += bool(QUESTION.match(ast.get_docstring(tree) or ""))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    text = ast.get_docstring(node) or ""
                    counts["functions that begin with a question word"] += bool(QUESTION.match(text))
                    is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
                    counts["functions that begin with an article"] += bool(ARTICLE.match(text)) and not is_property
            counts.update(f"names {name!r}" for name in list_bound(tree) if name in VAGUE)
    return counts


@pytest.mark.parametrize("what", MOST)
def test_words(what: str) -> None:
    """More: write what the function does, or what the value is. Fewer: lower the number."""
    assert count_words()[what] <= MOST[what]
