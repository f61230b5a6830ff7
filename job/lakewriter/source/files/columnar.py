"""Share the code of readers of files with typed columns: the columns of all files, and batches in their types."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np
import pyarrow as pa

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.aws.object_files import ObjectFile
from lakewriter.cast.json_text import LEVELS, describe_depth
from lakewriter.errors import SchemaIncompatibleError, SourceFailedError
from lakewriter.source.bad_rows import mark_schema, note_cut
from lakewriter.source.files.file_reader import Fault, Look, Part, Piece, Spread, make_marks
from lakewriter.source.files.format_detection import find_other_format, make_empty_error
from lakewriter.source.files.merged_schemas import Merged, find_index, merge_columns, widen
from lakewriter.source.files.spark_options import Options
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.files.stored_values import Converted
from lakewriter.source.spark_failures import make_unreadable_error
from lakewriter.source.storage import map_in_threads
from lakewriter.spec.source_formats import find_format

BY_SPARK: Final = "Leave the column out where the file is written, or let Spark read the file: read: {engine: spark}."
MOST_DIGITS: Final = 38
"""The limit for the digits of a decimal."""
_START_BYTES: Final = 4096
_SMALL: Final = 4 * 1024 * 1024
"""The size up to which a file in S3 is read by one request."""


@contextmanager
def name_file(file: StoredFile) -> Iterator[None]:
    """Require that a file does not change while it is read. ``SOURCE_FAILED`` names the file in its errors."""
    try:
        file.require_unchanged()
        yield
        file.require_unchanged()
    except (ValueError, OSError, pa.ArrowException, BotoCoreError, ClientError) as error:
        raise make_unreadable_error(file.path, error) from error


@contextmanager
def open_ranges(file: StoredFile, *, is_small: bool = True) -> Iterator[pa.NativeFile]:
    """Open a file to read its ranges, as ``name_file`` does. A small one in S3 is read at once."""
    with name_file(file):
        if not file.store.is_local:
            whole = is_small and file.size <= _SMALL
            ranges = ObjectFile(file.path, lambda start, end: b"".join(file.stream(start, end)), lambda: file.size)
            yield pa.BufferReader(b"".join(file.stream())) if whole else pa.PythonFile(ranges, mode="r")
            return
        with pa.OSFile(file.path) as source:
            yield source


def look_at_columns(
    form: str,
    files: Sequence[StoredFile],
    table: str,
    describe: Callable[[StoredFile], tuple[pa.Schema, Any]],
    declared: pa.Schema | None,
) -> tuple[Merged, list[tuple[StoredFile, Any]]]:
    """Return the columns of all files that have bytes, and each file with its layout from ``describe``.

    If columns are ``declared``, only these are returned, in their order and by their names, with the files' types.
    """
    filled = [file for file in files if file.size]
    described = map_in_threads(partial(_describe, describe, form, table), filled)
    begun = [(file, layout) for file, (_, layout) in zip(filled, described, strict=True)]
    merged = merge_columns(table, [(file.path, schema) for file, (schema, _) in zip(filled, described, strict=True)])
    if declared is None:
        if files and not filled:
            raise make_empty_error([file.path for file in files], table)
        return _note_empty(merged, files), begun
    return (_choose(merged, declared, table) if filled else Merged(declared)), begun


def _describe(
    describe: Callable[[StoredFile], tuple[pa.Schema, Any]], form: str, table: str, file: StoredFile
) -> tuple[pa.Schema, Any]:
    too_deep = SchemaIncompatibleError(
        f"table {table!r}: a column of {file.path!r} {describe_depth()}.", remedy=BY_SPARK
    )
    try:
        schema, layout = describe(file)
        if any(_is_too_deep(field.type) for field in schema):
            raise too_deep
        return schema, layout
    except RecursionError as error:
        # A level of a union takes more calls of the interpreter than its limit has for so many.
        raise too_deep from error
    except (SourceFailedError, SchemaIncompatibleError) as error:
        with name_file(file):
            start = file.read_head(_START_BYTES)
        other = find_other_format(start, file.path, find_format(form), table)
        if other is not None:
            raise other from error
        if error.message.startswith("table "):
            raise
        raise type(error)(f"table {table!r}: {error.message}", remedy=error.remedy) from error


def _is_too_deep(kind: pa.DataType) -> bool:
    level, depth = [kind], 0
    # Most columns have one level, and there may be thousands of files.
    while level and depth < LEVELS:
        level = [one.field(index).type for one in level for index in range(one.num_fields)]
        depth += 1
    return bool(level)


def refuse_column(path: str, column: str, what: str, remedy: str = BY_SPARK) -> SchemaIncompatibleError:
    """Return the error for a column of a type that is not read."""
    return SchemaIncompatibleError(f"{path!r}: column {column!r} is {what}, which is not read.", remedy=remedy)


def _note_empty(merged: Merged, files: Sequence[StoredFile]) -> Merged:
    empty = [file for file in files if not file.size]
    if not empty:
        return merged
    what = f"{empty[0].path!r} is" if len(empty) == 1 else f"{len(empty)} files, such as {empty[0].path!r}, are"
    note = f"{what} empty, without any byte: no row is read of {'it' if len(empty) == 1 else 'them'}"
    return Merged(merged.schema, (*merged.notes, note), merged.is_exact)


def _choose(merged: Merged, declared: pa.Schema, table: str) -> Merged:
    fields = []
    for column in declared:
        index = find_index(merged.schema.names, column.name, is_exact=False)
        if index is None:
            nearest = difflib.get_close_matches(column.name, merged.schema.names, 1, 0.0)
            raise SchemaIncompatibleError(
                f"table {table!r}: read.columns names {column.name!r}, which no file has.",
                remedy=f"The nearest is {nearest[0]!r}." if nearest else "The files have no columns.",
            )
        fields.append(merged.schema.field(index))
    return Merged(pa.schema(fields), merged.notes, merged.is_exact)


@dataclass(frozen=True)
class ColumnIndexes:
    """The indexes of the requested columns in one file; None for a column that the file lacks."""

    schema: pa.Schema
    indexes: tuple[int | None, ...]

    @classmethod
    def find(cls, schema: pa.Schema, names: Sequence[str], *, is_exact: bool) -> "ColumnIndexes":
        """Find the columns of a look's ``schema``, or some of them, in a file that has columns of these ``names``."""
        if list(names) == schema.names:
            # Only the index identifies columns whose name occurs twice.
            return cls(schema, tuple(range(len(schema))))
        return cls(schema, tuple(find_index(names, name, is_exact=is_exact) for name in schema.names))

    def make_batch(self, path: str, first: int, count: int, columns: Mapping[int, Converted]) -> pa.RecordBatch:
        """Make a batch of ``count`` rows from the file's ``columns``, which are given by index.

        ``first`` is the number of its first row in the file.
        """
        arrays, cut, faults = [], dict[str, int](), dict[int, Fault]()
        for field, index in zip(self.schema, self.indexes, strict=True):
            if index is None:
                arrays.append(pa.nulls(count, field.type))
                continue
            column = columns[index]
            arrays.append(widen(column.values, field.type))
            cut[field.name] = column.cut
            for row, fault in column.faults.items():
                faults.setdefault(row, fault)
        marks = make_marks(path, np.arange(first, first + count), faults)
        schema = note_cut(mark_schema(self.schema), cut)
        return pa.RecordBatch.from_arrays([*arrays, marks], schema=schema)


def make_look(merged: Merged, files: Sequence[tuple[StoredFile, Any]]) -> Look:
    """Return the result of a reader's ``look``, with the layouts of its files."""
    exact = tuple((file, replace(layout, is_exact=merged.is_exact)) for file, layout in files)
    return Look(merged.schema, exact, merged.notes)


@dataclass(frozen=True)
class ColumnarReader:
    """The settings of a source whose files have typed columns; ``columns`` are the declared ones."""

    columns: pa.Schema | None = None
    truncates: bool = False
    has_lines: ClassVar[bool] = False
    form: ClassVar[str]
    """The name of the format."""

    @classmethod
    def make(cls, options: Options, columns: pa.Schema | None) -> Self:
        """Return the reader that the options ask for."""
        return cls(columns, options.truncates_nanoseconds)

    def _describe(self, file: StoredFile) -> tuple[pa.Schema, Any]:
        """Return the columns of a file, and its layout."""
        raise NotImplementedError

    def read_stored_types(self, file: StoredFile) -> pa.Schema:
        """Return the columns with the types of the file."""
        raise NotImplementedError

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """See ``FileReader``."""
        del spread
        merged, described = look_at_columns(self.form, files, table, self._describe, self.columns)
        return make_look(merged, described)

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """See ``FileReader``."""
        del piece, offset
        return None


@dataclass(frozen=True)
class PartsLayout:
    """The parts of a file, or of a piece of a file.

    ``first`` is the number of the first of them in the file, and ``first_row`` that of its first row. With ``is_exact``
    the case of column names matters.
    """

    parts: Sequence[Part]
    first: int = 0
    first_row: int = 0
    is_exact: bool = False

    def cut(self, file: StoredFile, size: int) -> Iterator[Piece]:
        """Yield pieces of whole parts, of about ``size`` bytes each."""
        first, row = 0, 0
        while first < len(self.parts):
            last, filled = first, 0
            while last < len(self.parts) and (last == first or filled + self.parts[last].size <= size):
                filled += self.parts[last].size
                last += 1
            parts = self.parts[first:last]
            rows = sum(part.rows for part in parts)
            if rows:
                layout = replace(self, parts=parts, first=first, first_row=row)
                yield Piece(file, parts[0].start, parts[0].start + filled, layout, rows=rows)
            first, row = last, row + rows


class PartsReader(ColumnarReader):
    """A reader of files whose footer lists their parts, with the rows of each."""

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        del spread
        return [piece for file, layout in look.files for piece in layout.cut(file, size)]

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        return sum(part.rows for part in piece.layout.parts)
