"""Find the columns that readers of a table have now: in its catalog, or else in a file of its last load."""

import csv
import io
import itertools
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, cast

import pyarrow as pa

from lakewriter.avro.avro_rows import read_schema
from lakewriter.aws import Clients
from lakewriter.aws.object_files import open_object, open_text
from lakewriter.column_types import name_type, to_glue_type
from lakewriter.commit.catalog import CatalogTable
from lakewriter.commit.control import Control
from lakewriter.encode.avro_schema import make_avro_schema
from lakewriter.encode.parquet_footer import read_footer
from lakewriter.errors import LakeError
from lakewriter.records.state import TableState
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_JSON_ROWS: Final = 100
_BUFFER: Final = 256 * 1024
_BROKEN: Final = (pa.ArrowException, OSError, ValueError, EOFError, LookupError, zlib.error, csv.Error)


@dataclass(frozen=True)
class Written:
    """Columns in their order, with a type in words, blank where the files have none.

    ``kind`` is ``table`` for a catalog's, or the files' format; ``key`` is the file that they were read from.
    """

    kind: str
    columns: Mapping[str, str]
    key: str = ""

    @property
    def origin(self) -> str:
        """Return the origin of the columns, for messages."""
        return "the catalog's table" if self.kind == "table" else f"a file of the last load, {self.key}"


def find_written(
    spec: Spec, table: TableSpec, control: Control, state: TableState, entry: CatalogTable, clients: Clients
) -> Written | str | None:
    """Return the columns of the table now; None for a table that was never loaded, and the reason where they are
    missing.
    """
    if not state.is_loaded:
        return None
    columns = entry.read_columns()
    if columns is not None:
        folders = {*spec.folder_keys, spec.catalog.partition_key}
        return Written("table", {name: to_glue_type(t) for name, t in columns.items() if name not in folders})
    key = _find_last_key(table, control, state)
    if key is None:
        return "the table has no file"
    try:
        return _read_columns(clients, spec.access.bucket, key)
    except LakeError as error:
        return error.message
    except _BROKEN as error:
        return f"{key} cannot be read ({error})"


def describe_columns(schema: pa.Schema, kind: str) -> dict[str, str]:
    """Return the columns that a load writes, in the words in which ``Written`` has those of its ``kind``."""
    if kind == "avro":
        return _describe_avro(make_avro_schema(schema))
    if kind in ("csv", "jsonl"):
        return dict.fromkeys(schema.names, "")
    return {field.name: name_type(field.type, is_exact=kind != "table") for field in schema}


def _find_last_key(table: TableSpec, control: Control, state: TableState) -> str | None:
    """Return a file of the last load, or of the full refresh that readers see; where a load wrote none or its report is
    gone, the table's newest file.
    """
    shown = state.shown.job_id if state.shown is not None else None
    job_id = shown if table.layout.has_generations else state.last_job
    report = control.read_report(job_id) if job_id else None
    if report is not None and report.files:
        # If the load's keys are in parts, any of its files will do.
        return report.keys[-1] if report.keys else next(control.list_written_keys(report))
    if table.layout.has_generations:
        return None
    matcher = table.layout.matcher()
    entries = (entry for entry in control.store.list_entries(f"{table.path}/") if matcher.fullmatch(entry.key))
    newest = max(entries, key=lambda entry: entry.modified, default=None)
    return None if newest is None else newest.key


def _read_columns(clients: Clients, bucket: str, key: str) -> Written | str:
    file = cast(BinaryIO, io.BufferedReader(open_object(bucket, key, clients), _BUFFER))
    start = cast(Any, file).peek(4)[:4]
    if start == b"PAR1":
        metadata = read_footer(clients, bucket, key)
        if metadata is None:
            return f"the footer of {key} is too large"
        return Written("parquet", describe_columns(metadata.schema.to_arrow_schema(), "parquet"), key)
    if start == b"Obj\x01":
        return Written("avro", _describe_avro(read_schema(file)), key)
    text = open_text(cast(Any, file))
    first = text.readline()
    if first.startswith("{"):
        return Written("jsonl", _read_json_names(first, text), key)
    return Written("csv", dict.fromkeys(next(csv.reader([first]), []), ""), key)


def _read_json_names(first: str, text: IO[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for line in itertools.islice(itertools.chain([first], text), _JSON_ROWS):
        names |= dict.fromkeys(json.loads(line), "")
    return names


def _describe_avro(schema: Mapping[str, Any]) -> dict[str, str]:
    return {field["name"]: _name_avro_type(field["type"]) for field in schema["fields"]}


_AVRO: Final = {"long": "bigint", "bytes": "binary"}
_AVRO_LOGICAL: Final = {
    "timestamp-micros": "timestamp",
    "local-timestamp-micros": "timestamp_ntz",
    "time-micros": "time",
}


def _name_avro_type(t: Any) -> str:
    if isinstance(t, list):
        branches = [_name_avro_type(branch) for branch in t if branch != "null"]
        return branches[0] if len(branches) == 1 else f"union<{','.join(branches)}>"
    if isinstance(t, str):
        return _AVRO.get(t, t)
    logical, kind = t.get("logicalType"), t["type"]
    if logical == "decimal":
        return f"decimal({t['precision']},{t.get('scale', 0)})"
    if logical is not None:
        return _AVRO_LOGICAL.get(str(logical), str(logical))
    if kind == "array":
        return f"array<{_name_avro_type(t['items'])}>"
    if kind == "map":
        return f"map<string,{_name_avro_type(t['values'])}>"
    if kind == "record":
        return f"struct<{','.join(f'{name}:{kind}' for name, kind in _describe_avro(t).items())}>"
    return _name_avro_type(kind)
