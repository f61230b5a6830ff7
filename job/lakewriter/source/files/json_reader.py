"""Read JSON by RFC 8259: a document a line, or whole documents and arrays of them. Any fault makes a bad row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, TextForm
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.bad_rows import mark_schema, note_absent
from lakewriter.source.files.blocks import read_head
from lakewriter.source.files.charsets import Charset, look_up
from lakewriter.source.files.declared_types import make_form
from lakewriter.source.files.file_reader import Look, Piece, Spread, make_marks
from lakewriter.source.files.format_detection import make_empty_error, require_documents
from lakewriter.source.files.json_blocks import BlockReader, Lines, parse_exactly
from lakewriter.source.files.json_columns import Columns
from lakewriter.source.files.json_lines import find_line, read_documents, read_lines
from lakewriter.source.files.json_shapes import (
    NOTHING,
    Alike,
    Path,
    Shape,
    TypeChoice,
    describe_lines,
    fold_files,
    list_alike,
    order_members,
    spell,
)
from lakewriter.source.files.known_types import TypeFit, fill_void, join_shapes, note_shape
from lakewriter.source.files.spark_options import Options
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import map_in_threads

_HEAD_BYTES: Final = 64 * 1024
_BATCH_ROWS: Final = 65_536
_SHOWN: Final = 200
_OPENING: Final = ord("[")
_FIRST_LINES: Final = 16


@dataclass(frozen=True)
class JsonLayout:
    """The layout of one file. ``columns`` are its columns by the file's names; None if they are declared. If these are
    not the types of all values, it ``is_partial``."""

    compression: str | None
    charset: Charset
    columns: pa.Schema | None = None
    is_partial: bool = False


@dataclass(frozen=True)
class JsonReader:
    """The settings of a source of JSON. ``columns`` are the declared ones with their types.

    If columns are not declared, one in ``step`` documents is read to find them.
    """

    columns: pa.Schema | None = None
    form: TextForm = DEFAULT
    encoding: str | None = None
    is_whole: bool = False
    takes_nan: bool = False
    choice: TypeChoice = TypeChoice()  # noqa: RUF009 - it is frozen
    step: int = 1
    fit: TypeFit = TypeFit()  # noqa: RUF009 - it is frozen
    least: pa.Schema | None = None
    """The columns of files whose documents have none; without it that is an error."""
    look_bytes: int = 32 * 1024 * 1024
    """The bytes of a file that one look reads at a time."""
    has_lines: ClassVar[bool] = True

    @classmethod
    def make(cls, options: Options, columns: pa.Schema | None) -> "JsonReader":
        """Return the reader that the options ask for."""
        options.read_line_sep()
        encoding = options.get("encoding", "charset")
        look_up(encoding)
        for column in columns or ():
            _require_type(column, options)
        return cls(
            columns,
            make_form(options),
            encoding,
            options.is_true("multiLine"),
            options.is_true("allowNonNumericNumbers"),
            TypeChoice(
                options.is_true("prefersDecimal"),
                options.is_true("primitivesAsString"),
                options.is_true("dropFieldIfAllNull"),
            ),
            _read_step(options),
        )

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """See ``FileReader``."""
        filled = [file for file in files if file.size]
        layouts = map_in_threads(partial(self._look_at, table=table), filled)
        begun = list(zip(filled, layouts, strict=True))
        if self.columns is not None:
            return Look(self.columns, tuple(begun))
        shapes = self._describe(begun, spread)
        whole = self._order_alike(fold_files(shapes), begun, spread)
        joined = join_shapes(whole.members or {}, self.fit)
        fields, misfits = self._fit(self.choice.list_fields(joined))
        if not fields and begun and self.least is not None:
            fields = list(self.least)
        if not fields and files:
            raise self._explain_no_columns(begun, table) if begun else make_empty_error([f.path for f in files], table)
        read = [field.with_type(fill_void(field.type)) for field in fields]
        noted = (note_shape(f.name, f.type, joined[f.name]) for f in fields if f.name in joined)
        return Look(
            pa.schema(fields),
            tuple(
                (file, replace(layout, columns=pa.schema(spell(read, shape)), is_partial=misfits or self.step > 1))
                for (file, layout), shape in zip(begun, shapes, strict=True)
            ),
            () if self.step == 1 else (f"the columns are those of one document in {self.step}",),
            tuple(column for column in noted if column is not None),
        )

    def _fit(self, fields: Sequence[pa.Field]) -> tuple[list[pa.Field], bool]:
        """Return the columns in the types that fit those of earlier loads, and whether values do not fit these."""
        fitted, misfits = list(fields), False
        for index, field in enumerate(fields):
            before = self.fit.find(field.name)
            if before is not None:
                kind, has_misfits = self.fit.fit(field.name, before, field.type)
                fitted[index] = field.with_type(kind)
                misfits |= has_misfits
        return fitted, misfits

    def _explain_no_columns(self, files: Sequence[tuple[StoredFile, JsonLayout]], table: str) -> SourceFailedError:
        """Return the error for files without a document that has a column."""
        nothing = pa.schema([])
        for file, layout in files:
            for batch in self.read(Piece(file, 0, file.size, layout, 1, is_whole=True), nothing):
                bad = batch.column(0).filter(pc.is_valid(batch.column(0).field("reason")))
                if len(bad):
                    mark = bad[0].as_py()
                    return SourceFailedError(
                        f"table {table!r}: no document of {file.path!r} has a column; at byte {mark['offset']}: "
                        f"{mark['reason']}: {mark['value'][:_SHOWN]!r}.",
                        remedy="Correct the file, or declare its columns under read.columns.",
                    )
        return SourceFailedError(
            f"table {table!r}: there is no document with a column in {', '.join(repr(f.path) for f, _ in files[:3])}.",
            remedy="Name files with documents, or declare the columns under read.columns.",
        )

    def _look_at(self, file: StoredFile, table: str) -> JsonLayout:
        head = read_head(file, _HEAD_BYTES, self.encoding, table)
        if not self.is_whole:
            require_documents(head, file.path, table)
        return JsonLayout(head.compression, head.charset)

    def _describe(self, files: Sequence[tuple[StoredFile, JsonLayout]], spread: Spread) -> list[Shape]:
        """Return the shape of each file's documents."""
        pieces = [self._cut_file(file, layout, self.look_bytes) for file, layout in files]
        described = iter(spread(self.describe, [piece for of_file in pieces for piece in of_file]))
        shapes = []
        for of_file in pieces:
            shape = NOTHING
            for part in islice(described, len(of_file)):
                shape = shape.merge(part)
            shapes.append(shape)
        return shapes

    def _order_alike(self, shape: Shape, files: Sequence[tuple[StoredFile, JsonLayout]], spread: Spread) -> Shape:
        """Return the shape with the members whose names are alike as the files have them first, file by file: in a
        table the first of them keeps its name, and the others get numbers.
        """
        paths = list(list_alike(shape))
        if not paths:
            return shape
        find = partial(self.find_first, Alike.make(paths))
        pieces = [piece for file, layout in files for piece in self._cut_file(file, layout, self.look_bytes)]
        seen = dict.fromkeys(find(pieces[0]))
        if len(seen) < len(paths):
            seen |= dict.fromkeys(path for part in spread(find, pieces[1:]) for path in part if path not in seen)
        return order_members(shape, seen)

    def find_first(self, alike: Alike, piece: Piece) -> list[Path]:
        """Return members in the order in which the documents of a piece have them first."""
        seen: dict[Path, None] = {}
        for lines in self._read_lines(piece):
            alike.find_first(lines, seen)
            if len(seen) == len(alike.paths):
                break
        return list(seen)

    def describe(self, piece: Piece) -> Shape:
        """Return the shape of a piece's documents."""
        shape = NOTHING
        for lines in self._read_lines(piece):
            shape = shape.merge(describe_lines(lines, self.step))
        return shape

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        return [piece for file, layout in look.files for piece in self._cut_file(file, layout, size)]

    def _cut_file(self, file: StoredFile, layout: JsonLayout, size: int) -> list[Piece]:
        is_whole = self.is_whole or layout.compression is not None or not layout.charset.is_plain
        if is_whole or file.size <= size * 3 // 2:
            return [Piece(file, 0, file.size, layout, 1, is_whole=True)]
        return [
            Piece(file, start, min(start + size, file.size), layout, None if start else 1)
            for start in range(0, file.size, size)
        ]

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        return sum(map(_count_rows, self._read_lines(piece)))

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        columns = self._choose_columns(piece.layout, schema)
        reader, whole = BlockReader(columns, takes_nan=self.takes_nan), mark_schema(schema)
        absent = _AbsentColumns(() if self.columns is None else schema.names)
        for lines in self._read_lines(piece):
            rows = reader.read(lines)
            arrays = [_rename(array, field.type) for array, field in zip(rows.columns, schema, strict=True)]
            marks = make_marks(piece.file.path, rows.offsets, rows.faults)
            batch = pa.RecordBatch.from_arrays([*arrays, marks], schema=whole)
            is_noted = absent.look(lines, arrays)
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                part = batch.slice(start, _BATCH_ROWS)
                yield note_absent(part, absent.names) if is_noted else part

    def _choose_columns(self, layout: JsonLayout, asked: pa.Schema) -> Columns:
        """Return the columns by the names of one file. A column that is requested with another type counts as
        declared.
        """
        file_columns = layout.columns
        if file_columns is None:
            return Columns(asked, frozenset(asked.names), form=self.form)
        of_all = zip(file_columns, asked, strict=True)
        fields = [
            (one.with_type(other.type), True) if not _is_alike(one.type, other.type) else (one, False)
            for one, other in of_all
        ]
        declared = frozenset(field.name for field, is_declared in fields if is_declared)
        shown = {one: other for one, other in zip(file_columns.names, asked.names, strict=True) if one != other}
        return Columns(pa.schema([field for field, _ in fields]), declared, layout.is_partial, self.form, shown)

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """See ``FileReader``."""
        return find_line(piece, piece.layout.compression, piece.layout.charset, offset)

    def _read_lines(self, piece: Piece) -> Iterator[Lines]:
        read = read_documents if self.is_whole else read_lines
        return read(piece, piece.layout.compression, piece.layout.charset)


class _AbsentColumns:
    """The declared columns that no document of a piece has had so far, by ``names``.

    A key that is null in all documents is looked for in the first ones alone.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._is_new = dict(zip(names, range(len(names)), strict=True)), True

    def look(self, lines: Lines, arrays: Sequence[pa.Array]) -> bool:
        """Look at a block of documents; return False once no column can be absent any more."""
        if not self.names:
            return False
        self._leave_out(name for name, index in self.names.items() if arrays[index].null_count < len(arrays[index]))
        if self.names and self._is_new:
            documents = parse_exactly(lines, range(min(len(lines), _FIRST_LINES))).documents
            self._leave_out(name for document in documents for name in document or ())
        self._is_new = False
        return True

    def _leave_out(self, names: Iterable[str]) -> None:
        for name in list(names):
            self.names.pop(name, None)


def _count_rows(lines: Lines) -> int:
    if not lines.is_rows:
        return len(lines)
    arrays = np.flatnonzero(np.frombuffer(lines.data, np.uint8)[lines.starts] == _OPENING)
    return len(lines) - len(arrays) + len(parse_exactly(lines, arrays.tolist()).lines)


def _is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True for types that differ in the names of their members at most."""
    if pt.is_struct(one) and pt.is_struct(other) and one.num_fields == other.num_fields:
        return all(_is_alike(a.type, b.type) for a, b in zip(one, other, strict=True))
    if pt.is_list(one) and pt.is_list(other):
        return _is_alike(one.value_type, other.value_type)
    return bool(one == other)


def _rename(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values of one file with the names of all files; a cast would match the members of structs by name."""
    if array.type == kind:
        return array
    if pt.is_struct(kind):
        members = [_rename(array.field(index), member.type) for index, member in enumerate(kind)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pt.is_list(kind):
        items = _rename(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, items, type=kind, mask=array.is_null())
    return array


def _read_step(options: Options) -> int:
    ratio = options.get("samplingRatio")
    try:
        share = float(ratio or 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise options.refuse("samplingRatio", "expected a number above 0, up to 1")
    return round(1 / share)


def _require_type(column: pa.Field, options: Options) -> None:
    kinds = [column.type]
    while kinds:
        kind = kinds.pop()
        if pt.is_map(kind) and not pt.is_string(kind.key_type):
            raise SpecInvalidError(
                f"table {options.table!r}: read.columns: {column.name} has a map whose keys are {kind.key_type}, and "
                "the keys of JSON are text.",
                remedy="Declare map<string, ...>.",
            )
        kinds += [kind.field(index).type for index in range(kind.num_fields)]
