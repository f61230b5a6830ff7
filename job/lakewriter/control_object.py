"""Read control objects so that releases can be mixed: keep unknown fields, refuse what this release must not touch."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lakewriter.errors import PendingUnrecoverableError

VERSION: Final = 1
"""The version of every control object. A new version is for changes that no reader of this version can handle."""

INFERRED: Final = "inferred"
"""Columns that documents without a schema have given a table: a release that ignores them gives a column another
type."""
RECEIPT_PARTS: Final = "receipt_parts"
"""Receipts in objects of their own: a release that ignores them takes a load of many files for one of few, or none."""
CHANGES: Final = "changes"
"""Changes that are no loads, and job ids that they have taken back: a release that ignores them loads such an id
again."""
QUARANTINED: Final = "quarantine"
"""Rows that a load keeps out of its table: a release that ignores them publishes the load without them."""
SYNC_STATE: Final = "sync_state"
"""A source's state that the sync keeps for all of its tables: a release that ignores it hands the source an empty
one."""
MERGED: Final = "merge"
"""Rows that replace rows of the same key: a release that ignores this adds them to the old rows."""
COMPACTED: Final = "compact"
"""Files whose rows replace those of other files: a release that ignores this adds them to the old rows."""
KNOWN_NEEDS: Final[frozenset[str]] = frozenset(
    {INFERRED, RECEIPT_PARTS, CHANGES, QUARANTINED, SYNC_STATE, MERGED, COMPACTED}
)
"""The names in ``needs`` that this release understands. A name is added with the code that acts on it."""
LASTING: Final[frozenset[str]] = frozenset({INFERRED, CHANGES, SYNC_STATE, MERGED})
"""The needs that a table's state keeps once the change is closed; the state has no trace of the others then."""

_MOST_FAULTS: Final = 3
"""A message names so many faults of an object."""

MOST_LEVELS: Final = 100
"""Far more than any release writes, and less than a JSON encoder gives up at."""

_REMEDY: Final = (
    "Run the release that wrote it, or a later one; if the object is damaged, restore it from its bucket's versions."
)


def sparse(default: Any) -> Any:
    """Declare a field that is left out of the object while it has its default: objects are read many times, and a
    person reads what they say."""
    return Field(default, exclude_if=lambda value: value == default)


class ControlObject(BaseModel):
    """A control object, or a part of one: frozen, and fields of later releases are kept and written back.

    So a process that replaces an object changes a copy of what it read (``model_copy``) and never builds a new one from
    parts.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_is_not_understood(cls, content: Any) -> Any:
        if isinstance(content, Mapping):
            require_understood(content)
        return content

    @model_validator(mode="after")
    def _require_time_zones(self) -> Self:
        """Check that every time has a time zone: one without could not be compared with others."""
        for name, value in self.__dict__.items():
            if isinstance(value, datetime) and value.tzinfo is None:
                raise ValueError(f"{name} {value.isoformat()} has no time zone")
        return self


Parsed = TypeVar("Parsed", bound=ControlObject)


def require_understood(content: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for an object of another version, or one with ``needs`` that this release does not know."""
    version, needs = content.get("version", VERSION), content.get("needs", [])
    if version != VERSION:
        raise ValueError(f"it is of version {version!r}, expected {VERSION}")
    if not isinstance(needs, list | tuple) or not all(isinstance(name, str) for name in needs):
        raise ValueError(f"its 'needs' are {needs!r}, expected a list of names")
    unknown = [name for name in needs if name not in KNOWN_NEEDS]
    if unknown:
        raise ValueError(f"it needs {', '.join(map(repr, unknown))}, which this release does not know")


def decode(key: str, body: bytes) -> dict[str, Any]:
    """Return the content of the object at ``key``; ``PENDING_UNRECOVERABLE`` where this release must not act on it."""
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
        _require_plain(content)
    except (ValueError, RecursionError) as error:
        raise _make_damage_error(key, str(error)) from error
    if not isinstance(content, dict):
        raise _make_damage_error(key, f"it holds a {type(content).__name__}")
    try:
        require_understood(content)
    except ValueError as error:
        raise _make_refusal_error(key, str(error)) from error
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _require_plain(content: Any) -> None:
    """Raise ``ValueError`` for content that can be read but not written back: too deep, or with half a surrogate
    pair."""
    level, depth = [content], 0
    while level := [value for item in level for value in _list_values(item)]:
        depth += 1
        if depth > MOST_LEVELS:
            raise ValueError(f"it has more than {MOST_LEVELS} levels")
    json.dumps(content, ensure_ascii=False).encode()


def _list_values(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []


def parse(model: type[Parsed], key: str, body: bytes) -> Parsed:
    """Return the object at ``key`` as ``model``; ``PENDING_UNRECOVERABLE`` where this release must not act on it."""
    return _validate(model, key, decode(key, body))


def parse_kind(models: Mapping[Any, type[Parsed]], key: str, body: bytes) -> Parsed:
    """Return the object at ``key`` as the model of its ``kind``; ``PENDING_UNRECOVERABLE`` as in ``parse``."""
    content = decode(key, body)
    kind = content.get("kind")
    model = models.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise _make_refusal_error(key, f"kind: {kind!r}, expected one of {', '.join(models)}")
    return _validate(model, key, content)


def _validate(model: type[Parsed], key: str, content: Mapping[str, Any]) -> Parsed:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        details = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:_MOST_FAULTS])
        raise _make_refusal_error(key, "; ".join(details)) from error
    # Parts are made from positional values, so a missing one raises a TypeError.
    except (TypeError, ValueError) as error:
        raise _make_refusal_error(key, str(error)) from error


def _make_damage_error(key: str, why: str) -> PendingUnrecoverableError:
    return PendingUnrecoverableError(
        f"{key} is not a JSON object ({why}).", remedy="Restore the object from its bucket's versions."
    )


def _make_refusal_error(key: str, why: str) -> PendingUnrecoverableError:
    return PendingUnrecoverableError(f"{key} cannot be used by this release: {why}.", remedy=_REMEDY)
