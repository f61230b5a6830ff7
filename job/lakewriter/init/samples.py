"""Look into files: their format, their columns, and the first rows of them."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.dialects.common.foreign_files import recognise_file
from lakewriter.dialects.registry import FOREIGN_FILES
from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.init.csv_shape import CsvShape, find_encoding, read_shape
from lakewriter.report import format_count
from lakewriter.source.file_splits import open_own_files, spread_locally
from lakewriter.source.files.source import has_reader
from lakewriter.source.packing import SourceFile
from lakewriter.source.storage import NotListable, find_store
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.specification import Read, TableSpec

HEAD_BYTES: Final = 256 * 1024
"""Of a file, to tell its format and its columns."""
LOOK_BYTES: Final = 64 * 1024 * 1024
"""Of a table's text, unpacked, to propose types, a key and a cursor."""
LOOK_ROWS: Final = 1_000_000
_LAYOUT: Final = Layout("", Template.parse("{job_id}-{seq}.parquet"))
"""Of a table that is read and not written."""

_MAGIC: Final = ((b"PAR1", "parquet"), (b"ORC", "orc"), (b"Obj\x01", "avro"))
_REFUSED: Final = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "a SQLite database; export its tables, or read it by jdbc: with its driver",
}


COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_JSON: Final = ("json", "jsonl", "ndjson", "geojson")
_CSV: Final = ("csv", "tsv", "tab", "psv")
_ANY: Final = ("", "txt", "dat", "data")
"""Ends of names that say nothing; such text is CSV if it has so many columns:"""
_LEAST_COLUMNS: Final = 2


@dataclass(frozen=True)
class Head:
    """What a file's beginning shows; ``names`` are its columns at the top level."""

    format: str
    names: tuple[str, ...]
    csv: CsvShape | None = None
    spans_lines: bool = False
    """JSON documents that are not one per line."""


@dataclass(frozen=True)
class Sample:
    """Rows of a table; ``is_whole`` where no row was left out. Columns of text files are text."""

    rows: pa.Table
    is_whole: bool
    options: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_head(file: SourceFile) -> Head:
    """Read a file's beginning; ``SOURCE_FAILED`` for a format that Spark does not read by itself."""
    data, _ = _read_text(file, HEAD_BYTES)
    if not data.strip():
        raise SourceFailedError(f"{file.path} is empty.", remedy="Leave it out.")
    for mark, what in _REFUSED.items():
        if data.startswith(mark):
            raise SourceFailedError(f"{file.path} is {what}.", remedy="Give files of CSV, JSON, Parquet or ORC.")
    kind = next((kind for mark, kind in _MAGIC if data.startswith(mark)), None)
    if kind in ("parquet", "orc"):
        return Head(kind, tuple(_read_columnar(file, kind)[0].names))
    if kind == "avro":
        return Head("avro", ())
    return _read_text_head(file, data)


def _read_text_head(file: SourceFile, data: bytes) -> Head:
    """The head of a CSV or JSON file; other text is told by the end of its name, since any text could be one column."""
    ending = _find_ending(file.path)
    text = data.decode(find_encoding(data), errors="replace").removeprefix("\ufeff").lstrip()
    if text[:1] in ("{", "[") and ending in (*_JSON, *_ANY):
        documents, spans_lines = _parse_documents(text)
        _refuse_description(file, documents)
        return Head("json", _list_names(documents), spans_lines=spans_lines)
    if b"\0" in data and find_encoding(data) != "utf-16":
        raise SourceFailedError(
            f"{file.path} is neither text nor a format that is known here.",
            remedy="Give files of CSV, JSON, Parquet or ORC.",
        )
    shape = read_shape(data)
    if ending not in _CSV and (ending not in _ANY or len(shape.names) < _LEAST_COLUMNS):
        raise SourceFailedError(
            f"{file.path} is text, and by its name neither CSV nor JSON.",
            remedy="Leave it out, or rename it to .csv or .json if that is what it holds.",
        )
    return Head("csv", shape.names, shape)


def _find_ending(path: str) -> str:
    base = path.rpartition("/")[2].lower()
    for ending in COMPRESSED:
        base = base.removesuffix(ending)
    return base.rpartition(".")[2] if "." in base else ""


def _refuse_description(file: SourceFile, documents: Sequence[Mapping[str, Any]]) -> None:
    """A schema or a vendor's own file says something about data, and is none."""
    if len(documents) != 1:
        return
    kind = recognise_file(documents[0], FOREIGN_FILES)
    what = "a JSON Schema" if "$schema" in documents[0] else kind.what if kind is not None else ""
    if what:
        raise SourceFailedError(f"{file.path} is {what}, and no data.", remedy="Name it by itself.")


def read_sample(files: Sequence[SourceFile], head: Head) -> Sample:
    """Read the first rows of a table's files, until there are enough."""
    if head.format == "avro":
        note = (
            "Spark reads Avro with its package: PYSPARK_SUBMIT_ARGS='--packages org.apache.spark:spark-avro_2.13:...'"
        )
        return Sample(pa.table({}), is_whole=False, notes=(note,))
    if head.format in ("parquet", "orc"):
        return _sample_columnar(files, head.format)
    read = _read_csv_tables if head.format == "csv" else _read_json_tables
    tables, cut, left = list[pa.Table](), False, LOOK_BYTES
    for file in files:
        if left <= 0:
            cut = True
            break
        data, is_rest = _read_text(file, left)
        left -= len(data)
        cut = cut or is_rest
        tables += read(data, head, is_cut=is_rest)
    rows = _concatenate(tables)
    return Sample(rows, is_whole=not cut, options=_list_options(head), notes=head.csv.notes if head.csv else ())


def _list_options(head: Head) -> dict[str, object]:
    if head.csv is None:
        return {"multiLine": True} if head.spans_lines else {}
    return head.csv.options


def read_back(name: str, form: str, paths: Sequence[str], options: Mapping[str, object]) -> tuple[str, ...]:
    """Read files as a load would by these options, and return what it would say of them."""
    read = Read(format=form, path=tuple(paths), options={key: _write_option(value) for key, value in options.items()})
    if not has_reader(read):
        return ()
    table = TableSpec(
        source_table=name,
        schema_name="",
        name=name,
        read=read,
        layout=_LAYOUT,
        path=name,
        on_bad_row=BadRows(action="set_aside"),
    )
    bad, first, looked = 0, "", 0
    try:
        opened = open_own_files(table, spread_locally)
        for batch in opened.source.read_all(opened.cut(LOOK_BYTES, spread_locally)):
            reasons = batch.column(batch.num_columns - 1)
            for mark in reasons.filter(reasons.field("reason").is_valid()).to_pylist():
                bad, first = bad + 1, first or f"{mark['file']}, offset {mark['offset']}: {mark['reason']}"
            looked += batch.num_rows
            if looked >= LOOK_ROWS:
                break
    except LakeError as error:
        return (f"a load would end: {error.message} {error.remedy}",)
    told = (
        (f"a load would end at {format_count(bad, 'row')}, unless on_bad_row keeps them apart: {first}",) if bad else ()
    )
    return (*opened.notes, *told)


def _write_option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_text(file: SourceFile, limit: int) -> tuple[bytes, bool]:
    """The first ``limit`` bytes of a file, unpacked; and whether more follow."""
    try:
        store, place = find_store(file.path)
        with store.open().open_input_stream(place, compression="detect") as stream:
            data = stream.read(limit)
            return data, bool(stream.read(1))
    except (NotListable, OSError, pa.ArrowException, BotoCoreError, ClientError) as error:
        raise SourceFailedError(f"{file.path} cannot be read: {error}.", remedy="Check the file.") from error


def _read_csv_tables(data: bytes, head: Head, *, is_cut: bool) -> Iterator[pa.Table]:
    shape = head.csv
    assert shape is not None
    text = data.decode("utf-8-sig" if shape.encoding == "utf-8" else shape.encoding, errors="replace")
    if is_cut:
        text = text[: text.rfind("\n") + 1]
    own = read_shape(data[:HEAD_BYTES])
    names = own.names if own.has_header == shape.has_header else shape.names
    table = pa.csv.read_csv(
        io.BytesIO(text.encode("utf-8")),
        read_options=pa.csv.ReadOptions(column_names=list(names), skip_rows=int(shape.has_header)),
        parse_options=pa.csv.ParseOptions(
            delimiter=shape.separator, newlines_in_values=True, invalid_row_handler=lambda _: "skip"
        ),
        # Spark takes an empty value for null, and a quoted one for empty text.
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    yield table


def _read_json_tables(data: bytes, head: Head, *, is_cut: bool) -> Iterator[pa.Table]:
    text = data.decode(find_encoding(data), errors="replace").removeprefix("\ufeff")
    documents = _parse_documents(text.lstrip(), is_cut=is_cut)[0]
    names = _list_names(documents)
    yield pa.table({name: _make_column([document.get(name) for document in documents]) for name in names})


def _make_column(values: list[Any]) -> pa.Array:
    """Text where all values are text, numbers where all are; others as a struct of their JSON, which is no text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str} or kinds <= {bool} or kinds <= {int}:
        try:
            return pa.array(values, from_pandas=False) if kinds else pa.nulls(len(values), pa.string())
        except (pa.ArrowInvalid, OverflowError):
            pass
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.StructArray.from_arrays([pa.array(texts, pa.string())], ["json"])


def _parse_documents(text: str, *, is_cut: bool = True) -> tuple[list[dict[str, Any]], bool]:
    """The objects in a text, and whether they are anything but one per line; a last one that is cut is left out."""
    lines = [line for line in text.splitlines() if line.strip()]
    if is_cut and len(lines) > 1 and not text.endswith("\n"):
        lines = lines[:-1]
    documents = list(_decode_lines(lines))
    if documents and len(documents) * 2 >= len(lines):
        return documents, False
    decoder, place, found = json.JSONDecoder(), 0, list[Any]()
    inner = text[1:] if text.startswith("[") else text
    while place < len(inner) and len(found) < LOOK_ROWS:
        start = inner.find("{", place)
        if start < 0:
            break
        try:
            value, place = decoder.raw_decode(inner, start)
        except ValueError:
            break
        found.append(value)
    return [value for value in found if isinstance(value, dict)], True


def _decode_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in islice(lines, LOOK_ROWS):
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict):
            yield value


def _list_names(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for document in documents for name in document))


def _read_columnar(file: SourceFile, kind: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch], int]:
    """A Parquet or ORC file's schema, its rows in batches, and how many rows it has."""
    try:
        store, place = find_store(file.path)
        source = store.open().open_input_file(place)
        if kind == "parquet":
            opened = pq.ParquetFile(source)
            return opened.schema_arrow, opened.iter_batches(), opened.metadata.num_rows
        stripes = pa.orc.ORCFile(source)
        batches = (stripes.read_stripe(number) for number in range(stripes.nstripes))
        return stripes.schema, batches, stripes.nrows
    except (NotListable, OSError, pa.ArrowException, BotoCoreError, ClientError) as error:
        raise SourceFailedError(f"{file.path} cannot be read as {kind}: {error}.", remedy="Check the file.") from error


def _sample_columnar(files: Sequence[SourceFile], kind: str) -> Sample:
    tables, total, looked, size = list[pa.Table](), 0, 0, 0
    for file in files:
        schema, batches, rows = _read_columnar(file, kind)
        total += rows
        taken = list[pa.RecordBatch]()
        for batch in batches:
            if looked >= LOOK_ROWS or size >= LOOK_BYTES:
                break
            taken.append(batch)
            looked, size = looked + batch.num_rows, size + batch.nbytes
        tables.append(pa.Table.from_batches(taken, schema))
    return Sample(_concatenate(tables), is_whole=looked >= total)


def _concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    """One table with every column of any; a column whose type differs between files is left as it is in the first."""
    if not tables:
        return pa.table({})
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    columns = {}
    for name in names:
        kind = next(table.schema.field(name).type for table in tables if name in table.column_names)
        parts = [
            table[name] if name in table.column_names and table.schema.field(name).type == kind
            else pa.chunked_array([pa.nulls(table.num_rows, kind)])
            for table in tables
        ]  # fmt: skip
        columns[name] = pa.chunked_array([chunk for part in parts for chunk in part.chunks], kind)
    return pa.table(columns)
