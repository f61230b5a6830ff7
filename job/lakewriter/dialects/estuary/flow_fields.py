"""The keys of a Flow file as far as they mean something here: blanks count as absent, others are told of."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from lakewriter.dialects.common.problems import list_keys, list_models
from lakewriter.dialects.common.source_files import Place
from lakewriter.errors import SpecInvalidError

Data = Mapping[str, Any]

_CHOOSING: Final = ("partitions", "notBefore", "notAfter")
"""Keys of a binding's source that say which documents are materialized."""


class FlowKeys:
    """What is kept of one Flow file; ``warnings`` name what is not."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def select_keys(
        self, found: Data, model: type[BaseModel], place: Place, only: Collection[str] = ()
    ) -> dict[str, Any]:
        """``found`` with the keys of ``model``, or ``only`` those of them, inside it too."""
        known = [key for key in list_keys(model) if not only or key in only]
        self.note(found, known, place)
        kept = {}
        for key, value in found.items():
            if key in known and value not in (None, ""):
                kept[key] = self._select_inner(value, _find_annotation(model, key), place.get_child(key))
        return kept

    def note(self, found: Any, known: Collection[str], place: Place) -> None:
        """Warn of keys that are not known."""
        for key in found if isinstance(found, Mapping) else ():
            if key not in known:
                self.warnings.append(f"{place.get_child(key)} is not known here and has no effect.")

    def read_source(self, value: Any, place: Place) -> str:
        """The collection of a binding's source, which is a name, or a mapping with the name."""
        if not isinstance(value, Mapping):
            return str(value)
        for key in _CHOOSING:
            if _is_set(value.get(key)):
                raise SpecInvalidError(
                    f"{place.get_child(key)} chooses among the documents, and here the table's 'read' does.",
                    remedy="Choose with an sql: read, and leave the key out.",
                )
        self.note(value, ("name", *_CHOOSING), place)
        return str(value.get("name"))

    def note_backfill(self, value: Any, place: Place) -> None:
        """Warn of a counter that is kept elsewhere."""
        if value:
            self.warnings.append(
                f"{place} has no effect; a new backfill begins by lakewriter reset LAKE TABLE --backfill --reason TEXT."
            )

    def _select_inner(self, value: Any, annotation: Any, place: Place) -> Any:
        model = next(list_models(annotation), None)
        if model is None or not isinstance(value, Mapping):
            return value
        if any(get_origin(each) is dict for each in _list_members(annotation)):
            return {name: self._select_inner(own, model, place.get_child(name)) for name, own in value.items()}
        return self.select_keys(value, model, place)


def _find_annotation(model: type[BaseModel], key: str) -> Any:
    return next(field.annotation for name, field in model.model_fields.items() if key in (name, field.alias))


def _list_members(annotation: Any) -> Iterator[Any]:
    """An annotation, and the members of a union."""
    yield annotation
    yield from get_args(annotation)


def _is_set(value: Any) -> bool:
    """Whether a selector chooses anything."""
    return any(map(_is_set, value.values())) if isinstance(value, Mapping) else bool(value)
