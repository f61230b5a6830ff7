"""Find what must not or cannot go to S3 with the job in its lake.yaml."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from lakewriter.dialects.lake_yaml import Lake
from lakewriter.spec.access import SecretText
from lakewriter.spec.lineage import LOG
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import MessageSource
from lakewriter.spec.table_spec import Read

PUBLIC: Final = {"external_id", "access_key_id", "user"}
"""No secrets: the trust policy shows the external id, every request the access key id; a user is a name."""

_SECRET_NAME: Final = re.compile(
    r"(pass(word|wd|phrase)?|secret|token|credentials?|(private|secret|access|api|account)[._-]?key|jaas\.config)$",
    re.IGNORECASE,
)
_SECRET_INSIDE: Final = re.compile(r"(pass(word|wd)?|secret|token)=[^&;\s]|://[^/@\s:]+:[^/@\s]+@", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:", re.IGNORECASE)
_EXPECTED: Final = "expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."


def find_unshippable(lake: Lake) -> tuple[str, ...]:
    """Find everything in the file that the job could not read on EMR, or that others could read on S3."""
    tables = [problem for table in lake.spec.tables for problem in _check_read(table.read, f"table {table.id!r}: read")]
    return (
        *_find_variables(lake.data),
        *_find_implicit_variable(lake),
        *_find_literal_secrets(lake.spec),
        *tables,
        *_find_given_tables(lake.spec),
        *_find_local_messages(lake.spec.source),
        *_find_local_lineage(lake),
    )


def _find_variables(data: Mapping[str, Any]) -> Iterator[str]:
    for path, value in walk_scalars({key: value for key, value in data.items() if key != "deployment"}, ""):
        if isinstance(value, str) and value.startswith("${env:"):
            yield f"{path}: {value!r} names a variable of this machine; {_EXPECTED}"


def _find_implicit_variable(lake: Lake) -> Iterator[str]:
    """Find an external id that the dialect reads from the environment because the file has none."""
    secret = lake.spec.access.external_id
    if secret and secret.reference and secret.reference[0] == "env" and not lake.data["destination"].get("external_id"):
        yield f"destination.external_id: is read from {secret.text!r} of this machine; {_EXPECTED}"


def _find_given_tables(spec: Spec) -> Iterator[str]:
    """Find the tables that the job has no rows for."""
    for table in spec.tables:
        if table.is_given:
            yield (
                f"table {table.id!r}: read: is missing, and the job would have no rows for it; expected a read. Give "
                "tables that a program writes from DataFrames a file of their own."
            )


def _find_local_messages(source: MessageSource | None) -> Iterator[str]:
    if source is None:
        return
    if source.command:
        yield (
            f"source.command: {source.command[0]!r} is a program of this machine; expected source.messages in S3. "
            "Run the connector where it is, and land its messages there, or run the loads where it is."
        )
    for path in source.paths:
        if path == "-":
            yield "source.messages: '-' is standard input, which a load on EMR does not have; expected s3://..."
        elif not path.lower().startswith(("s3://", "s3a://")):
            yield f"source.messages: {path!r} is on this machine; expected s3://..., or give source_root."


def _find_local_lineage(lake: Lake) -> Iterator[str]:
    lineage = lake.spec.lineage
    if lineage is not None and lineage.to != LOG and not lineage.is_remote:
        yield (
            f"lineage.to: {lake.data['lineage']['to']!r} would be a file of a machine that is gone after the load; "
            "expected 'log' or a URL."
        )


def walk_scalars(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each scalar below ``value`` with its path, such as ``tables.0.read.path``."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from walk_scalars(below, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _find_literal_secrets(model: BaseModel) -> Iterator[str]:
    """Find the secrets that are written out anywhere in the specification."""
    for name, value in model:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, BaseModel):
                yield from _find_literal_secrets(part)
            elif isinstance(part, SecretText) and part.reference is None and name not in PUBLIC:
                yield f"{name} is written out; {_EXPECTED}"


def _check_read(read: Read, key: str) -> Iterator[str]:
    for path in read.paths:
        if not _SCHEME.match(path):
            yield f"{key}.path: {path!r} is on this machine; expected s3://..., or give source_root."
    schema = read.values.schema_path if read.values is not None else None
    if schema is not None and not _SCHEME.match(schema):
        yield f"{key}.values.schema: {schema!r} is on this machine; expected s3://..., or give source_root."
    for name, value in read.options.items():
        if isinstance(value, str) and _is_secret(name, value):
            yield f"{key}.options.{name} holds a secret, written out; {_EXPECTED}"
    for name, view in read.views.items():
        yield from _check_read(view, f"{key}.views.{name}")


def _is_secret(name: str, value: str) -> bool:
    named = _SECRET_NAME.search(name) and value not in {"", "true", "false"}
    return bool(named or _SECRET_INSIDE.search(value))
