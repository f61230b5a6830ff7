"""How often each guard of the modules in ``PARTS`` acts: a ``raise``, or an ``if`` that returns or goes on.

The product's modules are counted in while Python imports them, and are not changed. ``guards.txt`` says how often
10,000 histories have to come to each guard's act at least; 0 is for what no history plays. ``unreached.txt`` says why
not, and which test comes there.
"""

import ast
import importlib.abc
import importlib.machinery
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

PACKAGE: Final = Path(__file__).parents[2] / "job" / "lakewriter"
PARTS: Final = ("commit", "records", "run", "operate")
LEAST: Final = Path(__file__).with_name("guards.txt")
HISTORIES: Final = 10_000
"""What the least numbers are for."""
REACHED: Final = Counter[str]()
_HEAD: Final = (
    "# How often 10,000 histories come to each guard's act, at least: scripts/simulate --guards write makes it."
)


class _Counting(ast.NodeTransformer):
    """Puts a count before the act of each guard of a module; ``guards`` are the names that it gives them."""

    def __init__(self, module: str, text: str) -> None:
        self._module, self._text, self._within = module, text, list[str]()
        self._same = Counter[str]()
        self.guards: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function, whose name is part of its guards'."""
        return self._visit_named(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """The same of a class."""
        return self._visit_named(node)

    def _visit_named(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self._within.append(node.name)
        changed = self.generic_visit(node)
        self._within.pop()
        return changed

    def visit_Raise(self, node: ast.Raise) -> Any:
        """Two statements in the place of one."""
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        what = f"raises {self._show(raised)}" if raised is not None else "raises again"
        return [self._count(what, node), node]

    def visit_If(self, node: ast.If) -> Any:
        """A count in the body of one that ends its function or its turn."""
        self.generic_visit(node)
        if isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break):
            node.body.insert(0, self._count(f"if {self._show(node.test)}", node.body[0]))
        return node

    def _show(self, node: ast.AST) -> str:
        text = re.sub(r"# Rule [^\n]*", "", ast.get_source_segment(self._text, node) or "")
        return " ".join(text.split())

    def _count(self, what: str, node: ast.AST) -> ast.stmt:
        name = f"{self._module}:{'.'.join(self._within)} {what}"
        self._same[name] += 1
        if self._same[name] > 1:
            name = f"{name} {self._same[name]}"
        self.guards.append(name)
        return ast.copy_location(ast.parse(f"_REACHED[{name!r}] += 1").body[0], node)


def transform(text: str, module: str) -> tuple[ast.Module, list[str]]:
    """The module with the counts in it, and the names of its guards."""
    tree, counting = ast.parse(text), _Counting(module, text)
    tree = counting.visit(tree)
    if counting.guards:
        # Behind what has to come first in a module.
        first = [isinstance(each, ast.Expr) or _is_future(each) for each in tree.body].index(False)
        tree.body.insert(first, ast.parse("from tests.simulation.guards import REACHED as _REACHED").body[0])
    return ast.fix_missing_locations(tree), counting.guards


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        """The module's own text, counted in."""
        tree, _ = transform(self.get_data(self.path).decode(), fullname.removeprefix("lakewriter."))
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        """Of the modules that have guards."""
        if not fullname.startswith(tuple(f"lakewriter.{part}." for part in PARTS)):
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin is not None:
            found.loader = _Loader(fullname, found.origin)
        return found


def count_guards() -> None:
    """Count from now on; the product is not imported yet."""
    if loaded := [module for module in sys.modules if module.startswith("lakewriter.")]:
        raise RuntimeError(f"{loaded[0]} is imported already")
    sys.meta_path.insert(0, _Finder())


def list_guards() -> Iterator[str]:
    """Yield every guard by its name."""
    for part in PARTS:
        for file in sorted((PACKAGE / part).rglob("*.py")):
            module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
            yield from transform(file.read_text("utf-8"), module)[1]


def read_least() -> Mapping[str, int]:
    """The least number of each guard, by its name."""
    lines = (line.split(" ", 1) for line in LEAST.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {name: int(number) for number, name in lines}


def judge_guards(reached: Mapping[str, int], histories: int) -> list[str]:
    """What acted less often than it is to in so many histories, and guards without a number or without a place."""
    least, guards = read_least(), set(list_guards())
    wanted = {name: number * histories // HISTORIES for name, number in least.items() if name in guards}
    return [
        *(
            f"guard {name} acted {reached.get(name, 0)} times, expected {number} or more"
            for name, number in wanted.items()
            if reached.get(name, 0) < number
        ),
        *(f"guard {name} has no least number in {LEAST.name}" for name in sorted(guards - least.keys())),
        *(f"guard {name} of {LEAST.name} is in no module" for name in sorted(least.keys() - guards)),
    ]


def write_least(reached: Mapping[str, int], histories: int) -> None:
    """Ask for a quarter of what these histories came to, of each guard that is there now."""
    lines = [f"{reached.get(name, 0) * HISTORIES // histories // 4} {name}\n" for name in list_guards()]
    LEAST.write_text(f"{_HEAD}\n{''.join(lines)}", "utf-8")
