"""What ``read:`` says of a source: its options with their secrets, and its name in messages."""

from collections.abc import Iterator, Mapping
from typing import Final

from lakewriter.aws import resolve_all
from lakewriter.source.failures import Origin
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read, TableSpec

_STRICT: Final = ("csv", "json", "xml")
"""Formats whose readers in Spark make null of whatever does not fit a column, and do not say so."""


def make_origin(table: TableSpec, secrets: Mapping[SecretText, str]) -> Origin:
    """The table's source, for messages."""
    return Origin(table.id, _describe_source(table.read), tuple(secrets.values()))


def make_reader_options(read: Read, secrets: Mapping[SecretText, str]) -> dict[str, str]:
    """The source's options, with its secrets; a record that does not fit is an error where they name no ``mode``."""
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    if str(read.format).lower() in _STRICT and "mode" not in map(str.lower, options):
        options["mode"] = "FAILFAST"
    return options


def resolve_secrets(read: Read) -> dict[SecretText, str]:
    """The values of the secrets in a source's options; ``SECRET_UNRESOLVED`` names all that cannot be read."""
    return resolve_all(_list_secrets(read))


def _list_secrets(read: Read) -> Iterator[SecretText]:
    yield from (value for value in read.options.values() if isinstance(value, SecretText))
    for view in read.views.values():
        yield from _list_secrets(view)


def _describe_source(read: Read) -> str:
    if read.sql is not None:
        return f"SQL over {', '.join(map(repr, read.views)) or 'no view'}"
    place = ", ".join(map(repr, read.paths)) or read.options.get("dbtable") or read.options.get("query")
    return f"{read.format} {place}" if place else str(read.format)
