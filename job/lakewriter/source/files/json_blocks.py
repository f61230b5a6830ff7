"""Parse many lines of documents at a time: with a fast parser for plain lines, an exact one for the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewriter.cast.json_text import DocumentError, describe_value, parse_document, write_text
from lakewriter.documents.arrow_lines import Offsets, TextLines, join_documents, parse_ranges
from lakewriter.source.files.charsets import UTF_8, Charset, explain_bad_text, show_text
from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.json_by_arrow import FastParser, can_parse_fast
from lakewriter.source.files.json_columns import Columns, build_columns
from lakewriter.source.files.json_splitter import BLANK, Part, split_documents

MOST_BYTES: Final = 128 * 1024 * 1024
"""The limit for one document."""
_SHOWN_BYTES: Final = 256 * 1024
"""The limit for a bad row's text, which marks cut to fewer characters."""
_MINUS: Final = ord("-")


@dataclass(frozen=True)
class Lines(TextLines):
    """Lines of a file, or documents of several lines, and their offsets in the file.

    ``reasons`` are the faults of some, by their number. With ``is_rows`` the documents of an array are rows.
    """

    offsets: Offsets
    reasons: Mapping[int, str] = field(default_factory=dict)
    is_rows: bool = True
    charset: Charset = Charset()  # noqa: RUF009 - it is frozen
    """The charset of the lines before they were converted to UTF-8."""

    @cached_property
    def may_be_fast(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the lines that the fast parser may parse."""
        plain = self.is_plain.copy()
        plain[list(self.reasons)] = False
        return plain

    def find_minus_zeros(self) -> Offsets:
        """Return the numbers of lines that may contain the integer -0."""
        codes = np.frombuffer(self.data, np.uint8)
        offsets = np.flatnonzero(codes[:-2] == _MINUS)
        offsets = offsets[(codes[offsets + 1] == ord("0")) & _ENDS_NUMBER[codes[offsets + 2]]]
        numbers: Offsets = np.unique(np.searchsorted(self.starts, offsets, side="right") - 1)
        return numbers[numbers >= 0]


def split_lines(data: bytes, offset: int = 0) -> Lines:
    """Return the lines of a block at ``offset``. They end with LF, CRLF or CR, which no text of JSON contains."""
    codes = np.frombuffer(data, np.uint8)
    is_end = codes == ord("\n")
    if b"\r" in data and data.count(b"\r") > data.count(b"\r\n"):
        is_end |= codes == ord("\r")
    breaks = np.flatnonzero(is_end)
    starts = np.concatenate([np.zeros(1, np.int64), breaks + 1])
    ends = np.concatenate([breaks, np.full(1, len(data), np.int64)])
    # In a line with LF alone this is another byte, or the end of the line before.
    ends = ends - ((ends > starts) & (codes[ends - 1] == ord("\r")) if len(codes) else 0)
    filled = starts < ends
    starts, ends = starts[filled], ends[filled]
    padded = np.flatnonzero(_IS_BLANK[codes[starts]] | _IS_BLANK[codes[ends - 1]])
    for number in padded.tolist():
        line = data[starts[number] : ends[number]]
        ends[number] = starts[number] + len(line.rstrip(BLANK))
        starts[number] = min(starts[number] + len(line) - len(line.lstrip(BLANK)), ends[number])
    filled = starts < ends
    return Lines(data, starts[filled], ends[filled], starts[filled] + offset)


def join_parts(parts: Sequence[Part]) -> Lines:
    """Return documents that may have several lines each."""
    lines = join_documents(pa.array([part.raw or b" " for part in parts], pa.binary()))
    reasons = {number: part.fault for number, part in enumerate(parts) if part.fault is not None}
    offsets = np.array([part.offset for part in parts], np.int64)
    return Lines(lines.data, lines.starts, lines.ends, offsets, reasons, is_rows=False)


_IS_BLANK: Final = np.zeros(256, np.bool_)
_IS_BLANK[list(BLANK)] = True
_ENDS_NUMBER: Final = _IS_BLANK.copy()
_ENDS_NUMBER[list(b",]}")] = True


@dataclass(frozen=True)
class Rows:
    """Rows of a block: their columns, their offsets, and the faults of bad ones by their number."""

    columns: list[pa.Array]
    offsets: Offsets
    faults: dict[int, Fault]


class BlockReader:
    """A reader of blocks of lines into columns. With ``takes_nan`` ``NaN`` and infinities are numbers."""

    def __init__(self, columns: Columns, *, takes_nan: bool = False) -> None:
        self._columns, self._takes_nan = columns, takes_nan
        self._parser = FastParser(columns) if can_parse_fast(columns) else None

    def read(self, lines: Lines) -> Rows:
        """Return the rows of lines in their order."""
        plain = np.flatnonzero(lines.may_be_fast) if self._parser is not None else np.zeros(0, np.int64)
        numbers, columns = self._parse_fast(lines, plain)
        others = np.setdiff1d(np.arange(len(lines)), numbers, assume_unique=True)
        if not len(others):
            return Rows(columns, lines.offsets[numbers], {})
        rest = parse_exactly(lines, others.tolist(), takes_nan=self._takes_nan)
        arrays, faults = rest.build(self._columns)
        if not len(numbers):
            return Rows(arrays, np.array(rest.offsets, np.int64), faults)
        order = np.argsort(np.concatenate([numbers, np.array(rest.lines, np.int64)]), kind="stable")
        moved = np.empty(len(order), np.int64)
        moved[order] = np.arange(len(order))
        columns = [pa.concat_arrays([one, two]).take(pa.array(order)) for one, two in zip(columns, arrays, strict=True)]
        offsets = np.concatenate([lines.offsets[numbers], np.array(rest.offsets, np.int64)])[order]
        return Rows(columns, offsets, {int(moved[len(numbers) + row]): fault for row, fault in faults.items()})

    def _parse_fast(self, lines: Lines, plain: Offsets) -> tuple[Offsets, list[pa.Array]]:
        """Return the numbers of the lines that the fast parser has read without a doubt, and their columns."""
        if self._parser is None:
            return np.zeros(0, np.int64), []
        parts = [(numbers[part.sure], part.columns) for numbers, part in parse_ranges(lines, plain, self._parser.parse)]
        parts = [part for part in parts if len(part[0])]
        if len(parts) < 2:
            return parts[0] if parts else (np.zeros(0, np.int64), [])
        columns = [pa.concat_arrays(arrays) for arrays in zip(*(columns for _, columns in parts), strict=True)]
        return np.concatenate([numbers for numbers, _ in parts]), columns


@dataclass
class ExactRows:
    """Rows that were parsed one by one: the number of each one's line, its offset, its bytes, and its document."""

    lines: list[int]
    offsets: list[int]
    raws: list[bytes]
    documents: list[dict[str, Any] | None]
    reasons: dict[int, str]
    charset: Charset

    def add(self, line: int, offset: int, raw: bytes, value: Any, reason: str | None = None) -> None:
        """Add a row, which is bad if its value is not an object."""
        if reason is None and not isinstance(value, dict):
            reason = f"it is {describe_value(value)}, expected an object"
        if reason is not None:
            self.reasons[len(self.lines)] = reason
        self.lines.append(line)
        self.offsets.append(offset)
        self.raws.append(raw)
        self.documents.append(value if reason is None else None)

    def build(self, columns: Columns) -> tuple[list[pa.Array], dict[int, Fault]]:
        """Return the columns, null in bad rows, and the faults of these."""
        built = build_columns(columns, [document or {} for document in self.documents])
        lines = built.others | self.reasons
        faults = {row: Fault(reason, _show(self.raws[row], self.charset)) for row, reason in lines.items()}
        for row, reasons in built.misfits.items():
            document = self.documents[row]
            if document is not None and row not in faults:
                faults[row] = _make_fault(columns, document, reasons)
        if not lines:
            return built.arrays, faults
        row_numbers = pa.array([None if row in lines else row for row in range(len(self.lines))], pa.int64())
        return [array.take(row_numbers) for array in built.arrays], faults


def _make_fault(columns: Columns, document: Mapping[str, Any], reasons: Mapping[str, str]) -> Fault:
    """Return the fault of a row with values that do not fit. If there are several, it has the texts of all."""
    texts = {name: document[name] for name in columns.schema.names if name in reasons}
    texts = {name: value if type(value) is str else write_text(value) for name, value in texts.items()}
    column, text = next(iter(texts.items()))
    shown = {columns.shown.get(name, name): value for name, value in texts.items()}
    row = write_text(shown) if len(shown) > 1 else None
    return Fault(reasons[column], text, columns.shown.get(column, column), row)


def _show(raw: bytes, charset: Charset) -> str:
    return show_text(_to_stored(raw[:_SHOWN_BYTES], charset), charset)


def _to_stored(raw: bytes, charset: Charset) -> bytes:
    """Return text in the charset of its file, with the original bytes for those that are not text."""
    if not charset.is_plain or charset.name == UTF_8:
        return raw
    return raw.decode(errors="surrogatepass").encode(charset.name, "surrogateescape")


def parse_exactly(lines: Lines, numbers: Sequence[int], *, takes_nan: bool = False) -> ExactRows:
    """Parse lines one by one. Each document of an array on a line is a row."""
    rows = ExactRows([], [], [], [], {}, lines.charset)
    for number in numbers:
        raw, offset = lines.get(number), int(lines.offsets[number])
        if number in lines.reasons:
            rows.add(number, offset, raw, None, lines.reasons[number])
            continue
        try:
            value = parse_document(raw, takes_nan=takes_nan)
        except DocumentError as error:
            rows.add(
                number, offset, raw, None, explain_bad_text(_to_stored(raw, lines.charset), lines.charset) or str(error)
            )
            continue
        if not (lines.is_rows and isinstance(value, list)):
            rows.add(number, offset, raw, value)
            continue
        for part in split_documents(iter([raw]), offset, most=MOST_BYTES):
            rows.add(number, part.offset, part.raw, parse_document(part.raw, takes_nan=takes_nan))
    return rows
