"""Open JSON text level by level, as far as columns need it."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Final

import msgspec

from lakewriter.cast.json_text import require_shallow
from lakewriter.errors import ValueUnrepresentableError

NULL: Final = b"null"
Raw = bytes | msgspec.Raw
Path = tuple[str, ...]
Objects = Sequence[Mapping[str, msgspec.Raw] | None]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
OPENERS: Final[Mapping[type, msgspec.json.Decoder[Any]]] = {
    dict: msgspec.json.Decoder(dict[str, msgspec.Raw] | None),
    list: msgspec.json.Decoder(list[msgspec.Raw] | None),
}
"""Decoders of an object, an array or null, whose parts are still JSON text."""


def open_object(text: Raw | str) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object, each still JSON text."""
    return _OBJECT.decode(text)


def list_repeated(text: Raw, members: Mapping[str, msgspec.Raw]) -> list[str]:
    """Return the keys that a JSON object has several times, at its own level; ``members`` are those of its ``text``."""
    # Without white space an object is exactly as long as its members with their quotes, colons and commas.
    if len(text) == measure_packed([members]):
        return []
    packed = msgspec.json.format(bytes(text), indent=-1)
    if len(packed) == measure_packed([open_object(packed)]):
        return []
    pairs: list[tuple[str, object]] = _PAIRS.decode(bytes(text).decode())
    return [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]


def measure_packed(objects: Collection[Mapping[str, msgspec.Raw]]) -> int:
    """Return the shortest length that the texts of objects with these members, at least one each, can have together."""
    values = chain.from_iterable(members.values() for members in objects)
    names = sum(map(len, chain.from_iterable(objects)))
    return names + sum(map(len, values)) + 4 * sum(map(len, objects)) + len(objects)


_PAIRS: Final = json.JSONDecoder(object_pairs_hook=list, parse_float=str, parse_int=str)


class Levels:
    """The objects of one batch that lie at ``above``, and those inside them; ``first`` is the number of its first row.

    At the root, where ``above`` is empty, each text is a document, which cannot be null. With ``any_value`` what is no
    object has nothing inside, as documents without a schema may have anything anywhere.
    """

    def __init__(
        self, texts: Sequence[str | bytes | None], first: int, above: Path = (), *, any_value: bool = False
    ) -> None:
        self._first = first
        self.repeated = Counter[str]()
        """The keys, by path, that an opened object has several times: the last value of each counts."""
        self._any_value = any_value
        self._above = above
        self._levels: dict[Path, Objects] = {above: [self._open(row, above, text) for row, text in enumerate(texts)]}

    def read_raws(self, path: Path) -> list[bytes]:
        """Return the JSON at a path, one for each row."""
        name = path[-1]
        return [
            NULL if members is None or name not in members else bytes(members[name])
            for members in self._open_level(path[:-1])
        ]

    def count_others(self, names: Mapping[Path, Set[str]]) -> Counter[str]:
        """Count the values, by path, of properties that an opened object has besides its ``names``."""
        counts = Counter[str]()
        for path, declared in names.items():
            for members in self._levels.get(path, ()):
                if members is None or members.keys() <= declared:
                    continue
                others = members.keys() - declared
                counts.update("/".join((*path, name)) for name in others if bytes(members[name]) != NULL)
        return counts

    def _open_level(self, path: Path) -> Objects:
        if path not in self._levels:
            self._levels[path] = [self._open(row, path, raw) for row, raw in enumerate(self.read_raws(path))]
        return self._levels[path]

    def _open(self, row: int, path: Path, text: str | bytes | None) -> Mapping[str, msgspec.Raw] | None:
        raw = NULL if text is None or not (text or path) else text.encode() if isinstance(text, str) else text
        if path and (raw == NULL or (self._any_value and raw[:1] != b"{")):
            return None
        try:
            checked = require_shallow(raw) if path == self._above else raw
            members: Mapping[str, msgspec.Raw] = OPENERS[dict].decode(checked) if path else open_object(checked)
            names = list_repeated(raw, members) if members else ()
            self.repeated.update("/".join((*path, name)) for name in names)
            return members
        except ValueError as error:
            what, remedy = (
                f"expected a JSON object, got {cut(repr(text))} ({error})",
                "Leave such rows out with an sql: read",
            )
            if path:
                what = f"{'/'.join(path)!r} holds {cut(raw.decode(errors='replace'))}, expected an object"
                remedy += ", or give the schema another type for it"
            if path != self._above:
                remedy = f"Include the field {'/'.join(path)!r}, which makes it a JSON string"
            raise ValueUnrepresentableError(
                f"row {self._first + row}: {what}.",
                remedy=f"{remedy}.",
                column=write_json_pointer(path) if path else None,
            ) from error


def write_json_pointer(path: Path) -> str:
    """Return the JSON pointer of a path."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def cut(text: str, most: int = 80) -> str:
    """Return as much of a text as a message shows: a value, or ``most`` characters of something else."""
    return text if len(text) <= most else text[:most] + "..."
