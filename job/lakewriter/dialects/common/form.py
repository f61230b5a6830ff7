"""Fill a vendor's form, field by field, under the labels that the form has."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Provided(StrEnum):
    """A value that only a deployment knows."""

    ROLE_ARN = "role_arn"
    EXTERNAL_ID = "external_id"
    ACCESS_KEY_ID = "access_key_id"
    SECRET_ACCESS_KEY = "secret_access_key"


@dataclass(frozen=True)
class FormField:
    """One field: its label in the vendor's document, and what to type into it."""

    label: str
    value: str | Provided
    is_prefix: bool = False
    """True if it says where in the bucket all files go: a party with its own folder types that folder instead."""


def list_fields(values: Mapping[str, str | Provided], *, prefix: str) -> tuple[FormField, ...]:
    """List the fields by their labels without blank ones, but for the one labelled ``prefix``, which may be filled."""
    return tuple(
        FormField(label, value, is_prefix=label == prefix)
        for label, value in values.items()
        if value or label == prefix
    )


BLANK_TEXT: Final = {"type": "string", "maxLength": 0}
NULL: Final = {"type": "null"}

CONFIG_FILE: Final = (
    "A file of the vendor's own with the destination's keys, taken unchanged. Keys given beside it come first."
)
"""The description of ``config_file``, which no model has: the file is read before the keys are checked."""


def allow_config_file(schema: dict[str, Any]) -> None:
    """Let editors take the vendor's file in place of the keys: the file is read before they are checked."""
    needed = [key for key in schema["required"] if key != "type"]
    schema["properties"]["config_file"] = {"type": "string", "description": CONFIG_FILE}
    schema |= {"required": ["type"], "anyOf": [{"required": ["config_file"]}, {"required": needed}]}


def allow_blanks(schema: dict[str, Any]) -> None:
    """Let editors take null and blank text for every key, where both count as absent."""
    for key, property_schema in schema["properties"].items():
        if "const" not in property_schema:
            schema["properties"][key] = _allow_blank(property_schema)


def _allow_blank(schema: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if key in ("default", "description", "title")}
    asked = {key: value for key, value in schema.items() if key not in shown}
    values = [
        {key: value for key, value in option.items() if key != "minLength"} for option in asked.get("anyOf", [asked])
    ]
    blanks = (NULL,) if {"type": "string"} in values else (NULL, BLANK_TEXT)
    return shown | {"anyOf": [*values, *(blank for blank in blanks if blank not in values)]}
