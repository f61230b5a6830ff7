"""Name what a table is read from, by OpenLineage's naming: https://openlineage.io/docs/spec/naming."""

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from lakewriter.lineage.database_names import name_table
from lakewriter.lineage.facts import Dataset
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read, TableSpec

MOST_INPUTS: Final = 100
"""Datasets that one table's events name."""

_PATTERN: Final = re.compile(r"[*?\[{]")
_S3: Final = ("s3", "s3a", "s3n")
_FILE_SYSTEMS: Final = ("hdfs", "viewfs")
_ROOT: Final = "/"
"""The name of a whole bucket."""


def list_inputs(spec: Spec, table: TableSpec) -> tuple[Dataset, ...]:
    """Return the datasets that a table is read from, as far as the file names them; for SQL, those of all its views."""
    named = _list_messages(spec, table) if table.stream is not None else _list_reads(table.read)
    return tuple(dict.fromkeys(named))[:MOST_INPUTS]


def is_plain(table: TableSpec) -> bool:
    """Return whether the rows are those of the table's inputs, so that a column is a field of the inputs."""
    return table.read.sql is None


def name_path(path: str) -> Dataset | None:
    """Return the dataset of a path; for a pattern, the folder that contains the pattern."""
    parts = urlsplit(path) if "://" in path else None
    if parts is None or parts.scheme.lower() == "file":
        folder = _cut_pattern(path.removeprefix("file:") if parts is None else unquote(parts.path))
        return Dataset("file", f"/{folder.strip('/')}") if folder.startswith("/") else None
    scheme = "s3" if parts.scheme.lower() in _S3 else parts.scheme.lower()
    # In abfss:// a container is before the @; anywhere else it is a user, and perhaps a password.
    authority = parts.netloc if scheme in ("abfs", "abfss", "wasb", "wasbs") else parts.netloc.rpartition("@")[2]
    # urlsplit takes what is behind a ? or a # for no part of the path.
    name = _cut_pattern(path.partition("://")[2].partition("/")[2]).strip("/")
    # A bucket's names are keys, a file system's begin with a slash.
    named = f"/{name}" if scheme in _FILE_SYSTEMS else name or _ROOT
    return Dataset(f"{scheme}://{authority}", named) if authority else None


def _cut_pattern(path: str) -> str:
    """Return the path up to the folder that holds all matches of a pattern."""
    match = _PATTERN.search(path)
    return path if match is None else path[: match.start()].rpartition("/")[0]


def _list_reads(read: Read) -> Iterator[Dataset]:
    for view in read.views.values():
        yield from _list_reads(view)
    kind = read.kind.name
    if kind == "jdbc":
        named = name_table(read)
        if named is not None:
            yield named
    elif kind == "kafka":
        yield from _list_topics(read)
    for path in read.paths:
        named = name_path(path)
        if named is not None:
            yield named


def _list_topics(read: Read) -> Iterator[Dataset]:
    options = {name.lower(): value for name, value in read.options.items() if isinstance(value, str)}
    host, _, port = options.get("kafka.bootstrap.servers", "").partition(",")[0].strip().rpartition(":")
    topics = [name.strip() for name in options.get("subscribe", "").split(",")] + _list_assigned(options)
    for topic in filter(None, topics if host else ()):
        yield Dataset(f"kafka://{host}:{port}", topic)


def _list_assigned(options: dict[str, str]) -> list[str]:
    """Return the topics of the option ``assign``, a JSON object of their partitions."""
    try:
        assigned = json.loads(options.get("assign", "{}"))
    except ValueError:
        return []
    return list(assigned) if isinstance(assigned, dict) else []


def _list_messages(spec: Spec, table: TableSpec) -> Iterator[Dataset]:
    """Yield the stream itself, and the files that its messages are in."""
    stream, source = table.stream, spec.source
    assert stream is not None
    yield Dataset(f"airbyte://{spec.pipeline}", ".".join(filter(None, (stream.namespace, stream.name))))
    for path in source.paths if source is not None else ():
        named = name_path(path)
        if named is not None:
            yield named
