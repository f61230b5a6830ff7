"""Where references in a collection's schema lead: into itself, into what is bundled with it, to its write schema."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from job.errors import SpecInvalidError

Schema = Mapping[str, Any]

INFERRED: Final = "flow://inferred-schema"
_WRITE: Final = ("flow://write-schema", "flow://relaxed-write-schema")
_BUNDLES: Final = ("$defs", "definitions")


class References:
    """``write`` is the collection's write schema; the relaxed one, which only the platform makes, is taken to be it."""

    def __init__(self, root: Schema, write: Schema | None) -> None:
        self._root = root
        self._write = write

    def target(self, reference: str, document: Schema, place: str) -> tuple[Any, Schema] | None:
        """The schema that ``reference`` in ``document`` means, and the document that it is in; None for the inferred
        schema, which only the platform has. ``SPEC_INVALID`` for what is not there."""
        name, _, fragment = reference.partition("#")
        found = self._document(name, document) if name else document
        if found is None and name == INFERRED:
            return None
        inside = None if found is None else _inside(found, unquote(fragment))
        if found is None or inside is None:
            raise SpecInvalidError(
                f"the collection's schema refers to {reference!r} at {place}, which is not there.",
                remedy="Write it out under $defs, or into a file beside, and refer to that.",
            )
        return inside, found

    def _document(self, name: str, document: Schema) -> Schema | None:
        for each in (document, self._root, self._write or {}):
            for key, own in bundled(each):
                if name in (key, own.get("$id")):
                    return own
        return self._write if name in _WRITE else None


def bundled(document: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas that come with a document, by their keys in it."""
    for bundle in _BUNDLES:
        own = document.get(bundle)
        if isinstance(own, Mapping):
            yield from ((str(key), each) for key, each in own.items() if isinstance(each, Mapping))


def _inside(document: Schema, fragment: str) -> Any:
    """What a JSON pointer or an anchor names."""
    if fragment and not fragment.startswith("/"):
        return next((each for _, each in bundled(document) if each.get("$anchor") == fragment), None)
    found: Any = document
    for step in filter(None, fragment.split("/")):
        plain = step.replace("~1", "/").replace("~0", "~")
        found = found.get(plain) if isinstance(found, Mapping) else None
    return found
