"""Return the rows of a quarantine as the source would give them today, parsed by the table's present columns."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from lakewriter.cast.exact_text import TextForm, convert_json, read_json
from lakewriter.cast.spelling_table import MisfitError
from lakewriter.column_types import name_type
from lakewriter.documents.types import CHANGES, DATA, DOCUMENTS, EMITTED, ROW
from lakewriter.errors import SourceFailedError
from lakewriter.source.bad_rows import BAD, mark_schema
from lakewriter.source.declared_columns import apply_declared_types, make_form, number_fields
from lakewriter.source.file_splits import open_own_files, spread_locally
from lakewriter.source.files.file_source import FilesSource, has_reader
from lakewriter.source.marked_rows import mark
from lakewriter.source.messages.lines import NOTHING, parse_line
from lakewriter.source.messages.mended_lines import Odd, parse_odd_line
from lakewriter.source.messages.splits import FILE_BITS
from lakewriter.source.request import RowsRequest
from lakewriter.source.session import isolate
from lakewriter.source.table_frames import load_source, prepare_delivery
from lakewriter.spec.stream import StreamKey
from lakewriter.spec.table_spec import TableSpec

Read = Callable[[str], bytes]
"""A function from a key to the content of its file."""

_READ: Final = {
    "_lake_source": "file",
    "_lake_offset": "offset",
    "_lake_row": "row",
    "_lake_line": "line",
    "_lake_message": "message",
}
_RAW: Final = pa.schema(
    [
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("row", pa.string()),
        ("given", pa.string()),
        ("line", pa.string()),
        ("message", pa.string()),
        ("number", pa.int64()),
    ]
)
"""The columns of a quarantine's files. ``given`` is the row as the source would give it today, ``number`` its
number in the replay."""
_RECORDS: Final = mark_schema([field.with_nullable(True) for field in DOCUMENTS])
_NO_RECORD: Final = "not a record of this stream"
_NO_LINES: Final = "it is a line, and the source has none"


class _Column(NamedTuple):
    """A column of the source as the table declares it; ``before`` is what the source called it before, if otherwise."""

    name: str
    before: str | None
    kind: pa.DataType
    form: TextForm


class _MessageFields(msgspec.Struct):
    """The fields of a record's message besides its data."""

    emitted_at: int | None = None
    changes: msgspec.Raw = NOTHING


def read_quarantined(
    spark_factory: Callable[[], SparkSession], table: TableSpec, read: Read, keys: Sequence[str]
) -> DataFrame:
    """Return the rows of the files ``keys``, which tasks ``read``, with a column of marks.

    A row that does not fit the columns is bad, and goes back into the quarantine unchanged.
    """
    session = isolate(spark_factory())
    request = RowsRequest(spark_factory, table)
    with request.origin.explain_errors():
        if has_reader(table.read):
            return _read_file_rows(session, table, read, keys)
        source = load_source(session, request, table.read, aside=False).frame
        whole, lines = _open_files(session, read, keys)
        typed, _ = apply_declared_types(source, table, in_spark=True)
        return _keep_lines(_parse_rows(whole, prepare_delivery(typed)[1], table), lines)


def _keep_lines(rows: DataFrame, lines: DataFrame) -> DataFrame:
    """Return rows, and the lines of a source that no longer has lines, marked as bad.

    The lines go back into the quarantine, since their files are deleted.
    """
    marks = mark(file=F.col("file"), offset=F.col("offset"), value=F.col("line"), reason=F.lit(_NO_LINES))
    nothing = [F.lit(None).cast(field.dataType) for field in rows.schema.fields[:-1]]
    return rows.union(lines.select(*nothing, marks))


def _read_file_rows(session: SparkSession, table: TableSpec, read: Read, keys: Sequence[str]) -> DataFrame:
    """Return the rows, and the lines as the reader of the source's format parses them today."""
    opened = open_own_files(table, spread_locally)
    source, layouts = opened.source, {file.path: layout for file, layout in opened.look.files}
    if not source.reader.has_lines:
        whole, lines = _open_files(session, read, keys)
        return _keep_lines(_parse_rows(whole, source.schema, table), lines)
    if not layouts:
        raise SourceFailedError(
            f"table {table.id!r}: no file of the source has rows, so that what its lines are is not known.",
            remedy="Run the replay again when there is one.",
        )
    null = table.read.options.get("nullValue") if table.read.kind.name == "csv" else None
    whole, lines = _open_files(session, read, keys, None if null is None else str(null))
    rows = _parse_rows(whole, source.schema, table)
    kinds = from_arrow_schema(mark_schema(number_fields(source.schema)), prefer_timestamp_ntz=True)
    parsed = lines.select("file", "offset", "line").mapInArrow(partial(_reread, source, layouts), kinds)
    return rows.union(parsed)


def _reread(
    source: FilesSource, layouts: Mapping[str, Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            for parsed in source.reread(row["file"], row["offset"], row["line"], layouts):
                yield parsed.rename_columns([*(f"c{index}" for index in range(parsed.num_columns - 1)), BAD])


def read_quarantined_records(
    spark_factory: Callable[[], SparkSession], table: TableSpec, read: Read, keys: Sequence[str]
) -> DataFrame:
    """Return the records of a stream in the files ``keys`` as documents, with a column of marks.

    A line that is not a record of the stream is bad.
    """
    assert table.stream is not None
    rows, lines = _open_files(isolate(spark_factory()), read, keys)
    return rows.union(lines).mapInArrow(partial(_parse_records, table.stream.key), from_arrow_schema(_RECORDS))


def _open_files(
    session: SparkSession, read: Read, keys: Sequence[str], null: str | None = None
) -> tuple[DataFrame, DataFrame]:
    """Return the rows in the files, and the lines that could not be read, in the columns of ``_RAW``.

    ``null`` is the text that the reader takes for null.
    """
    count = max(1, len(keys))
    task = partial(_read_files, read, tuple(keys), null)
    files = session.range(0, count, 1, count).mapInArrow(task, from_arrow_schema(_RAW))
    # A line without a cursor is kept by each load that reads it.
    lines = files.where("row IS NULL").dropDuplicates(["file", "offset", "line"])
    return files.where("row IS NOT NULL"), lines


def _parse_rows(rows: DataFrame, declared: pa.Schema, table: TableSpec) -> DataFrame:
    """Return rows of JSON in the source's columns as the table declares them, then their marks."""
    forms = {name.lower(): make_form(column, table) for name, column in table.columns.items()}
    default = TextForm(truncates_nanoseconds=table.truncates_nanoseconds)
    renamed = {name.lower(): before for name, before in table.renamed_from.items()}
    columns = [
        _Column(field.name, renamed.get(field.name.lower()), field.type, forms.get(field.name.lower(), default))
        for field in declared
    ]
    schema = mark_schema([pa.field(field.name, field.type) for field in number_fields(declared)])
    parsed = rows.mapInArrow(partial(_convert_rows, columns, schema), from_arrow_schema(schema, True))
    return parsed.toDF(*declared.names, BAD)


def _convert_rows(
    columns: Sequence[_Column], schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_convert_row(columns, row) for row in batch.to_pylist()]
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), schema.types, strict=True)]
        yield from [pa.RecordBatch.from_arrays(arrays, schema=schema)] if rows else []


def _convert_row(columns: Sequence[_Column], row: Mapping[str, Any]) -> list[Any]:
    """Return a row's values and its mark. If a value does not convert, the mark has the row unchanged."""
    members, values, reasons = read_json(row["given"]), [], []
    for name, before, kind, form in columns:
        try:
            value = members.get(name) if name in members or before is None else members.get(before)
            values.append(_convert_member(value, kind, form))
        except MisfitError as misfit:
            reasons.append(f"{name}: it does not convert to {name_type(kind)}: {misfit}")
            values.append(None)
    mark = {"file": row["file"], "offset": row["offset"]}
    if reasons:
        return [*(None for _ in columns), mark | {"reason": "; ".join(reasons), "row": row["row"]}]
    return [*values, mark]


def _convert_member(value: Any, kind: pa.DataType, form: TextForm) -> Any:
    """Convert a stored value: it is spelled by default if it was of its type, else as the source spells it."""
    try:
        return convert_json(value, kind)[0]
    except MisfitError:
        return convert_json(value, kind, form)[0]


def _read_files(
    read: Read, keys: Sequence[str], null: str | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for key in keys[number : number + 1]:
                rows = pq.read_table(io.BytesIO(read(key)), columns=list(_READ)).rename_columns(list(_READ.values()))
                first = number << FILE_BITS
                rows = rows.append_column("number", pa.arange(first, first + rows.num_rows))
                given = rows.column("row").to_pylist() if null is not None else []
                dropped = pa.array([row and drop_text(row, str(null)) for row in given], pa.string())
                rows = rows.append_column("given", dropped if given else rows.column("row"))
                yield from rows.select(_RAW.names).cast(_RAW).to_batches()


def drop_text(row: str, text: str) -> str:
    """Return the row without the columns that have this text, which the reader takes for null today.

    The other values stay as they are written: a parsed number would lose digits.
    """
    decoder, members, start = json.JSONDecoder(), [], 1
    while row[start] != "}":
        _, colon = decoder.raw_decode(row, start)
        value, end = decoder.raw_decode(row, colon + 1)
        members += [row[start:end]] if value != text else []
        start = end + 1 if row[end] == "," else end
    return f"{{{','.join(members)}}}"


def _parse_records(key: StreamKey, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        parsed = [_parse_record(key, row) for row in batch.to_pylist()]
        if parsed:
            yield pa.RecordBatch.from_pylist(parsed, _RECORDS)


def _parse_record(key: StreamKey, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's document. A line that is not a record of the stream is returned unchanged, with the reason.

    Only the product itself reads a message's line: an older release may have stored one that this release reads.
    """
    mark = {"file": row["file"], "offset": row["offset"]}
    if row["row"] is not None:
        fields = msgspec.json.decode(row["message"] or "{}", type=_MessageFields)
        changes = bytes(fields.changes).decode() or None
        return {ROW: row["number"], DATA: row["row"], EMITTED: fields.emitted_at, CHANGES: changes, BAD: mark}
    line = row["line"].encode()
    odd = Odd(message) if (message := parse_line(line)) is not None else parse_odd_line(line)
    record = odd.message.record if odd.message is not None else None
    if record is None or record.key != key:
        return {BAD: mark | {"value": row["line"], "reason": odd.fault or _NO_RECORD}}
    changes = (bytes(record.meta.changes).decode() or None) if record.meta is not None else None
    emitted_at = None if record.emitted_at is None else int(record.emitted_at)
    return {ROW: row["number"], DATA: record.text.decode(), EMITTED: emitted_at, CHANGES: changes, BAD: mark}
