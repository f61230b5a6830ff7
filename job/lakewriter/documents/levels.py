"""JSON text opened level by level, as far as columns need it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from lakewriter.documents.nesting import is_too_deep, too_deep
from lakewriter.documents.typed import NULL
from lakewriter.errors import ValueUnrepresentableError

Path = tuple[str, ...]
Objects = Sequence[Mapping[str, msgspec.Raw] | None]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NESTED: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_SHOWN: Final = 80


class Levels:
    """The objects of one batch that lie at ``above``, and those inside them; ``first`` is the number of its first row.

    At the root, where ``above`` is empty, each text is a document, which cannot be null. With ``any_value`` what is no
    object has nothing inside, as documents without a schema may have anything anywhere.
    """

    def __init__(
        self, texts: Sequence[str | bytes | None], first: int, above: Path = (), *, any_value: bool = False
    ) -> None:
        self._first = first
        self._any_value = any_value
        self._above = above
        roots = self._nested if above else self._document
        self._levels: dict[Path, Objects] = {above: [roots(row, above, text) for row, text in enumerate(texts)]}

    def raws(self, path: Path) -> list[bytes]:
        """The JSON at a path, one for each row."""
        name = path[-1]
        return [NULL if each is None or name not in each else bytes(each[name]) for each in self._objects(path[:-1])]

    def _objects(self, path: Path) -> Objects:
        if path not in self._levels:
            self._levels[path] = [self._nested(row, path, raw) for row, raw in enumerate(self.raws(path))]
        return self._levels[path]

    def _document(self, row: int, path: Path, text: str | bytes | None) -> Mapping[str, msgspec.Raw]:
        try:
            return _OBJECT.decode(shallow(text or NULL))
        except ValueError as error:
            raise ValueUnrepresentableError(
                f"row {self._first + row}: {cut(repr(text))} is no JSON object ({error}).",
                remedy="Leave such rows out with an sql: read.",
            ) from error

    def _nested(self, row: int, path: Path, text: str | bytes | None) -> Mapping[str, msgspec.Raw] | None:
        if text is None or text == NULL or (self._any_value and text[:1] != b"{"):
            return None
        try:
            found: Mapping[str, msgspec.Raw] | None = _NESTED.decode(shallow(text) if path == self._above else text)
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
                column=json_pointer(path),
            ) from error
        return found


def shallow(text: str | bytes) -> str | bytes:
    """``text``, which a decoder takes; ``ValueError`` where it nests too deep for one."""
    if is_too_deep(text):
        raise ValueError(too_deep())
    return text


def json_pointer(path: Path) -> str:
    """The JSON pointer of a path."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def cut(text: str) -> str:
    """As much of a value as a message shows."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
