"""The words of docstrings and names.

A docstring begins with what its function does ("Return the rows"), not with a question word or an article, which
leave the verb to the reader. Names such as ``found`` or ``place`` stand for a thing that has a name of its own.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUESTION = re.compile(r"(?:What|Where|Whether|Who|Whose|Which|When|Why|How)\b")
ARTICLE = re.compile(r"(?:The|A|An)\b")
VAGUE = frozenset({"place", "places", "each", "found", "own", "known", "kept", "told"})
PHRASES = re.compile(
    r"\b(?:goes by|go by|comes to|come to|gone on (?:from|with)|go on with|goes on with|gone over|sees to|of theirs"
    r"|whoever|(?:is|are|was|were) told|(?:tells?|telling|told) of|(?:go|goes|gone|went) away|asked for at|so far as"
    r"|in the place of|as (?:it|they) stands?|(?:a copy|most) of it)\b",
    re.IGNORECASE,
)
"""Phrases that leave open who does what. A sentence names who does it, and the thing that is done."""
ON_S3 = {
    "job/lakewriter/records/sync_records.py: name 'place'",
    "job/lakewriter/receipt.py: name 'found'",
}
"""Keys of objects on S3, which earlier releases read."""


def list_words(path: Path) -> Iterator[str]:
    """Yield what a module's docstrings and names begin with or say that they should not."""
    tree = ast.parse(path.read_text("utf-8"))
    name = path.relative_to(ROOT).as_posix()
    if QUESTION.match(ast.get_docstring(tree) or ""):
        yield f"{name}: the module's docstring begins with a question word"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            if QUESTION.match(text) or (ARTICLE.match(text) and not is_property):
                yield f"{name}: the docstring of {node.name} is no order"
        given = _find_name(node)
        if given is not None and given.strip("_").lower() in VAGUE:
            yield f"{name}: name {given!r}"


def _find_name(node: ast.AST) -> str | None:
    """Return the name that a part of a module gives to something."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return None


@pytest.mark.parametrize("folder", ["job", "infra"])
def test_words(folder: str) -> None:
    """Write what the function does, or what the value is."""
    found = [word for path in sorted((ROOT / folder).rglob("*.py")) for word in list_words(path)]
    assert [word for word in found if word not in ON_S3] == []


@pytest.mark.parametrize("folder", ["job", "infra", "docs"])
def test_phrases(folder: str) -> None:
    """Name who does what, in comments, docstrings, messages and pages."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    paths = pages if folder == "docs" else sorted((ROOT / folder).rglob("*.py"))
    # A sentence may go on in the next line, of a comment or of a string.
    texts = {path: re.sub(r"\n\s*(?:# )?|\"\s*\n\s*f?\"", " ", path.read_text("utf-8")) for path in paths}
    found = [f"{path.relative_to(ROOT)}: {phrase}" for path, text in texts.items() for phrase in PHRASES.findall(text)]
    assert found == []
