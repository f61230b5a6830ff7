"""Open a source of files as one table reads it: with its reader, the types that the table declares, and its rule for
bad rows.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, TextForm
from lakewriter.cast.sql_types import parse_columns
from lakewriter.cast.typed_cast import is_castable
from lakewriter.column_types import can_hold, is_same_type, is_void, make_list, name_type, note_type, read_noted_type
from lakewriter.documents.nesting import cut
from lakewriter.errors import (
    LakeError,
    SchemaIncompatibleError,
    SourceFailedError,
    SpecInvalidError,
    ValueUnrepresentableError,
)
from lakewriter.receipt import InferredType
from lakewriter.report import format_count, join_first
from lakewriter.source.bad_rows import KEEP_APART, Marked
from lakewriter.source.change_events.members import NO_EVENT
from lakewriter.source.declared_columns import ColumnCast, cast_batch, declare_schema, plan_casts
from lakewriter.source.files.avro_reader import AvroReader
from lakewriter.source.files.charsets import Charset
from lakewriter.source.files.columnar import ColumnarReader
from lakewriter.source.files.csv_reader import CsvReader
from lakewriter.source.files.csv_rows import BEHIND_QUOTE, LINE_END
from lakewriter.source.files.file_reader import FileReader, Look, Piece, Spread
from lakewriter.source.files.folder_listing import Listing, keep_listed, list_stored
from lakewriter.source.files.format_detection import make_empty_error, suggest_charset
from lakewriter.source.files.inferred_types import infer_types
from lakewriter.source.files.json_reader import JsonReader
from lakewriter.source.files.known_types import TypeFit, fill_void, name_void, take_void
from lakewriter.source.files.orc_reader import OrcReader
from lakewriter.source.files.parquet_reader import ParquetReader
from lakewriter.source.files.spark_options import Options, take_options
from lakewriter.source.files.stored_files import HeldFile
from lakewriter.source.files.stored_values import FINER
from lakewriter.source.files.text_reader import TextReader
from lakewriter.spec.source_formats import Format
from lakewriter.spec.table_spec import KnownTypes, Read, TableSpec

_MAKE: Final[Mapping[str, Callable[[Options, pa.Schema | None], FileReader]]] = {
    "avro": AvroReader.make,
    "csv": CsvReader.make,
    "json": JsonReader.make,
    "orc": OrcReader.make,
    "parquet": ParquetReader.make,
    "text": TextReader.make,
}
"""The functions that make the reader of each format."""
_SHOWN: Final = 300
_MOST_NAMES: Final = 4
_LARGE: Final = 256 * 1024 * 1024
"""The stored size in bytes from which a file is worth several tasks."""
_ASIDE: Final = f"Correct the file, or keep such rows apart, up to a share of all: {KEEP_APART}."


def has_reader(read: Read) -> bool:
    """Return True if the product's own reader reads files of this format."""
    return bool(read.paths) and read.has_reader


def infers_types(read: Read) -> bool:
    """Return True if the values of a source decide the types of its columns, or of the columns of one of its views."""
    if read.sql is not None:
        return any(map(infers_types, read.views.values()))
    options = {name.lower(): str(value).lower() for name, value in read.options.items()}
    is_asked = read.kind.types == "values" and (read.kind.name != "csv" or options.get("inferschema") == "true")
    return is_asked and read.columns is None


@dataclass(frozen=True)
class JoinedColumns:
    """All columns, the earlier ones first. ``indexes`` are their indexes in the files, -1 for columns in no file."""

    schema: pa.Schema
    indexes: tuple[int, ...]

    def list_asked(self, file_columns: pa.Schema, typed: pa.Schema) -> pa.Schema:
        """Return the columns of the files with the types that ``typed`` has for all columns."""
        types = {index: typed.field(number).type for number, index in enumerate(self.indexes) if index >= 0}
        return pa.schema([field.with_type(types[index]) for index, field in enumerate(file_columns)])


def join_columns(file_columns: pa.Schema, earlier: pa.Schema, *, by_values: bool) -> JoinedColumns:
    """Return the earlier columns and then the other columns of the files.

    A column keeps its earlier type if the file's type follows from values, ``by_values``, or converts to it without
    loss.
    """
    named = {name: index for index, name in enumerate(file_columns.names)}
    folded = {name.strip().lower(): index for index, name in enumerate(file_columns.names)}
    earlier_names = {name.strip().lower() for name in earlier.names}
    is_exact = len(folded) < len(file_columns) or len(earlier_names) < len(earlier)
    fields, indexes = list[pa.Field](), list[int]()
    for field in earlier:
        index = named.get(field.name, -1 if is_exact else folded.get(field.name.strip().lower(), -1))
        kind = field.type if index < 0 else _join_types(file_columns.field(index).type, field.type, by_values)
        fields.append(field.with_type(kind))
        indexes.append(index)
    new = [index for index in range(len(file_columns)) if index not in indexes]
    return JoinedColumns(pa.schema([*fields, *(file_columns.field(index) for index in new)]), (*indexes, *new))


def _join_types(file_type: pa.DataType, earlier: pa.DataType, by_values: bool) -> pa.DataType:
    if pt.is_struct(file_type) and pt.is_struct(earlier):
        return pa.struct(list(join_columns(pa.schema(file_type), pa.schema(earlier), by_values=by_values).schema))
    if pt.is_list(file_type) and pt.is_list(earlier):
        return make_list(_join_types(file_type.value_type, earlier.value_type, by_values))
    # What has no value yet has no type.
    if is_void(earlier):
        return file_type
    return earlier if by_values or can_hold(earlier, file_type) else file_type


@dataclass(frozen=True)
class FilesSource:
    """The source that a task needs to read a piece; picklable.

    ``read_schema`` are the columns that the reader is asked for. ``chosen`` are the columns of the batches with their
    indexes in it; None if both are the same. The folders' keys are texts behind them; ``casts`` apply to all these
    columns. If ``aside``, batches have marks behind their columns; otherwise the first bad row is an error.
    """

    table: str
    reader: FileReader
    read_schema: pa.Schema
    folder_keys: tuple[str, ...]
    casts: tuple[ColumnCast, ...]
    aside: bool
    chosen: JoinedColumns | None = None
    void: tuple[tuple[int, pa.DataType], ...] = ()
    """The types of columns that have parts without values, by their indexes: these are read as text."""
    has_all_rows: ClassVar[bool] = True

    @property
    def columns(self) -> pa.Schema:
        """The columns of the files."""
        schema = self.read_schema if self.chosen is None else self.chosen.schema
        for index, kind in self.void:
            schema = schema.set(index, schema.field(index).with_type(name_void(kind)))
        return schema

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, without their marks."""
        fields = [*self.columns, *(pa.field(key, pa.string()) for key in self.folder_keys)]
        return declare_schema(pa.schema(fields), self.casts)

    def select(self, wanted: Collection[str]) -> "FilesSource":
        """Return the source with null for the columns that are not ``wanted``, for a format that can skip columns."""
        asked = pa.schema([field for field in self.read_schema if field.name in wanted])
        indexes = itertools.count()
        chosen = tuple(next(indexes) if field.name in wanted else -1 for field in self.read_schema)
        return replace(self, read_schema=asked, chosen=JoinedColumns(self.read_schema, chosen))

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        for batch in self.reader.read(piece, self.read_schema):
            whole = self._add_folders(self._take_void(self._choose_columns(batch)), piece)
            typed = cast_batch(whole, self.casts, self.table, piece.file.path) if self.casts else whole
            if self.aside:
                yield typed
            else:
                self._require_good(typed, piece)
                yield Marked(typed).rows

    def read_all(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of several pieces."""
        for piece in pieces:
            yield from self.read(piece)

    def count_all(self, pieces: Sequence[Piece]) -> int:
        """Return how many rows several pieces have."""
        return sum(self.reader.count(piece) for piece in pieces)

    def reread(self, path: str, offset: int, line: str, layouts: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a line stored from the file at ``path``; ``layouts`` are those of today's files."""
        content = line.encode(errors="surrogatepass")
        parts = [part.partition("=") for part in path.split("/")[:-1]]
        values = {unquote(key): unquote(value) for key, _, value in parts}
        folders = tuple((key, values.get(key)) for key in self.folder_keys)
        file = HeldFile(path, offset + len(content), "", folders=folders, content=content)
        layout = layouts.get(path) or next(iter(layouts.values()))
        plain = replace(layout, compression=None, charset=Charset())
        yield from self.read(Piece(file, offset, file.size, plain, is_whole=True))

    def _choose_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns in their order, null for those that are not read."""
        if self.chosen is None:
            return batch
        columns = [
            pa.nulls(batch.num_rows, field.type) if index < 0 else batch.column(index)
            for field, index in zip(self.chosen.schema, self.chosen.indexes, strict=True)
        ]
        return Marked(batch).replace_rows(columns, self.chosen.schema)

    def _take_void(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for index, kind in self.void:
            values = take_void(batch.column(index), kind)
            batch = batch.set_column(index, batch.schema.field(index).with_type(values.type), values)
        return batch

    def _add_folders(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        if not self.folder_keys:
            return batch
        marked = Marked(batch)
        values = [pa.repeat(pa.scalar(value, pa.string()), batch.num_rows) for _, value in piece.file.folders]
        named = [pa.field(key, pa.string()) for key in self.folder_keys]
        return marked.replace_rows([*marked.rows.columns, *values], [*marked.rows.schema, *named])

    def _require_good(self, batch: pa.RecordBatch, piece: Piece) -> None:
        for mark in Marked(batch).list_bad():
            where = f"table {self.table!r}: {mark['file']!r}, {self._name_position(piece, mark['offset'])}"
            raise make_bad_row_error(where, mark)

    def _name_position(self, piece: Piece, offset: int) -> str:
        if not self.reader.has_lines:
            return f"row {offset}"
        line = self.reader.find_line(piece, offset)
        return f"{f'line {line}, ' if line else ''}offset {offset}"


def make_bad_row_error(where: str, mark: Mapping[str, str | None]) -> LakeError:
    """Make the error for a bad row of a table that fails on it; ``where`` names its file, and its line or row."""
    value, column = mark["value"] or "", mark["column"]
    shown = repr(cut(value, _SHOWN))
    if column is not None:
        is_finer = mark["reason"] == FINER
        remedy = "Have it cut: nanoseconds: truncate. " if is_finer else "Declare another type under columns:. "
        message = f"{where}, column {column!r}: {mark['reason']}: {shown}"
        return ValueUnrepresentableError(f"{message}.", remedy=f"{remedy}{_ASIDE}")
    kind = ValueUnrepresentableError if str(mark["reason"]).startswith("byte ") else SourceFailedError
    remedy = suggest_charset(value) if kind is ValueUnrepresentableError else ""
    if mark["reason"] == BEHIND_QUOTE and '\\"' in value:
        remedy = "If a backslash escapes quotes in it, set options: {escape: '\\'}. "
    elif mark["reason"] == LINE_END and "\r" not in value:
        remedy = 'If LF and CRLF both end its rows, set options: {lineSep: "\\n"}. '
    return kind(f"{where}: {mark['reason']}: {shown}.", remedy=f"{remedy}{_ASIDE}")


@dataclass(frozen=True)
class OpenedFiles:
    """A source whose files have been looked at."""

    source: FilesSource
    look: Look
    listing: Listing
    is_empty: bool
    form: str
    inferred: tuple[InferredType, ...] = ()
    """The types that its columns have by their values, as a table's state keeps them."""
    is_untyped: bool = False
    """The values of its files give columns their types, and there is no row."""

    @property
    def may_skip_columns(self) -> bool:
        """True if columns may be left unread. In a file of text a row is good only if all its values are."""
        return not self.source.reader.has_lines

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences between its files, in words for a user."""
        return (*self.listing.notes, *self.look.notes, *_note_whole_files(self.look), *self._note_empty())

    def _note_empty(self) -> Iterator[str]:
        """Yield a note on files of text without a line beside others; typed files note theirs with their columns."""
        filled = {file.path for file, _ in self.look.files if file.size}
        empty = [file.path.rpartition("/")[2] for file in self.listing.files if file.path not in filled]
        if empty and filled and self.source.reader.has_lines:
            shown = join_first(empty, _MOST_NAMES)
            yield f"{len(empty):,} of {format_count(len(self.listing.files), 'file')} without rows: {shown}"

    def read_stored_types(self) -> dict[str, str]:
        """Return the types of the columns that its first file stores as another type."""
        reader = self.source.reader
        if not isinstance(reader, ColumnarReader) or not self.look.files:
            return {}
        stored = reader.read_stored_types(self.look.files[0][0])
        read = {field.name: field.type for field in self.look.schema}
        changed = (f for f in stored if f.name in read and not is_same_type(f.type, read[f.name]))
        return {field.name: name_type(field.type) for field in changed}

    def cut(self, size: int, spread: Spread) -> list[Piece]:
        """Return the pieces of its files, each of about ``size`` bytes; none if only their columns are needed."""
        return [] if self.is_empty else self.source.reader.cut(self.look, size, spread)


def _note_whole_files(look: Look) -> tuple[str, ...]:
    """Return a note on large files that one task reads alone, with the reason."""
    whole = [
        (file.path, f"in {layout.compression}" if layout.compression else f"in {layout.charset.shown_name}")
        for file, layout in look.files
        if file.size >= _LARGE and hasattr(layout, "charset") and (layout.compression or not layout.charset.is_plain)
    ]
    if not whole:
        return ()
    path, why = whole[0]
    more = f", as of {format_count(len(whole) - 1, 'other file')}" if len(whole) > 1 else ""
    return (f"{path!r} is {why}, so that one task reads the whole file{more}",)


def open_files(
    table: TableSpec,
    read: Read,
    options: Mapping[str, str],
    spread: Spread,
    *,
    aside: bool,
    given: Listing | None = None,
    earlier: pa.Schema | None = None,
) -> OpenedFiles:
    """Look at the files of a source, and raise all errors that do not need a row.

    Args:
        table: The table, with the types that it declares for columns of this source.
        read: The source, which ``has_reader``.
        options: The source's options, with the values of its secrets.
        spread: Calls the work on files, if all their rows have to be read.
        aside: Whether bad rows are marked; else the first one is an error.
        given: The files, if they are listed already.
        earlier: Columns that the source had before. They come first, even if the files lack them.
    """
    form = read.kind
    table, read, inside = _split_declared(table, read)
    taken = replace(
        take_options(form.name, options, table.id),
        truncates_nanoseconds=table.truncates_nanoseconds,
        nameless=read.nameless,
    )
    fit = TypeFit(table.id, read.learnt, table.columns, aside)
    listing = given or keep_listed(read, list_stored(read.paths, taken.given, table.id), table.id)
    if listing.missing is not None and read.columns is None:
        raise listing.missing
    declared = _parse_read_columns(table.id, read)
    keys = listing.folder_keys
    data = None if declared is None else pa.schema([field for field in declared if field.name not in keys])
    reader = _MAKE[form.name](taken, data)
    if isinstance(reader, JsonReader):
        # Of events, files may have none but the values of messages without one.
        reader = replace(reader, fit=fit, least=None if inside is None else NO_EVENT)
    look = reader.look(listing.files, table.id, spread)
    joined = None if earlier is None else _join_earlier(earlier, look.schema, form, fit)
    file_columns, look = look.schema, look if joined is None else replace(look, schema=joined.schema)
    _require_columns(table.id, look, keys, listing)
    texts = pa.schema([pa.field(key, pa.string()) for key in keys])
    if reader.has_lines:
        plan = _TextPlan(reader, taken, declared, fit, has_earlier=earlier is not None, inside=inside or frozenset())
        columns, casts, inferred, has_rows = plan.make(look, texts, table, spread)
    else:
        casts, inferred, has_rows = _plan_typed(pa.schema([*look.schema, *texts]), table, declared), (), True
        columns = look.schema
    read_schema, void = _read_void(columns) if reader.has_lines else (columns, ())
    source = FilesSource(table.id, reader, read_schema, keys, casts, aside, void=void)
    if joined is not None:
        asked, chosen = joined.list_asked(file_columns, read_schema), replace(joined, schema=read_schema)
        source = replace(source, read_schema=asked, chosen=chosen)
    return OpenedFiles(source, look, listing, read.is_empty, form.name, inferred, not has_rows)


def _split_declared(table: TableSpec, read: Read) -> tuple[TableSpec, Read, frozenset[str] | None]:
    """Return the table and the source with what is known of the source's own columns, and the names of the columns that
    the table declares of rows which are made of the source's events; None for other sources."""
    if table.envelope is None or not table.envelope.has_rows_inside:
        return table, read, None
    untyped = table.model_copy(update={"columns": {}}), read.model_copy(update={"learnt": KnownTypes()})
    return *untyped, frozenset(map(str.lower, table.columns))


def _join_earlier(earlier: pa.Schema, file_columns: pa.Schema, form: Format, fit: TypeFit) -> JoinedColumns:
    """Return the columns that a stream has had, and then those that are new. Types that loads have given them hold, as
    null where the look has fitted the files' own type to it."""
    by_values = form.types == "values"
    for index, field in enumerate(earlier):
        before = fit.find(field.name) if by_values else None
        if before is not None:
            is_fitted = form.name == "json" and field.name in file_columns.names
            earlier = earlier.set(index, field.with_type(pa.null() if is_fitted else read_noted_type(before)))
    return join_columns(file_columns, earlier, by_values=by_values)


def _read_void(columns: pa.Schema) -> tuple[pa.Schema, tuple[tuple[int, pa.DataType], ...]]:
    """Return the columns as they are read, with text for what has no values, and the types of those that have such
    parts, by their indexes."""
    filled = pa.schema([field.with_type(fill_void(field.type)) for field in columns])
    void = ((index, field.type) for index, field in enumerate(columns) if not field.type.equals(filled.types[index]))
    return filled, tuple(void)


@dataclass(frozen=True)
class _TextPlan:
    """The inputs besides the table that decide the types of a source of text: its options and ``read.columns``."""

    reader: FileReader
    taken: Options
    declared: pa.Schema | None
    fit: TypeFit
    has_earlier: bool
    inside: frozenset[str] = frozenset()
    """Members whose values are read as they are written, wherever they stand, by their names in lower case."""

    def make(
        self, look: Look, keys: pa.Schema, table: TableSpec, spread: Spread
    ) -> tuple[pa.Schema, tuple[ColumnCast, ...], tuple[InferredType, ...], bool]:
        """Return the columns that the reader is asked for, the casts of the columns and of the folders' ``keys``, the
        types that follow from values, and whether there are rows, if these decide the types.
        """
        names = [*look.schema.names, *keys.names]
        planned = plan_casts(names, [pa.string()] * len(names), table)
        declared_names = {name.lower() for name in table.columns}
        schema = _ask_for_text(look.schema, declared_names)
        schema = pa.schema([field.with_type(_ask_inside(field.type, self.inside)) for field in schema])
        infers = isinstance(self.reader, CsvReader) and self.taken.is_true("inferSchema")
        noted, casts, has_rows = look.inferred, tuple[ColumnCast, ...](), True
        if infers and self.declared is None and not self.has_earlier:
            pieces = self.reader.cut(look, 1 << 26, spread)
            inferred = infer_types(self.reader, schema, pieces, self.fit, spread)
            schema, noted, casts, has_rows = inferred.schema, inferred.noted, inferred.casts, inferred.has_rows
        elif self.has_earlier and self.declared is None and (infers or isinstance(self.reader, JsonReader)):
            noted = tuple(filter(None, (note_type(field.name, field.type) for field in schema)))
        cast_indexes = {cast.index for cast in planned}
        if isinstance(self.reader, CsvReader | JsonReader):
            schema, planned = _ask_for_types(schema, planned)
        key_casts = _list_key_casts(self.declared, look, keys)
        noted = tuple(column for column in noted if column.name.lower() not in declared_names)
        return (
            schema,
            (*planned, *casts, *(cast for cast in key_casts if cast.index not in cast_indexes)),
            noted,
            has_rows,
        )


def _plan_typed(schema: pa.Schema, table: TableSpec, declared: pa.Schema | None) -> tuple[ColumnCast, ...]:
    """Return the casts of typed columns to the types that the table declares, else to those of ``read.columns``.

    Raise ``SPEC_INVALID`` if one type does not convert exactly to the other.
    """
    planned = plan_casts(schema.names, schema.types, table)
    cast_indexes = {cast.index for cast in planned}
    by_name = {} if declared is None else {column.name: column.type for column in declared}
    form = TextForm(truncates_nanoseconds=table.truncates_nanoseconds)
    given = [
        ColumnCast(index, column.name, column.type, by_name[column.name], form)
        for index, column in enumerate(schema)
        if index not in cast_indexes and not column.type.equals(by_name.get(column.name, column.type))
    ]
    for cast in (*planned, *given):
        if cast.source is None or not is_castable(cast.source, cast.kind, cast.form):
            raise SpecInvalidError(
                f"table {table.id!r}: column {cast.name!r} is {name_type(cast.source)} in the files and declared as "
                f"{cast.type_name}, and the one does not convert to the other.",
                remedy="Declare another type, or convert it in an sql: read.",
            )
    return (*planned, *given)


def _parse_read_columns(table: str, read: Read) -> pa.Schema | None:
    if read.columns is None:
        return None
    try:
        return parse_columns(read.columns)
    except ValueError as error:
        raise SpecInvalidError(f"table {table!r}: read.columns is {read.columns!r}: {error}.") from error


def _require_columns(table: str, look: Look, keys: Sequence[str], listing: Listing) -> None:
    if not look.schema.names and not keys:
        if not any(file.size for file in listing.files):
            raise make_empty_error([file.path for file in listing.files], table)
        raise SourceFailedError(
            f"table {table!r}: {listing.files[0].path!r} names no column: it has no rows, or rows without a value.",
            remedy="Check what writes it; such a file can be read if its columns are declared under read.columns.",
        )
    lower = {name.lower(): name for name in look.schema.names}
    for key in keys:
        if key.lower() in lower:
            raise SchemaIncompatibleError(
                f"table {table!r}: {lower[key.lower()]!r} is a column of the files, and {key!r} a key in the names of "
                f"their folders, as in {listing.files[0].path!r}.",
                remedy="Rename one of them, or give each file's path itself instead of its folder's.",
            )


def _ask_for_text(schema: pa.Schema, declared: Set[str]) -> pa.Schema:
    """Return the schema with text for the columns that the table declares: the cast needs values as they are
    written.
    """
    return pa.schema([field.with_type(pa.string()) if field.name.lower() in declared else field for field in schema])


def _ask_inside(kind: pa.DataType, names: Set[str]) -> pa.DataType:
    """Return a type whose structs have text for members with these names."""
    if not names or not pt.is_struct(kind):
        return kind
    members = (pa.string() if f.name.lower() in names else _ask_inside(f.type, names) for f in kind)
    return pa.struct([field.with_type(member) for field, member in zip(kind, members, strict=True)])


def _list_key_casts(declared: pa.Schema | None, look: Look, keys: pa.Schema) -> Iterator[ColumnCast]:
    """Yield the casts of folders' keys whose types ``read.columns`` has."""
    for index, key in enumerate(keys, len(look.schema)):
        if declared is not None and key.name in declared.names and not declared.field(key.name).type.equals(key.type):
            yield ColumnCast(index, key.name, key.type, declared.field(key.name).type, DEFAULT)


def _ask_for_types(schema: pa.Schema, casts: Sequence[ColumnCast]) -> tuple[pa.Schema, tuple[ColumnCast, ...]]:
    """Return the schema with the declared types to which the reader casts, and the casts that are left."""
    left = []
    for cast in casts:
        if cast.index < len(schema) and cast.form == TextForm():
            schema = schema.set(cast.index, schema.field(cast.index).with_type(cast.kind))
        else:
            left.append(cast)
    return schema, tuple(left)
