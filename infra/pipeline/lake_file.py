"""The lake.yaml that goes to S3 with the job, and what in a file means something on this machine only."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from pydantic import BaseModel

from lakewriter.dialects.lake_yaml import Lake
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read
from lakewriter.spec.stream import MessageSource

PUBLIC: Final = {"external_id", "access_key_id"}
"""Written out, these open nothing: the trust policy shows the one, every request the other."""

_SECRET_NAME: Final = re.compile(
    r"(pass(word|wd|phrase)?|secret|token|credentials?|(private|secret|access|api|account)[._-]?key|jaas\.config)$",
    re.IGNORECASE,
)
_SECRET_INSIDE: Final = re.compile(r"(pass(word|wd)?|secret|token)=[^&;\s]|://[^/@\s:]+:[^/@\s]+@", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:", re.IGNORECASE)
_EXPECTED: Final = "expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."


def shipped(lake: Lake) -> str:
    """The file with its stage laid over it and without what only the stacks read; secrets are still references."""
    data = {key: value for key, value in lake.data.items() if key != "deployment"}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


def shippable(lake: Lake) -> tuple[str, ...]:
    """A text for each thing in the file that the job could not read on EMR, or that others could read on S3."""
    tables = [problem for table in lake.spec.tables for problem in _of_read(table.read, f"table {table.id!r}: read")]
    return (*_variables(lake.data), *_unsaid(lake), *_literals(lake.spec), *tables, *_messages(lake.spec.source))


def _variables(data: Mapping[str, Any]) -> Iterator[str]:
    for place, value in _leaves({key: value for key, value in data.items() if key != "deployment"}, ""):
        if isinstance(value, str) and value.startswith("${env:"):
            yield f"{place}: {value!r} names a variable of this machine; {_EXPECTED}"


def _unsaid(lake: Lake) -> Iterator[str]:
    """What a dialect takes from the environment where the file says nothing."""
    found = lake.spec.access.external_id
    if found and found.reference and found.reference[0] == "env" and not lake.data["destination"].get("external_id"):
        yield f"destination.external_id: {found.text!r} of this machine stands for it; {_EXPECTED}"


def _messages(source: MessageSource | None) -> Iterator[str]:
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


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Each scalar below ``value`` and where it is, such as ``tables.0.read.path``."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(below, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _literals(model: BaseModel) -> Iterator[str]:
    """Whatever the specification holds as a secret, wherever in it."""
    for name, value in model:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, BaseModel):
                yield from _literals(each)
            elif isinstance(each, SecretText) and each.reference is None and name not in PUBLIC:
                yield f"{name} is written out; {_EXPECTED}"


def _of_read(read: Read, place: str) -> Iterator[str]:
    for path in read.paths:
        if not _SCHEME.match(path):
            yield f"{place}.path: {path!r} is on this machine; expected s3://..., or give source_root."
    for name, value in read.options.items():
        if isinstance(value, str) and _telling(name, value):
            yield f"{place}.options.{name} holds a secret, written out; {_EXPECTED}"
    for name, view in read.views.items():
        yield from _of_read(view, f"{place}.views.{name}")


def _telling(name: str, value: str) -> bool:
    named = _SECRET_NAME.search(name) and value not in {"", "true", "false"}
    return bool(named or _SECRET_INSIDE.search(value))
