"""Read files of lines: one column of text, a row for each line or for each file."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewriter.cast.exact_text import DEFAULT, TextForm
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.files.blocks import MOST_ROW_BYTES, Window, open_text, read_head
from lakewriter.source.files.charsets import Charset, explain_bad_text, look_up, show_text
from lakewriter.source.files.declared_types import make_batches, make_form
from lakewriter.source.files.file_reader import Fault, Look, Piece, Spread, make_marks
from lakewriter.source.files.spark_options import Options
from lakewriter.source.files.stored_files import StoredFile

Offsets = npt.NDArray[np.int64]

_BLOCK_BYTES: Final = 8 * 1024 * 1024
_HEAD_BYTES: Final = 1024
_LINE_ENDS: Final = rb"\r\n|\n|\r"
_SCHEMA: Final = pa.schema([pa.field("value", pa.string())])


@dataclass(frozen=True)
class TextLayout:
    """The layout of one file."""

    compression: str | None
    charset: Charset


@dataclass(frozen=True)
class TextReader:
    """The settings of a source of text. A row is a line, which ends with ``line_end``, or a ``whole`` file."""

    encoding: str | None = None
    line_end: bytes = b""
    whole: bool = False
    schema: pa.Schema = _SCHEMA
    form: TextForm = DEFAULT
    has_lines: ClassVar[bool] = True

    @classmethod
    def make(cls, options: Options, columns: pa.Schema | None) -> "TextReader":
        """Return the reader that the options ask for."""
        if columns is not None and len(columns) != 1:
            raise SpecInvalidError(
                f"table {options.table!r}: read.columns has {len(columns)} columns, and a source of text has one.",
                remedy='Declare one, such as "line STRING", or leave read.columns out.',
            )
        encoding = options.get("encoding", "charset")
        look_up(encoding)
        line_end = (options.get("lineSep") or "").encode()
        return cls(encoding, line_end, options.is_true("wholetext"), columns or _SCHEMA, make_form(options))

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """See ``FileReader``."""
        del spread
        heads = [(file, read_head(file, _HEAD_BYTES, self.encoding, table)) for file in files if file.size]
        return Look(self.schema, tuple((file, TextLayout(head.compression, head.charset)) for file, head in heads))

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        del spread
        pieces = []
        for file, layout in look.files:
            is_whole = self.whole or layout.compression is not None or not layout.charset.is_plain
            step = file.size if is_whole else max(size, 1)
            for start in range(0, file.size, step):
                end = min(start + step, file.size)
                pieces.append(Piece(file, start, end, layout, None if start else 1, is_whole=is_whole))
        return pieces

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        return sum(len(lines) for _, _, lines in self._find_lines(piece))

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        charset: Charset = piece.layout.charset
        for base, starts, lines in self._find_lines(piece):
            texts, faults = list[str | None](), dict[int, Fault]()
            for number, line in enumerate(lines):
                try:
                    texts.append(line.decode(charset.text_name))
                except UnicodeDecodeError:
                    texts.append(None)
                    faults[number] = Fault(explain_bad_text(line, charset) or "", show_text(line, charset))
            marks = make_marks(piece.file.path, base + starts, faults)
            yield from make_batches([pa.array(texts, pa.string())], schema, marks, self.form)

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """See ``FileReader``."""
        if piece.first_line is None or self.whole:
            return None
        line = piece.first_line
        for base, starts, lines in self._find_lines(piece):
            before = int(np.searchsorted(base + starts, offset))
            if before < len(lines):
                return line + before
            line += len(lines)
        return None

    def _find_lines(self, piece: Piece) -> Iterator[tuple[int, Offsets, list[bytes]]]:
        """Yield the number of stored bytes before a block, the offsets of its lines behind these, and the lines."""
        charset: Charset = piece.layout.charset
        # The byte before a piece shows whether its first line begins there.
        skips = piece.start > 0 and not piece.is_whole
        first = piece.start - 1 if skips else piece.start
        end = piece.end if piece.is_whole else piece.file.size
        window = Window(open_text(piece.file, first, end, piece.layout.compression, charset))
        base, size, at_end = max(first, charset.mark), _BLOCK_BYTES, False
        while not at_end:
            data, at_end = window.fill(size)
            starts, lines = self._split(data, at_end)
            size = _BLOCK_BYTES if len(starts) > 1 else 2 * len(data)
            if size > 8 * MOST_ROW_BYTES:
                raise SourceFailedError(f"{piece.file.path!r}: the line at byte {base} has no end.")
            window.drop(starts[-1])
            stored = charset.measure(data, np.array(starts, np.int64))
            dropped = int(skips and bool(lines))
            skips = skips and not dropped
            is_mine = piece.is_whole | (base + stored[:-1] < piece.end)
            yield base, stored[:-1][is_mine][dropped:], lines[dropped : int(is_mine.sum())]
            if not is_mine.all():
                return
            base += int(stored[-1])

    def _split(self, data: bytes, at_end: bool) -> tuple[list[int], list[bytes]]:
        """Return the starts of a block's lines and of its rest, and the lines."""
        ends = re.escape(self.line_end) if self.line_end else _LINE_ENDS
        spans = [] if self.whole else [match.span() for match in re.finditer(ends, data)]
        if spans and not at_end and spans[-1][1] == len(data):
            # A CR may be the first half of CRLF.
            spans.pop()
        if at_end and data and (not spans or spans[-1][1] < len(data)):
            spans.append((len(data), len(data)))
        starts = [0, *(behind for _, behind in spans)]
        return starts, [data[start:stop] for start, (stop, _) in zip(starts, spans, strict=False)]
