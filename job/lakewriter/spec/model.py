"""Define the base of the specification's parts."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema


def _require_numbers(schema: Any) -> None:
    """Require numbers as numbers: pydantic would take ``true`` for 1, and text for the number it spells."""
    if isinstance(schema, list | tuple):
        for part in schema:
            _require_numbers(part)
    elif isinstance(schema, dict):
        if schema.get("type") in ("int", "float"):
            schema["strict"] = True
        for name, part in schema.items():
            if name not in ("default", "metadata"):
                _require_numbers(part)


class Model(BaseModel):
    """Frozen, and unknown keys are errors; a number is one that is written as one."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _require_numbers(schema)
        return schema


class FileModel(Model):
    """Keys of a lake.yaml. The text under a field is its description, for editors and the reference of every key."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def plain_text(docstring: str) -> str:
    """Return the text of a docstring as a page or an editor shows it: one line, names in single back quotes."""
    return " ".join(docstring.split()).replace("``", "`")


def require_one(**given: bool) -> None:
    """Raise ``ValueError`` unless exactly one of two keys is given."""
    if sum(given.values()) != 1:
        both = ", got both" if any(given.values()) else ""
        raise ValueError(f"expected either {' or '.join(map(repr, given))}{both}")
