"""Look into files: their format, their columns, and the first rows of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.cast.json_text import DocumentError, parse_document
from lakewriter.column_types import name_type
from lakewriter.dialects.common.foreign_files import recognise_file
from lakewriter.dialects.registry import FOREIGN_FILES
from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.init.csv_shape import CsvShape, read_shape
from lakewriter.report import format_count
from lakewriter.source.bad_rows import Marked
from lakewriter.source.file_splits import open_own_files, spread_locally
from lakewriter.source.files.blocks import EXPORT, MAGIC
from lakewriter.source.files.charsets import find_charset
from lakewriter.source.files.file_source import OpenedFiles
from lakewriter.source.files.json_splitter import split_documents
from lakewriter.source.storage import NotListable, find_store
from lakewriter.source.task_sizes import SourceFile
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.source_formats import FORMATS
from lakewriter.spec.table_spec import Read, TableSpec

HEAD_BYTES: Final = 256 * 1024
"""So many bytes of a file are read to find its format and its columns."""
LOOK_BYTES: Final = 64 * 1024 * 1024
"""So many bytes of a table's text, unpacked, are read to propose types, a key and a cursor."""
LOOK_ROWS: Final = 1_000_000
_LAYOUT: Final = Layout("", Template.parse("{job_id}-{seq}.parquet"))
"""It is the layout of a table that is read and not written."""

COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_ANY: Final = ("", "txt", "dat", "data")
"""Ends of names that say nothing; such text is CSV if it has so many columns:"""
_LEAST_COLUMNS: Final = 2


@dataclass(frozen=True)
class Head:
    """The beginning of a file; ``names`` are its columns at the top level."""

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
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Maps columns that a load reads as another type to the file's type and that one."""


def read_head(file: SourceFile) -> Head:
    """Read a file's beginning; ``SOURCE_FAILED`` for a format that is not read."""
    data, is_cut = _read_text(file, HEAD_BYTES)
    if not data.strip():
        raise SourceFailedError(f"{file.path} is empty.", remedy="Leave it out.")
    start = next((entry for entry in MAGIC if data.startswith(entry[0])), None)
    if start is not None:
        _, kind, what = start
        if not kind:
            raise SourceFailedError(f"{file.path} is {what}.", remedy=EXPORT)
        return Head(kind, tuple(_open_files((file.path,), kind, {}).look.schema.names))
    return _read_text_head(file, data, is_whole=not is_cut)


def _read_text_head(file: SourceFile, data: bytes, *, is_whole: bool) -> Head:
    """Return the head of a CSV or JSON file; other text is known by the end of its name, since any text could be one
    column."""
    ending = _find_ending(file.path)
    charset = find_charset(file.path, data[:1024], None)
    text = b"".join(charset.decode(iter([data]))).lstrip()
    if text[:1] in (b"{", b"[") and ending in (*FORMATS["json"].endings, *_ANY):
        documents, spans_lines = _parse_documents(text, is_whole=is_whole)
        _refuse_description(file, documents)
        return Head("json", _list_names(documents), spans_lines=spans_lines)
    if b"\0" in text:
        raise SourceFailedError(
            f"{file.path} is neither text nor a format that is known here.",
            remedy="Give files of CSV, JSON, Parquet, ORC or Avro.",
        )
    shape = read_shape(file.path, data, is_whole=is_whole)
    if ending not in FORMATS["csv"].endings and (ending not in _ANY or len(shape.names) < _LEAST_COLUMNS):
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
    """Refuse a schema or a vendor's own file: it says something about data, and is none."""
    if len(documents) != 1:
        return
    kind = recognise_file(documents[0], FOREIGN_FILES)
    what = "a JSON Schema" if "$schema" in documents[0] else kind.what if kind is not None else ""
    if what:
        raise SourceFailedError(f"{file.path} is {what}, and no data.", remedy="Name it by itself.")


def _list_options(head: Head) -> dict[str, object]:
    if head.csv is None:
        return {"multiLine": True} if head.spans_lines else {}
    return head.csv.options


def _open_files(paths: Sequence[str], form: str, options: Mapping[str, object]) -> OpenedFiles:
    """Look at files as a load does that sets bad rows aside."""
    read = Read(format=form, path=tuple(paths), options={name: _write_option(options[name]) for name in options})
    table = TableSpec(
        source_table="table",
        schema_name="",
        name="table",
        read=read,
        layout=_LAYOUT,
        path="table",
        on_bad_row=BadRows(action="quarantine"),
    )
    return open_own_files(table, spread_locally)


def read_sample(paths: Sequence[str], head: Head) -> Sample:
    """Read the first rows of a table's files, until there are enough, with what a load of them would say.

    ``paths`` are those that a load is given.
    """
    options = _list_options(head)
    taken, notes, is_whole = list[pa.RecordBatch](), list(head.csv.notes if head.csv else ()), True
    schema, stored = pa.schema([]), dict[str, str]()
    try:
        opened = _open_files(paths, head.format, options)
        notes += opened.notes
        schema, stored = opened.source.schema, opened.read_stored_types()
        batches = opened.source.read_all(opened.cut(LOOK_BYTES, spread_locally))
        for batch in batches:
            taken.append(batch)
            if sum(b.num_rows for b in taken) >= LOOK_ROWS or sum(b.nbytes for b in taken) >= LOOK_BYTES:
                is_whole = next(batches, None) is None
                break
    except LakeError as error:
        notes.append(f"a load would end: {error.message} {error.remedy}")
    rows, row_notes = _take_good_rows(taken, schema)
    types = {name: (kind, name_type(schema.field(name).type)) for name, kind in stored.items()}
    # Another type may have the same name: a reader of this draft sees no change.
    retyped = {name: (before, after) for name, (before, after) in types.items() if before.lower() != after}
    return Sample(rows, is_whole=is_whole, options=options, notes=(*notes, *row_notes), retyped=retyped)


def _take_good_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the good rows of marked batches, without columns that share a name, and what a load would say of bad
    ones."""
    good, bad, first = list[pa.RecordBatch](), 0, ""
    for batch in batches:
        marked = Marked(batch)
        for mark in marked.list_bad():
            bad, first = bad + 1, first or f"{mark['file']}, offset {mark['offset']}: {mark['reason']}"
        good.append(marked.good)
    indexes = [index for index, name in enumerate(schema.names) if schema.names.count(name) == 1]
    tables = [pa.Table.from_batches([batch]).select(indexes) for batch in good]
    rows = pa.concat_tables(tables) if tables else schema.empty_table().select(indexes)
    if not bad:
        return rows, ()
    return rows, (f"a load would end at {format_count(bad, 'row')}, unless on_bad_row keeps them apart: {first}",)


def _write_option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_text(file: SourceFile, limit: int) -> tuple[bytes, bool]:
    """Return the first ``limit`` bytes of a file, unpacked; and whether more follow."""
    try:
        store, key = find_store(file.path)
        with store.open().open_input_stream(key, compression="detect") as stream:
            data = stream.read(limit)
            return data, bool(stream.read(1))
    except (NotListable, OSError, pa.ArrowException, BotoCoreError, ClientError) as error:
        raise SourceFailedError(f"{file.path} cannot be read: {error}.", remedy="Check the file.") from error


def _parse_documents(text: bytes, *, is_whole: bool) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects in a text, and whether they are anything but one per line; a last one that is cut is left
    out."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not is_whole and len(lines) > 1:
        lines = lines[:-1]
    documents = [value for line in lines for value in _list_objects(line)]
    if documents and len(documents) * 2 >= len(lines):
        return documents, False
    parts = split_documents(iter([text]), most=len(text) + 1)
    values = [value for part in parts if part.fault is None for value in _list_objects(part.raw)]
    return values, bool(values) or len(lines) > 1


def _list_objects(raw: bytes) -> list[dict[str, Any]]:
    """Return the object that a text is, or those of the array that it is."""
    try:
        value = parse_document(raw)
    except DocumentError:
        return []
    values = value if isinstance(value, list) else [value]
    return [value for value in values if isinstance(value, dict)]


def _list_names(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for document in documents for name in document))
