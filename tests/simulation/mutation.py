"""A rule of the product that is taken out, where a marker is beside it.

A comment ``# Rule NAME`` stands above the code that has the rule, in whatever module and function. What it marks is
replaced: the statement below it, the head of one that has a body, or the operand, argument or entry on its line.
"""

import ast
import builtins
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[2] / "job" / "lakewriter"
MARKER: Final = re.compile(r"^[ \t]*# Rule (.+)\n", re.MULTILINE)
_COMMENTS: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[ \t]*")
_OPERATOR: Final = re.compile(r"(?:(?:and|or|in|if|else) |\*\*?)?")


@dataclass(frozen=True)
class Mutation:
    """What is put in the place of a rule.

    rule        what the product does, in words
    new         the code that replaces what has the mutation's name as its mark; blank where an entry or operand goes
    kinds       the tables in whose histories it can show
    held_by     the arguments of pytest for the tests that fail without the rule, where it shows in too few histories
    statements  how many statements are marked
    more        the code for further marks, by their names
    """

    rule: str
    new: str
    kinds: str = "files,glue,iceberg,airbyte,messages,estuary,batches"
    held_by: str = ""
    statements: int = 1
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Edit:
    """What replaces so many marked statements, or one marked part of an expression."""

    mark: str
    new: str
    statements: int


def list_edits(name: str, mutation: Mutation) -> Mapping[str, list[Edit]]:
    """List the edits by module; ``LookupError`` for a mark that is not there once."""
    edits: dict[str, list[Edit]] = defaultdict(list)
    for mark, new in {name: mutation.new, **mutation.more}.items():
        modules = find_marks().get(mark, [])
        if len(modules) != 1:
            raise LookupError(f"{mark} marks {len(modules)} places, expected one: {modules}")
        edits[modules[0]].append(Edit(mark, new, mutation.statements if mark == name else 1))
    return edits


@cache
def find_marks() -> Mapping[str, list[str]]:
    """Find the modules of all marks in the product."""
    marks: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for match in MARKER.finditer(path.read_text("utf-8")):
            for mark in match[1].split(", "):
                marks[mark].append(module)
    return marks


def change(source: str, edits: Sequence[Edit]) -> str:
    """Put the new code in the place of all that is marked. ``LookupError`` where it uses names that are not there."""
    marks = [edit.mark for edit in edits]
    for edit in edits:
        source = _replace(source, edit)
    if unknown := _list_unknown(ast.parse(source)):
        raise LookupError(f"what replaces {', '.join(marks)} uses {sorted(unknown)}, which are not there")
    return source


def _replace(source: str, edit: Edit) -> str:
    match = next((match for match in MARKER.finditer(source) if edit.mark in match[1].split(", ")), None)
    region = find_region(source, match.end(), edit.statements) if match is not None else None
    if region is None:
        raise LookupError(f"nothing is marked with {edit.mark}")
    start, end = region
    margin = start - source.rfind("\n", 0, start) - 1
    if not edit.new and (comma := re.match(r"\s*,", source[end:])):
        end += comma.end()
    return source[:start] + textwrap.indent(edit.new, " " * margin).strip() + source[end:]


def find_region(source: str, position: int, statements: int = 1) -> tuple[int, int] | None:
    """Find where the first code after ``position`` begins and ends; None where nothing begins there."""
    first = _COMMENTS.match(source, position)
    start = first.end() if first is not None else position
    tree, lines = ast.parse(source), _Lines(source)
    for nodes in _list_bodies(tree):
        numbers = [number for number, node in enumerate(nodes) if lines.find_start(node) == start]
        if numbers:
            last = nodes[min(numbers[0] + statements, len(nodes)) - 1]
            body = getattr(last, "body", None)
            is_head = statements == 1 and isinstance(body, list)
            end = lines.find_start(body[0]) if is_head and body is not None else lines.find_end(last)
            return start, start + len(_COMMENT_AT_END.sub("", source[start:end]).rstrip())
    return _find_part(tree, lines, source, start)


_COMMENT_AT_END: Final = re.compile(r"(?:\n[ \t]*#[^\n]*)+\s*\Z")


def _find_part(tree: ast.AST, lines: "_Lines", source: str, start: int) -> tuple[int, int] | None:
    """Find the largest part of an expression that begins there, behind an operator."""
    operator = _OPERATOR.match(source, start)
    begin = operator.end() if operator is not None else start
    ends = [_find_bracket(source, begin)]
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.keyword) and lines.find_start(node) in (start, begin):
            ends.append(lines.find_end(node))
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            ends += [
                lines.find_end(value) for key, value in pairs if key is not None and lines.find_start(key) == start
            ]
    return (start, max(ends)) if max(ends) else None


def _find_bracket(source: str, begin: int) -> int:
    """Return the position behind the bracket that closes the one at ``begin``; 0 where none begins there."""
    depth = 0
    for position in range(begin, len(source)) if source[begin : begin + 1] == "(" else ():
        depth += (source[position] == "(") - (source[position] == ")")
        if not depth:
            return position + 1
    return 0


def _list_bodies(tree: ast.AST) -> Iterator[list[ast.AST]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody", "handlers"):
            nodes = getattr(node, name, None)
            if isinstance(nodes, list):
                yield nodes


class _Lines:
    """Where nodes begin and end in a text."""

    def __init__(self, source: str) -> None:
        self._starts, self._lines = [0], source.splitlines(keepends=True)
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def find_start(self, node: ast.AST) -> int:
        """Return the position of the node's first character, of its first decorator where it has some."""
        nodes: list[ast.AST] = [*getattr(node, "decorator_list", []), node]
        first = min(nodes, key=lambda one: (one.lineno, one.col_offset))  # type: ignore[attr-defined]
        at = self._find(first.lineno, first.col_offset)  # type: ignore[attr-defined]
        return at - (first is not node)

    def find_end(self, node: ast.AST) -> int:
        """Return the position behind the node."""
        return self._find(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _find(self, number: int, column: int) -> int:
        # Columns count bytes.
        return self._starts[number - 1] + len(self._lines[number - 1].encode()[:column].decode())


def _list_unknown(tree: ast.AST) -> set[str]:
    used, there = set[str](), {*dir(builtins), "__file__", "__name__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                there.add(name)
            case ast.alias(name=name, asname=other):
                there.add((other or name).partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                there.add(name)
            case ast.MatchMapping(rest=str(name)) | ast.AsyncFunctionDef(name=name):
                there.add(name)
    return used - there
