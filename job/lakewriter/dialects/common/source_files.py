"""The files of a specification, YAML and JSON: read within bounds, with the line of every key."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.yaml_nodes import MAX_DEPTH, Node, compose, to_python
from lakewriter.dialects.common.yaml_problems import YamlProblemError
from lakewriter.errors import SpecInvalidError

Location = tuple[str | int, ...]

MAX_MIB: Final = 32
"""A YAML file is at most so large. Ten thousand tables with columns have 10 MiB, a hundred collections' schemas 1."""
MAX_JSON_MIB: Final = 64
"""A JSON file is at most so large. The configured catalog of a source with thousands of streams has tens of MiB."""
MAX_VALUES: Final = 8_000_000
"""The most keys and values of a JSON file, which has no aliases."""
_KINDS: Final[Mapping[type, str]] = {
    type(None): "nothing",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def describe_kind(value: Any) -> str:
    """Describe the kind of a value, as a person says it."""
    return _KINDS.get(type(value), "a date")


class SpecFile:
    """One file: its name, its content, and where in the content each key is."""

    def __init__(self, name: str, content: Any, node: Node | None = None, text: str = "") -> None:
        self.name = name
        self.content = content
        self._node = node
        self._text = text

    def describe_position(self, location: Location) -> str:
        """Return ``lake.yaml:12: tables.0.read``: the nearest line to ``location`` that the file has, keys as it has
        them."""
        node, line, steps = self._root, None, []
        line = node and node.line if not location else None
        for step in location:
            child = node.get_child(step) if node is not None else None
            node, line = (child.node, child.line) if child else (None, line)
            steps.append(child.text if child else str(step))
        line_name = f"{self.name}:{line}" if line else self.name
        return f"{line_name}: {'.'.join(steps)}" if steps else line_name

    @cached_property
    def _root(self) -> Node | None:
        """The root of the nodes. For JSON it is needed only when something is wrong with the file: most JSON is YAML
        too."""
        if self._node is not None or not self._text:
            return self._node
        try:
            return compose(self._text)
        except YamlProblemError:
            return None


@dataclass(frozen=True)
class Position:
    """A key's place in a file."""

    file: SpecFile
    steps: Location = ()

    def get_child(self, *steps: str | int) -> "Position":
        """Return the place of a key in the mapping or the list here."""
        return Position(self.file, (*self.steps, *steps))

    def __str__(self) -> str:
        return self.file.describe_position(self.steps)


def read_yaml(path: Path, called: str = "") -> SpecFile:
    """Return the YAML or JSON file at ``path``; ``called`` is the key that names it."""
    name = path.name
    text = _read_text(path, called, MAX_MIB)
    try:
        node = compose(text)
    except YamlProblemError as problem:
        raise SpecInvalidError(f"{name}:{problem.line}: {problem.text}.") from problem
    return SpecFile(name, None if node is None else to_python(node), node)


def read_json(path: Path, called: str = "") -> SpecFile:
    """Return the JSON file at ``path``; ``called`` is the key that names it."""
    text = _read_text(path, called, MAX_JSON_MIB)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        said = f"{error.msg[0].lower()}{error.msg[1:]}"
        raise SpecInvalidError(f"{path.name}:{error.lineno}: this is not JSON: {said}.") from error
    except (ValueError, RecursionError) as error:
        raise SpecInvalidError(
            f"{path.name}: has a number of thousands of digits, or more than {MAX_DEPTH} lists and objects inside each "
            "other."
        ) from error
    _refuse_unbounded(path.name, content)
    return SpecFile(path.name, content, text=text)


def require_mapping(file: SpecFile, expected: str = "a mapping") -> dict[str, Any]:
    """Return the content where it is a mapping."""
    if not isinstance(file.content, dict):
        raise SpecInvalidError(f"{file.name}: the file holds {describe_kind(file.content)}, expected {expected}.")
    return file.content


def _read_text(path: Path, called: str, limit: int) -> str:
    prefix = f"{called}: " if called else ""
    try:
        with path.open("rb") as stream:
            content = stream.read(limit * 1024 * 1024 + 1)
    except FileNotFoundError as error:
        raise SpecInvalidError(f"{prefix}there is no file {str(path)!r}.", remedy=_list_similar_files(path)) from error
    except IsADirectoryError as error:
        raise SpecInvalidError(f"{prefix}{str(path)!r} is a folder.", remedy="Name a file in it.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecInvalidError(f"{prefix}{str(path)!r} cannot be read ({reason}).") from error
    if len(content) > limit * 1024 * 1024:
        raise SpecInvalidError(f"{prefix}{path.name} has more than {limit} MiB, which no such file needs.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecInvalidError(
            f"{prefix}{path.name}:{line}: this is not UTF-8 text.", remedy="Save the file in the encoding UTF-8."
        ) from error


def _list_similar_files(path: Path) -> str:
    """List the files to name instead: those of the same kind in the folder in which the missing one was looked for."""
    kinds = (".yaml", ".yml") if path.suffix in (".yaml", ".yml") else (path.suffix,)
    try:
        names = sorted(file.name for file in path.parent.iterdir() if file.suffix in kinds)
    except OSError:
        return f"There is no folder {str(path.parent)!r} either."
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"The folder has: {shown}." if names else "Give the path of a file that is there."


def _refuse_unbounded(name: str, content: Any) -> None:
    """Refuse what would end a later step without an error of its own: depth, and text that is not UTF-8."""
    level: list[Any] = [content]
    seen = 0
    for _ in range(MAX_DEPTH + 1):
        seen += len(level)
        if seen > MAX_VALUES:
            raise SpecInvalidError(f"{name}: has more than {MAX_VALUES:,} keys and values.")
        if not all(_is_utf8(value) for value in level if isinstance(value, str)):
            raise SpecInvalidError(f"{name}: has half of a pair of \\u escapes, which is no character.")
        level = [inner for value in level for inner in _list_children(value)]
        if not level:
            return
    raise SpecInvalidError(f"{name}: has more than {MAX_DEPTH} lists and objects inside each other.")


def _list_children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
