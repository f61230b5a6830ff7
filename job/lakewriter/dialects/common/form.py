"""What goes into a vendor's form, field by field, under the labels the form has."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
    """Whether it says where in the bucket all files go: a party with a folder of its own types that one."""


def list_fields(values: Mapping[str, str | Provided], *, prefix: str) -> tuple[FormField, ...]:
    """List the fields by their labels without blank ones, but for the one labelled ``prefix``, which may be filled."""
    return tuple(
        FormField(label, value, is_prefix=label == prefix)
        for label, value in values.items()
        if value or label == prefix
    )


def allow_config_file(schema: dict[str, Any]) -> None:
    """An editor takes the vendor's file in place of the keys, since the file is read before they are checked."""
    needed = [key for key in schema["required"] if key != "type"]
    schema["properties"]["config_file"] = {"type": "string"}
    schema |= {"required": ["type"], "anyOf": [{"required": ["config_file"]}, {"required": needed}]}
