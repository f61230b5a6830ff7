"""Find the columns and types that the values of earlier loads gave a table: in its state, or else in its files."""

import json
from collections import deque
from typing import Final

import pyarrow as pa

from lakewriter.aws import Clients
from lakewriter.cast.kind_values import ARROW
from lakewriter.commit.control import Control
from lakewriter.commit.table_objects import list_newest
from lakewriter.encode.parquet_footer import read_column_statistics, read_footer
from lakewriter.receipt import ColumnStatistics, InferredColumn, InferredType
from lakewriter.records.fold.steps import Learn, fold_ahead
from lakewriter.records.state import TableState
from lakewriter.run.prepare import has_inferred_columns, name_as_in_source
from lakewriter.source.files.file_source import infers_types
from lakewriter.spec.collection import Kind
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.table_spec import TableSpec

_FILES: Final = 8
"""The most files that are read of a table loaded by an earlier release; a later file overrules an earlier one."""
_TYPED: Final = (Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.BINARY)
_KINDS: Final = {ARROW[kind]: kind for kind in reversed(_TYPED)}


def with_earlier_columns(
    control: Control, clients: Clients, table: TableSpec, state: TableState, names: ObjectNames
) -> TableState:
    """Return the state with the columns and types that earlier loads have given the table; where it has none, with the
    types in the table's files.

    ``names`` are under the table's present backfill: files of another one lie in another directory.
    """
    if state.types is None and infers_types(table.read) and (state.is_loaded or state.adopted is not None):
        return fold_ahead(state, Learn(types=_read_types(control, clients, state)))
    if not state.is_loaded:
        return state
    if not has_inferred_columns(table) or state.inferred is not None:
        return state
    prefix = names.object_key(0).rpartition("/")[0] + "/"
    columns: dict[str, InferredColumn] = {}
    for entry in deque(control.store.list_entries(prefix), maxlen=_FILES):
        columns |= {column.name: column for column in _read_columns(clients, entry.key)}
    return fold_ahead(state, Learn(inferred=tuple(columns.values())))


def _read_types(control: Control, clients: Clients, state: TableState) -> tuple[InferredType, ...] | None:
    """Return the types in the last file of the last load, or of another writer whose files were adopted; None where
    it has left none, or another release has left files that have no types."""
    report = control.read_report(state.last_job) if state.last_job is not None else None
    listed = report.keys if report is not None else _list_adopted(control) if not state.is_loaded else ()
    keys = [key for key in listed if key.endswith(".parquet")]
    is_there = bool(keys) and control.store.find(keys[-1]) is not None
    metadata = read_footer(clients, clients.access.bucket, keys[-1]) if is_there else None
    if metadata is None:
        return None
    columns = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    return name_as_in_source(columns, state.names or ())


def _list_adopted(control: Control) -> list[str]:
    newest = list_newest(control.store, control.layout, _FILES) if control.layout is not None else []
    return [entry.key for entry in reversed(newest)]


def _read_columns(clients: Clients, key: str) -> list[InferredColumn]:
    metadata = read_footer(clients, clients.access.bucket, key)
    if metadata is None:
        return []
    statistics = read_column_statistics(metadata)
    return [
        InferredColumn(name=field.name, kind=kind_of_column(field.type, statistics.get(field.name)).value)
        for field in metadata.schema.to_arrow_schema()
    ]


def kind_of_column(t: pa.DataType, statistics: ColumnStatistics | None) -> Kind:
    """Return the kind of values that a column of documents held. Text means strings, unless its lowest value is a JSON
    string with quotes: then the column held values of several types."""
    kind = _KINDS.get(t, Kind.STRING)
    first = statistics.lower if statistics is not None else None
    if kind is not Kind.STRING or first is None or not first.startswith('"'):
        return kind
    try:
        json.loads(first)
    except ValueError:
        return Kind.STRING
    return Kind.JSON
