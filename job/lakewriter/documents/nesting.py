"""Open JSON text level by level, as far as columns need it."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from itertools import chain
from typing import Final

import msgspec

from lakewriter.cast.json_text import require_shallow
from lakewriter.errors import ValueUnrepresentableError

NULL: Final = b"null"
Raw = bytes | msgspec.Raw
Path = tuple[str, ...]
Objects = Sequence[Mapping[str, msgspec.Raw] | None]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECT_OR_NULL: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


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
        roots = self._open_nested if above else self._open_document
        self._levels: dict[Path, Objects] = {above: [roots(row, above, text) for row, text in enumerate(texts)]}

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
            self._levels[path] = [self._open_nested(row, path, raw) for row, raw in enumerate(self.read_raws(path))]
        return self._levels[path]

    def _open_document(self, row: int, path: Path, text: str | bytes | None) -> Mapping[str, msgspec.Raw]:
        try:
            members = open_object(require_shallow(text or NULL))
            self._note_repeated(path, text, members)
            return members
        except ValueError as error:
            raise ValueUnrepresentableError(
                f"row {self._first + row}: {cut(repr(text))} is no JSON object ({error}).",
                remedy="Leave such rows out with an sql: read.",
            ) from error

    def _open_nested(self, row: int, path: Path, text: str | bytes | None) -> Mapping[str, msgspec.Raw] | None:
        if text is None or text == NULL or (self._any_value and text[:1] != b"{"):
            return None
        try:
            members: Mapping[str, msgspec.Raw] | None
            members = _OBJECT_OR_NULL.decode(require_shallow(text) if path == self._above else text)
            self._note_repeated(path, text, members)
        except ValueError as error:
            shown = text if isinstance(text, str) else text.decode(errors="replace")
            remedy = (
                "Leave such rows out with an sql: read, or give the schema another type for it."
                if path == self._above
                else f"Include the field {'/'.join(path)!r}, which makes it a JSON string."
            )
            raise ValueUnrepresentableError(
                f"row {self._first + row}: {'/'.join(path)!r} holds {cut(shown)}, expected an object.",
                remedy=remedy,
                column=write_json_pointer(path),
            ) from error
        return members

    def _note_repeated(self, path: Path, text: str | bytes | None, members: Mapping[str, msgspec.Raw] | None) -> None:
        if members and text:
            names = list_repeated(text.encode() if isinstance(text, str) else text, members)
            self.repeated.update("/".join((*path, name)) for name in names)


def write_json_pointer(path: Path) -> str:
    """Return the JSON pointer of a path."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def cut(text: str, most: int = 80) -> str:
    """Return as much of a text as a message shows: a value, or ``most`` characters of something else."""
    return text if len(text) <= most else text[:most] + "..."
