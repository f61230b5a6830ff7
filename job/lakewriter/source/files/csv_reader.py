"""Read CSV by RFC 4180: quotes doubled, line breaks in quotes kept, an empty field null, any fault a bad row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, TextForm
from lakewriter.errors import SourceFailedError
from lakewriter.source.bad_rows import mark_schema, note_blank_lines
from lakewriter.source.files.blocks import MOST_ROW_BYTES, Head, Window, open_text, read_head
from lakewriter.source.files.charsets import Charset, explain_bad_text, look_up, show_text
from lakewriter.source.files.csv_cuts import cut_file
from lakewriter.source.files.csv_headers import Columns, Header, Positions, match_headers, name_header
from lakewriter.source.files.csv_rows import Flags, Grammar, Row, Rows, find_line_end, find_rows, step
from lakewriter.source.files.csv_values import Block, list_first_rows, parse_rows, select_rows, split_row
from lakewriter.source.files.declared_types import make_batches, make_form
from lakewriter.source.files.file_reader import Hint, Look, Piece, Spread, make_marks
from lakewriter.source.files.format_detection import list_csv_hints, require_no_page
from lakewriter.source.files.spark_options import Options, unescape
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import map_in_threads

_HEAD_BYTES: Final = 64 * 1024
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_MOST_BLOCK_BYTES: Final = 8 * MOST_ROW_BYTES
_HINT_ROWS: Final = 20
_SHOWN: Final = 200
_MOST_REFUSALS: Final = 3
"""The number of blocks with a value that is not a number, after which a piece's other blocks are read as text."""


@dataclass(frozen=True)
class CsvLayout:
    """The layout of one file. Its rows end with ``line_end``, blank for both LF and CRLF.

    Each row has ``fields`` fields; the columns take those at ``positions``. ``first`` is the offset of the first row,
    the header if the file has one.
    """

    compression: str | None
    charset: Charset
    line_end: bytes
    fields: int
    positions: Positions = ()
    first: int = 0


@dataclass(frozen=True)
class CsvReader:
    """The settings of a source of CSV. ``columns`` are the declared ones with their types.

    ``null`` and ``empty`` are the texts of the options nullValue and emptyValue, None if they are not given.
    ``nameless`` are the names that columns without one have had in earlier loads. With
    ``mixes_ends`` both LF and CRLF end rows; otherwise line ends that differ from a file's first one are faults.
    """

    grammar: Grammar = Grammar()  # noqa: RUF009 - it is frozen
    header: bool = False
    encoding: str | None = None
    null: str | None = None
    empty: str | None = None
    by_position: bool = False
    mixes_ends: bool = False
    columns: pa.Schema | None = None
    form: TextForm = DEFAULT
    nameless: tuple[str, ...] = ()
    has_lines: ClassVar[bool] = True

    @classmethod
    def make(cls, options: Options, columns: pa.Schema | None) -> "CsvReader":
        """Return the reader that the options ask for."""
        quote, escape = options.get_character("quote", '"'), options.get_character("escape", "")
        trims = options.is_true("ignoreLeadingWhiteSpace")
        if trims != options.is_true("ignoreTrailingWhiteSpace"):
            name = "ignoreLeadingWhiteSpace" if trims else "ignoreTrailingWhiteSpace"
            raise options.refuse(name, "and the other of the two is not", "Set both, or none.")
        sep = unescape(options.get("sep", "delimiter") or ",")
        if not sep or set(sep) & set("\r\n" + quote):
            raise options.refuse(
                "sep" if options.get("sep") else "delimiter", "expected a text without line ends and without the quote"
            )
        encoding = options.get("encoding", "charset")
        look_up(encoding)
        grammar = Grammar(
            sep.encode(),
            quote.encode(),
            b"" if escape == quote else escape.encode(),
            options.get_character("comment", "").encode(),
            trims=trims,
        )
        return cls(
            grammar,
            options.is_true("header"),
            encoding,
            options.get("nullValue"),
            options.get("emptyValue"),
            options.is_true("enforceSchema"),
            options.read_line_sep() is not None,
            columns,
            make_form(options),
            options.nameless,
        )

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """See ``FileReader``."""
        del spread
        heads = map_in_threads(partial(self._look_at, table=table), files)
        begun = [(file, head) for file, head in zip(files, heads, strict=True) if head is not None]
        columns = self._match(table, begun)
        if columns is None:
            return Look(self.columns if self.columns is not None else pa.schema([]), ())
        layouts = []
        for file, (layout, header) in begun:
            positions = columns.positions.get(header, tuple(range(len(columns.names))))
            fields = len(header) if header in columns.positions else len(columns.names)
            layouts.append((file, replace(layout, fields=fields, positions=positions)))
        hints = self._find_hints(begun[0][0], table)
        return Look(self._make_schema(columns), tuple(layouts), (*columns.notes, *hints))

    def _find_hints(self, file: StoredFile, table: str) -> tuple[Hint, ...]:
        """Return notes on likely mistakes that the first rows of a file show."""
        head = read_head(file, _HEAD_BYTES, self.encoding, table)
        grammar = replace(self.grammar, end=self._find_line_end(head))
        rows = list_first_rows(head.text, grammar, head.charset, _HINT_ROWS, is_whole=head.is_whole)
        separator = self.grammar.sep.decode()
        return list_csv_hints(file.path, rows, separator, has_header=self.header, is_declared=self.columns is not None)

    def _make_schema(self, columns: Columns) -> pa.Schema:
        if self.columns is not None:
            return self.columns
        return pa.schema([pa.field(name, pa.string()) for name in columns.names])

    def _match(self, table: str, begun: Sequence[tuple[StoredFile, tuple[CsvLayout, Header]]]) -> Columns | None:
        declared = None if self.columns is None else self.columns.names
        if not begun:
            return None
        first = begun[0][1][1]
        if not self.header or self.by_position:
            if self.header and declared is None:
                named = name_header(first, begun[0][0].path, self.nameless)
                return Columns(named.names, {}, named.notes)
            return Columns(tuple(declared or (f"_c{index}" for index in range(len(first)))), {})
        headers: dict[Header, list[str]] = {}
        for file, (_, header) in begun:
            headers.setdefault(header, []).append(file.path)
        return match_headers(table, headers, declared, self.nameless)

    def _look_at(self, file: StoredFile, table: str) -> tuple[CsvLayout, Header] | None:
        """Return the layout of a file and its first row; None for a file without rows."""
        size, start, row = _HEAD_BYTES, 0, None
        while True:
            head = read_head(file, size, self.encoding, table)
            grammar = replace(self.grammar, end=self._find_line_end(head))
            start, row = _find_first_row(head, grammar)
            if row is not None or head.is_whole:
                break
            if size > MOST_ROW_BYTES:
                raise SourceFailedError(f"table {table!r}: the first row of {file.path!r} has no end.")
            size *= 16
        if row is None:
            return None
        require_no_page(head.text, file.path, table)
        header = self._read_header(head, start, row, grammar, file, table)
        first = head.charset.mark + int(head.charset.measure(head.text, np.array([start]))[0])
        return CsvLayout(head.compression, head.charset, grammar.end, len(header), first=first), header

    def _find_line_end(self, head: Head) -> bytes:
        """Return the first line end outside quotes; blank if both LF and CRLF end rows."""
        line_end = find_line_end(head.text, self.grammar.quote, is_whole=head.is_whole)
        return b"" if self.mixes_ends and line_end != b"\r" else line_end

    def _read_header(self, head: Head, start: int, row: Row, grammar: Grammar, file: StoredFile, table: str) -> Header:
        """Return the names in a file's first row, blank for columns that are named by their positions."""
        text = head.text[start : row.end].removesuffix(b"\r")
        fault = row.fault or explain_bad_text(text, head.charset)
        if self.header and fault is not None:
            raise SourceFailedError(
                f"table {table!r}: the header of {file.path!r} cannot be read, at byte {head.charset.mark + start}: "
                f"{fault}: {show_text(text, head.charset)[:_SHOWN]!r}.",
                remedy="Correct the file's first row, or give quote, sep or encoding among the options.",
            )
        names = () if row.fault is not None else split_row(text, grammar)
        texts = ("" if name is None else name.decode(head.charset.text_name, "replace") for name in names)
        return tuple("" if text == self.null else text for text in texts)

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        pieces: list[Piece] = []
        for file, layout in look.files:
            whole = Piece(file, 0, file.size, layout, 1, is_whole=True)
            if layout.compression or not layout.charset.is_plain or file.size <= size * 3 // 2:
                pieces.append(whole)
            else:
                pieces += cut_file(whole, replace(self.grammar, end=layout.line_end), size, spread)
        return pieces

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        return sum(int(is_row.sum()) for _, _, is_row, _, _ in self._find_rows(piece))

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        layout = piece.layout
        grammar = replace(self.grammar, end=layout.line_end)
        numbers, refused, blank_lines = self._find_numbers(schema, layout.positions), 0, 0
        for data, rows, is_row, base, blank in self._find_rows(piece):
            types = numbers if refused < _MOST_REFUSALS else {}
            values = parse_rows(Block(data, rows, grammar, layout.charset, layout.fields, types, self.null), is_row)
            refused += any(values.columns[index].type != kind for index, kind in types.items())
            nothing = pa.nulls(len(values.starts), pa.string())
            texts = [self._settle(values.columns[index]) if index >= 0 else nothing for index in layout.positions]
            offsets = base + layout.charset.measure(data, values.starts)
            blank_lines += blank
            for batch in make_batches(texts, schema, make_marks(piece.file.path, offsets, values.faults), self.form):
                yield note_blank_lines(batch, blank_lines) if blank_lines else batch
                blank_lines = 0
        if blank_lines:
            yield note_blank_lines(pa.RecordBatch.from_pylist([], mark_schema(schema)), blank_lines)

    def _find_numbers(self, schema: pa.Schema, positions: Positions) -> dict[int, pa.DataType]:
        """Return the types of the fields that are read as integers or floating numbers, by their indexes in a row."""
        if self.empty:
            return {}
        types = {index: field.type for index, field in zip(positions, schema, strict=True) if index >= 0}
        return {index: kind for index, kind in types.items() if pt.is_integer(kind) or pt.is_floating(kind)}

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """See ``FileReader``."""
        if piece.first_line is None:
            return None
        end, lines = (b"\r" if piece.layout.line_end == b"\r" else b"\n"), piece.first_line
        for data, rows, _, base, _ in self._find_rows(piece):
            starts = base + piece.layout.charset.measure(data, rows.starts)
            number = int(np.searchsorted(starts, offset))
            if number < len(starts):
                return lines + data.count(end, 0, int(rows.starts[number]))
            lines += data.count(end, 0, rows.rest)
        return None

    def _settle(self, column: pa.Array) -> pa.Array:
        """Return a column with null for the text of nullValue, and with the text of emptyValue for empty texts."""
        if not pt.is_string(column.type):
            return column
        if self.empty:
            column = pc.if_else(pc.equal(column, ""), self.empty, column)
        if self.null is not None:
            column = pc.if_else(pc.equal(column, self.null), pa.scalar(None, pa.string()), column)
        return column

    def _find_rows(self, piece: Piece) -> Iterator[tuple[bytes, Rows, Flags, int, int]]:
        """Yield blocks with their rows, a mask of the rows that count, the stored bytes before the block, and the
        number of its blank lines.
        """
        layout: CsvLayout = piece.layout
        grammar, charset = replace(self.grammar, end=layout.line_end), layout.charset
        window = Window(open_text(piece.file, piece.start, piece.end, layout.compression, charset))
        base, size, at_end = max(piece.start, charset.mark), _BLOCK_BYTES, False
        while not at_end:
            data, at_end = window.fill(size)
            rows = find_rows(data, grammar, at_end=at_end)
            size = _BLOCK_BYTES if len(rows.starts) else 2 * len(data)
            if size > _MOST_BLOCK_BYTES:
                raise SourceFailedError(f"{piece.file.path!r}: the row at byte {base} has no end.")
            window.drop(rows.rest)
            is_row, blank_lines = select_rows(data, rows, grammar, layout.fields)
            if self.header and base <= layout.first:
                # Blank lines before the header are none of the rows either.
                is_row &= base + charset.measure(data, rows.starts) > layout.first
            yield data, rows, is_row, base, blank_lines
            base += int(charset.measure(data, np.array([rows.rest]))[0])


def _find_first_row(head: Head, grammar: Grammar) -> tuple[int, Row | None]:
    """Return the first row that is neither blank nor a comment, and its start; None if it is not whole."""
    start = 0
    while start < len(head.text):
        row = step(head.text, grammar, start, at_end=head.is_whole)
        if row is None:
            break
        is_comment = grammar.comment and head.text.startswith(grammar.comment, start)
        if head.text[start : row.end].strip() and not is_comment:
            return start, row
        start = row.next
    return start, None
