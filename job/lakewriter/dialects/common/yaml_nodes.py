"""YAML text to nodes with their lines, in one pass over the parser's events, within bounds that aliases cannot pass."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from lakewriter.dialects.common.yaml_problems import YamlProblemError, explain_error, refuse_unprintable

MAX_NODES: Final = 2_000_000
"""The most keys and values. What an alias stands for counts at each use: each of them is checked and copied."""
MAX_ALIASES: Final = 100_000
MAX_DEPTH: Final = 100
"""Mappings and lists inside each other: what reads them recurses, and Python's stack ends near 1,000."""
MAX_NUMBER: Final = 100
"""Characters of a number or a date: the time to turn them into a value grows with their square."""

PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's; PyYAML that was built without libyaml has only its own, which is fifteen times slower."""

_TAG: Final = "tag:yaml.org,2002:"
_RESOLVER: Final[Any] = yaml.resolver.Resolver()
_CONSTRUCTOR: Final[Any] = yaml.constructor.SafeConstructor()


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping. ``size`` counts the nodes in it and itself, ``height`` the levels below it."""

    line: int
    value: Any = None
    items: "list[Node] | None" = None
    keys: "dict[Hashable, Key] | None" = None
    size: int = 1
    height: int = 0
    is_open: bool = False

    def get_child(self, step: str | int) -> "Key | None":
        """Return the node that ``step`` leads to, a key as Python has it or an item's number."""
        if self.items is not None:
            if not isinstance(step, int) or step >= len(self.items):
                return None
            return Key(str(step), self.items[step].line, self.items[step])
        keys = self.keys or {}
        return keys.get(step) or next((key for name, key in keys.items() if str(name) == str(step)), None)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a mapping as it is written, its line, and what it holds."""

    text: str
    line: int
    node: Node


@dataclass(slots=True)
class _Open:
    """A list or a mapping that has not ended; of a mapping also the key that waits for its value."""

    node: Node
    key: tuple[Hashable, str, int] | None = None
    merged: list[Node] = field(default_factory=list)
    given: set[str] = field(default_factory=set)


def compose(text: str) -> Node | None:
    """Return the one document of ``text``, None where it is blank; ``YamlProblemError`` for what cannot be read."""
    refuse_unprintable(text)
    composer = _Composer()
    try:
        for event in yaml.parse(text, Loader=PARSER):
            composer.take(event)
    except yaml.YAMLError as error:
        raise explain_error(error, text) from error
    return composer.root


def to_python(node: Node) -> Any:
    """Return the values of a node. What an alias stands for is one object, wherever the alias is."""
    return _to_python(node, {})


def _to_python(node: Node, values: dict[int, Any]) -> Any:
    if node.items is None and node.keys is None:
        return node.value
    if id(node) not in values:
        if node.items is not None:
            values[id(node)] = [_to_python(item, values) for item in node.items]
        else:
            values[id(node)] = {name: _to_python(key.node, values) for name, key in (node.keys or {}).items()}
    return values[id(node)]


class _Composer:
    """Builds the nodes of one document."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._aliases = 0

    def take(self, event: Any) -> None:
        """Take one event of the parser."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise YamlProblemError(line, "a second document begins here; expected one in the file")
        if isinstance(event, yaml.AliasEvent):
            node = self._resolve_alias(event.anchor, line)
            self._add(node, line, node.size)
        elif isinstance(event, yaml.ScalarEvent):
            node = Node(line, None if self._is_merge(event) else _parse_value(event, line))
            self._add_anchor(event.anchor, node)
            self._add(node, line, 1, event.value, is_merge=self._is_merge(event))
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            opened = self._stack.pop()
            _close(opened)
            self._add(opened.node, opened.node.line, 1)

    def _begin(self, event: Any, line: int) -> None:
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", f"{_TAG}{'seq' if is_list else 'map'}"):
            raise YamlProblemError(line, f"the tag {_describe_tag(event.tag)} is not known; leave it out")
        if len(self._stack) >= MAX_DEPTH:
            raise YamlProblemError(line, f"more than {MAX_DEPTH} lists and mappings inside each other")
        node = Node(line, items=[], is_open=True) if is_list else Node(line, keys={}, is_open=True)
        self._add_anchor(event.anchor, node)
        self._stack.append(_Open(node))

    def _add_anchor(self, name: str | None, node: Node) -> None:
        if name is not None:
            self._anchors[name] = node

    def _resolve_alias(self, name: str | None, line: int) -> Node:
        self._aliases += 1
        node = self._anchors.get(str(name))
        if node is None:
            raise YamlProblemError(line, f"the alias *{name} has no anchor &{name} above it; put text that begins with "
                                   "'*' in quotes")  # fmt: skip
        if node.is_open:
            raise YamlProblemError(line, f"the alias *{name} is inside what it names, which would have no end")
        if self._aliases > MAX_ALIASES:
            raise YamlProblemError(line, f"more than {MAX_ALIASES:,} aliases; write some of them out")
        if len(self._stack) + node.height > MAX_DEPTH:
            raise YamlProblemError(line, f"with what the alias *{name} stands for there are more than {MAX_DEPTH} "
                                   "lists and mappings inside each other")  # fmt: skip
        return node

    def _is_merge(self, event: Any) -> bool:
        is_key = bool(self._stack) and self._stack[-1].node.keys is not None and self._stack[-1].key is None
        return bool(is_key and event.value == "<<" and event.implicit[0])

    def _add(self, node: Node, line: int, count: int, text: str | None = None, *, is_merge: bool = False) -> None:
        """Add ``node`` as the next item, key or value of what is open; ``text`` is a scalar as it is written."""
        self._nodes += count
        if self._nodes > MAX_NODES:
            raise YamlProblemError(line, f"more than {MAX_NODES:,} keys and values, counting what each alias stands "
                                   "for; make it smaller")  # fmt: skip
        if not self._stack:
            self.root = node
            return
        opened = self._stack[-1]
        if opened.node.items is not None:
            opened.node.items.append(node)
        elif opened.key is None:
            opened.key = (
                _MERGE if is_merge else _require_key(node, line),
                str(node.value) if text is None else text,
                line,
            )
        else:
            _add_value(opened, node)


_MERGE: Final = object()
"""It stands for the key ``<<``."""


def _require_key(node: Node, line: int) -> Hashable:
    if node.items is not None or node.keys is not None:
        raise YamlProblemError(line, "expected a key, got a list or a mapping; put text with '{' or '[' in "
                               "quotes")  # fmt: skip
    value: Hashable = node.value
    return value


def _add_value(opened: _Open, node: Node) -> None:
    name, text, line = opened.key or (None, "", 0)
    opened.key = None
    if name is _MERGE:
        parts = node.items if node.items is not None else [node]
        if any(part.keys is None for part in parts):
            raise YamlProblemError(line, "'<<' takes the alias of a mapping, or a list of them")
        opened.merged += parts
        return
    if text in opened.given:
        raise YamlProblemError(line, f"{text!r} is given twice in one mapping; leave one of them out")
    opened.given.add(text)
    assert opened.node.keys is not None
    opened.node.keys[name] = Key(text, line, node)


def _close(opened: _Open) -> None:
    node = opened.node
    for part in opened.merged:
        for name, key in (part.keys or {}).items():
            assert node.keys is not None
            node.keys.setdefault(name, key)
    below = node.items if node.items is not None else [key.node for key in (node.keys or {}).values()]
    keys = len(node.keys or ())
    node.size = 1 + keys + sum(part.size for part in below)
    node.height = 1 + max((part.height for part in below), default=0)
    node.is_open = False


def _parse_value(event: Any, line: int) -> Any:
    """Return a scalar as Python has it: of its own type where it is not quoted, of that which its tag names
    otherwise."""
    natural = _RESOLVER.resolve(yaml.ScalarNode, event.value, (event.implicit[0], event.implicit[1]))
    tag = natural if event.tag in (None, "!") else event.tag
    if tag in (f"{_TAG}str", f"{_TAG}merge", f"{_TAG}value"):
        return event.value
    implicit = _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))
    if tag not in (implicit, f"{_TAG}float") or (tag != implicit and implicit != f"{_TAG}int"):
        raise YamlProblemError(
            line, f"the tag {_describe_tag(tag)} is not known, or its value is of another type; leave it out"
        )
    if len(event.value) > MAX_NUMBER:
        raise YamlProblemError(line, f"a number of more than {MAX_NUMBER} characters; put it in quotes if it is text")
    try:
        return _CONSTRUCTOR.construct_object(yaml.ScalarNode(tag, event.value), deep=True)
    except (ValueError, ArithmeticError, LookupError) as error:
        raise YamlProblemError(line, "a value is written like a date or a number and is none; put it in quotes if it "
                               "is text") from error  # fmt: skip


def _describe_tag(tag: str) -> str:
    name = tag if len(tag) <= 60 else tag[:57] + "..."
    return f"'!!{name.removeprefix(_TAG)}'" if name.startswith(_TAG) else f"'{name}'"
