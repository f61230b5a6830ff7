"""Read the options of a source with their secrets, and name the source in messages."""

from collections.abc import Iterator, Mapping
from typing import Final

from lakewriter.aws import resolve_all
from lakewriter.source.spark_failures import Origin
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import Read, TableSpec

_ISOLATION: Final = "kafka.isolation.level"


def make_origin(table: TableSpec, secrets: Mapping[SecretText, str]) -> Origin:
    """Return the table's source, for messages."""
    return Origin(table.id, _describe_source(table.read), tuple(secrets.values()))


def make_reader_options(read: Read, secrets: Mapping[SecretText, str]) -> dict[str, str]:
    """Return the source's options with its secrets. Without a ``mode`` a record that does not fit is an error; without
    an isolation level Kafka's messages of transactions that were aborted, or are open, are not read.
    """
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    # Without it Spark's readers of such formats silently replace a value that does not fit its column by null.
    if read.kind.types == "values" and "mode" not in map(str.lower, options):
        options["mode"] = "FAILFAST"
    # Kafka's own default also delivers messages that their producer has taken back.
    if read.kind.name == "kafka" and _ISOLATION not in map(str.lower, options):
        options[_ISOLATION] = "read_committed"
    return options


def resolve_secrets(read: Read) -> dict[SecretText, str]:
    """Return the values of a source's secrets; ``SECRET_UNRESOLVED`` names all that cannot be read."""
    return resolve_all(_list_secrets(read))


def _list_secrets(read: Read) -> Iterator[SecretText]:
    yield from (value for value in read.options.values() if isinstance(value, SecretText))
    yield from () if read.values is None else read.values.secrets
    for view in read.views.values():
        yield from _list_secrets(view)


def _describe_source(read: Read) -> str:
    if read.sql is not None:
        return f"SQL over {', '.join(map(repr, read.views)) or 'no view'}"
    location = ", ".join(map(repr, read.paths)) or read.options.get("dbtable") or read.options.get("query")
    return f"{read.format} {location}" if location else str(read.format)
