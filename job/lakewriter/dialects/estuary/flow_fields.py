"""The keys of a Flow file that have a meaning here: blanks count as absent, and other keys get a warning."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from lakewriter.dialects.common.problems import list_keys, list_models, suggest_nearest
from lakewriter.dialects.common.source_files import Position
from lakewriter.errors import SpecInvalidError

Data = Mapping[str, Any]

_CHOOSING: Final = ("partitions", "notBefore", "notAfter")
"""Keys of a binding's source that say which documents are materialized."""


_OF_THE_PLATFORM: Final = ("sops", "credentials_title")
"""Keys of a configuration that Estuary's platform adds for itself."""
_ENCRYPTED: Final = "_sops"
_DELTA_UPDATES: Final = ("delta_updates", "deltaUpdates")
OF_BINDINGS: Final = ("priority", "onIncompatibleSchemaChange")
"""Keys of a binding or a materialization that change nothing that is written: the first orders backfills, and a load
that meets an incompatible change always stops."""


class FlowKeys:
    """The keys taken from one Flow file; ``warnings`` name those that are not."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def select_endpoint_keys(self, data: Data, model: type[BaseModel], position: Position, keys: Sequence[str]) -> Data:
        """Return ``data`` with the keys of ``model``. Raise ``SPEC_INVALID`` for one that is not in ``keys``: it may
        say where to write."""
        _refuse_encrypted(data, position)
        for key, value in data.items():
            if key not in (*keys, *_OF_THE_PLATFORM) and not _is_blank(value):
                raise SpecInvalidError(
                    f"{position.get_child(key)}: the connector's configuration has no such key"
                    f"{suggest_nearest(key, keys)}; it has: {', '.join(keys)}."
                )
        return self.select_keys({key: value for key, value in data.items() if key in keys}, model, position)

    def select_keys(self, data: Data, model: type[BaseModel], position: Position) -> dict[str, Any]:
        """Return ``data`` with only the keys of ``model``, at every depth."""
        keys = list_keys(model)
        self.note(data, keys, position)
        selected = {}
        for key, value in data.items():
            if key in keys and not _is_blank(value):
                selected[key] = self._select_inner(value, _find_annotation(model, key), position.get_child(key))
        return selected

    def note(self, data: Any, keys: Collection[str], position: Position) -> None:
        """Warn of keys that are not known."""
        for key in data if isinstance(data, Mapping) else ():
            if key not in keys:
                self.warnings.append(f"{position.get_child(key)} is not known here and has no effect.")

    def read_source(self, value: Any, position: Position) -> str:
        """Return the collection of a binding's source, which is a name, or a mapping with the name."""
        if not isinstance(value, Mapping):
            return str(value)
        for key in _CHOOSING:
            if _is_set(value.get(key)):
                raise SpecInvalidError(
                    f"{position.get_child(key)} chooses among the documents, and here the table's 'read' does.",
                    remedy="Choose with an sql: read, and leave the key out.",
                )
        self.note(value, ("name", *_CHOOSING), position)
        return str(value.get("name"))

    def refuse_backfill_on_change(self, data: Data, position: Position) -> None:
        """Raise ``SPEC_INVALID`` where a change of schema is to begin a backfill: here a load stops at it."""
        if data.get("onIncompatibleSchemaChange") == "backfill":
            raise SpecInvalidError(
                f"{position.get_child('onIncompatibleSchemaChange')} is 'backfill', and here a load that meets such a "
                "change ends with SCHEMA_INCOMPATIBLE.",
                remedy="Set 'abort'; raise the binding's backfill to load everything again.",
            )

    def settle_binding(self, binding: Data, keys: Sequence[str], position: Position) -> Data:
        """Return the binding without settings that always hold here: delta updates, and grouping by ``keys``.

        Raises ``SPEC_INVALID`` where it asks for something else.
        """
        resource, fields = ({**_get_mapping(binding, name)} for name in ("resource", "fields"))
        for key in _DELTA_UPDATES:
            if resource.pop(key, True) is False:
                raise SpecInvalidError(
                    f"{position.get_child('resource', key)} is false; this destination appends delta updates alone.",
                    remedy="Leave it out.",
                )
        groups = [str(group) for group in fields.pop("groupBy", None) or ()]
        if groups and [group.removeprefix("/") for group in groups] != [key.removeprefix("/") for key in keys]:
            raise SpecInvalidError(
                f"{position.get_child('fields', 'groupBy')} combines documents by {', '.join(groups)}, and here each "
                "document is written as it is.",
                remedy="Leave it out, and combine them where they are read: with an sql: read.",
            )
        settled = {"resource": resource, "fields": fields}
        return {key: settled.get(key, value) if isinstance(value, Mapping) else value for key, value in binding.items()}

    def _select_inner(self, value: Any, annotation: Any, position: Position) -> Any:
        model = next(list_models(annotation), None)
        if model is None or not isinstance(value, Mapping):
            return value
        if any(get_origin(member) is dict for member in _list_members(annotation)):
            return {name: self._select_inner(inner, model, position.get_child(name)) for name, inner in value.items()}
        return self.select_keys(value, model, position)


def _get_mapping(data: Data, key: str) -> Data:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def omit_given(config: Data, anew: Data) -> dict[str, Any]:
    """Return the configuration without the keys that are given ``anew``, encrypted or not."""
    return {key: value for key, value in config.items() if str(key).removesuffix(_ENCRYPTED) not in anew}


def _refuse_encrypted(data: Data, position: Position) -> None:
    """Refuse secrets that the platform has encrypted for itself: it renames their keys."""
    for key, value in data.items():
        if str(key).endswith(_ENCRYPTED):
            plain = str(key).removesuffix(_ENCRYPTED)
            raise SpecInvalidError(
                f"{position.get_child(key)} is encrypted by Estuary's platform, and only that can read it.",
                remedy=f"Give {plain} in its place, as a reference such as ${{env:NAME}}; or what it is part of, such "
                "as credentials, in lake.yaml's destination.",
            )
        if isinstance(value, Mapping) and key not in _OF_THE_PLATFORM:
            _refuse_encrypted(value, position.get_child(key))


def _is_blank(value: Any) -> bool:
    return value in (None, "", {})


def _find_annotation(model: type[BaseModel], key: str) -> Any:
    return next(field.annotation for name, field in model.model_fields.items() if key in (name, field.alias))


def _list_members(annotation: Any) -> Iterator[Any]:
    """Yield an annotation, and the members of a union."""
    yield annotation
    yield from get_args(annotation)


def _is_set(value: Any) -> bool:
    """Return whether a selector chooses anything."""
    return any(map(_is_set, value.values())) if isinstance(value, Mapping) else bool(value)
