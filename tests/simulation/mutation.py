"""A rule of the product that is taken out, as a change of a function that has it.

A change is pinned by the qualified name of the function, or of the constant, and by its syntax: the function may move
to another module, and its text may have other lines, comments and trailing commas.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = Path(__file__).parents[2] / "job" / "lakewriter"

_LAYOUT: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


@dataclass(frozen=True)
class Mutation:
    """``edits`` are by ``{module}:{name}``, the module under ``lakewriter.``: pairs of what is there and what is put in
    its place.

    ``kinds`` are the tables in whose histories it can show; ``held_by`` are the arguments of pytest for the tests that
    fail without the rule, where it shows in too few histories.
    """

    rule: str
    edits: Mapping[str, tuple[tuple[str, str], ...]]
    kinds: str = "files,glue,iceberg,airbyte,messages,estuary,batches"
    held_by: str = ""

    def list_modules(self) -> Mapping[str, list[tuple[str, str, str]]]:
        """List the modules that are changed, each with the names in it, what is there and what is put in its place."""
        modules: dict[str, list[tuple[str, str, str]]] = {}
        for pin, edits in self.edits.items():
            module, name = find_module(pin)
            modules.setdefault(module, []).extend((name, old, new) for old, new in edits)
        return modules


def leave_out(rule: str, pin: str, old: str, new: str, kinds: str = "", *, held_by: str = "") -> Mutation:
    return Mutation(rule, {pin: ((old, new),)}, kinds or Mutation.kinds, held_by)


class Token(NamedTuple):
    """A token that is no layout, with its place in the text."""

    text: str
    start: int
    end: int


def find_module(pin: str) -> tuple[str, str]:
    """Find the module of a pin: the one that it names, or the only other one that has such a name."""
    module, _, name = pin.partition(":")
    if _find_span(_read(module), name) is not None:
        return module, name
    others = [other for other in _list_modules() if _find_span(_read(other), name) is not None]
    if len(others) != 1:
        raise LookupError(f"{pin} is in {len(others)} modules, expected one: {others}")
    return others[0], name


def change(source: str, name: str, old: str, new: str) -> str:
    """Put ``new`` in the place of ``old`` in the function or constant of that name, where it must be once."""
    span = _find_span(source, name)
    if span is None:
        raise LookupError(f"there is no {name}")
    tokens = [token for token in _list_tokens(source) if span[0] <= token.start and token.end <= span[1]]
    wanted = [token.text for token in _list_tokens(re.sub(r"(?m)^[ \t]+", "", old))]
    places = list(_match(tokens, wanted)) or list(_match(_drop_last_commas(tokens), wanted))
    if len(places) != 1:
        raise LookupError(f"{name} has {len(places)} times, expected once: {old!r}")
    start, end = places[0]
    return source[:start] + _indent(source, start, old, new) + source[end:]


def _match(tokens: Sequence[Token], wanted: Sequence[str]) -> Iterator[tuple[int, int]]:
    texts = [token.text for token in tokens]
    for first in range(len(texts) - len(wanted) + 1):
        if texts[first : first + len(wanted)] == wanted:
            yield tokens[first].start, tokens[first + len(wanted) - 1].end


def _drop_last_commas(tokens: Sequence[Token]) -> list[Token]:
    following = [*tokens[1:], Token("", 0, 0)]
    return [token for token, then in zip(tokens, following, strict=True) if token.text != "," or then.text not in ")]}"]


def _indent(source: str, start: int, old: str, new: str) -> str:
    """Return the text that replaces ``old``, with the indentation of the line in which it is found."""
    before, lines = re.match(r"[ \t]*", old), new.rstrip("\n").split("\n")
    line = source[source.rfind("\n", 0, start) + 1 : start]
    if before is None or not before[0] or line.strip():
        return "\n".join(lines)
    # The function may be nested in another way than the text of the rule.
    more = len(line) - len(before[0])
    moved = (" " * more + one if more >= 0 else one.removeprefix(" " * -more) for one in lines[1:])
    return "\n".join([lines[0].removeprefix(before[0]), *moved])


def _list_tokens(text: str) -> list[Token]:
    """List the tokens of a module, or of a part of one, whose brackets need not be closed."""
    starts, tokens = [0], list[Token]()
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        for kind, string, (row, column), (last_row, last_column), _ in tokenize.generate_tokens(
            io.StringIO(text).readline
        ):
            if kind not in _LAYOUT:
                tokens.append(Token(string, starts[row - 1] + column, starts[last_row - 1] + last_column))
    except tokenize.TokenError:
        # The end of a part whose bracket is closed after it.
        return tokens
    return tokens


@cache
def _find_span(source: str, name: str) -> tuple[int, int] | None:
    """Find where a function, a class or a constant begins and ends; None where there is none of the name."""
    body: Sequence[ast.stmt] = ast.parse(source).body
    node: ast.stmt | None = None
    for part in name.split("."):
        node = next((one for one in body if part in _list_names(one)), None)
        if node is None:
            return None
        body = getattr(node, "body", [])
    assert node is not None
    lines = source.splitlines(keepends=True)
    decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
    first, last = min([node.lineno, *decorators]), node.end_lineno or node.lineno
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))


def _list_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def _read(module: str) -> str:
    path = PACKAGE / f"{module.replace('.', '/')}.py"
    return path.read_text("utf-8") if path.is_file() else ""


@cache
def _list_modules() -> tuple[str, ...]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple(".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in paths)
