"""Define what every reader of files does: look at them on the driver, cut them into pieces, read a piece in a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewriter.receipt import InferredType
from lakewriter.source.bad_rows import join_marks
from lakewriter.source.files.stored_files import StoredFile

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """The rows that begin in the bytes ``start`` to before ``end`` of a file, counted as they are stored.

    ``layout`` is the reader's description of the file from its look. ``first_line`` is the number of the line at
    ``start``, and ``rows`` the number of rows; both are None if they are not counted. A piece that ``is_whole`` is all
    of a file that cannot be cut: offsets of its rows count plain, decompressed bytes.
    """

    file: StoredFile
    start: int
    end: int
    layout: Any = None
    first_line: int | None = None
    rows: int | None = None
    is_whole: bool = False

    @property
    def size(self) -> int:
        """The number of bytes that are read."""
        return self.end - self.start


class Hint(str):
    """A note on a likely mistake in a source that can be read, and its remedy."""

    __slots__ = ("message", "remedy")

    message: str
    remedy: str

    def __new__(cls, message: str, remedy: str) -> Self:
        """Make the note, without the last full stop, which is added where it is printed."""
        made = super().__new__(cls, f"{message} {remedy}".removesuffix("."))
        made.message, made.remedy = message, remedy
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.message, self.remedy)


@dataclass(frozen=True)
class Look:
    """The result of a look at a source's files: the columns of all, each file with its layout, notes for a user.

    ``inferred`` are the types that follow from values, as a table's state keeps them.
    """

    schema: pa.Schema
    files: tuple[tuple[StoredFile, Any], ...]
    notes: tuple[str, ...] = ()
    inferred: tuple[InferredType, ...] = ()


class Spread(Protocol):
    """A function that calls a picklable function for each item, in tasks if there are any, and returns the results in
    order.
    """

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Call ``work`` for each item."""


class FileReader(Protocol):
    """The settings of one source's reader; picklable.

    If it ``has_lines``, the offset of a row is that of its first byte, and the row's text can be read by itself.
    Otherwise the offset is the row's number in the file, from 0, and the columns have types.
    """

    has_lines: ClassVar[bool]

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """Return the columns of the files. Raise all errors that can be raised before a byte is written.

        ``spread`` calls the work on files, if all their rows have to be read.
        """

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """Cut the files into pieces of about ``size`` bytes, in the order of the files."""

    def count(self, piece: Piece) -> int:
        """Return how many rows ``read`` yields for a piece, bad ones included."""

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, in the columns of a look's ``schema``, with ``BAD_FIELD`` as the last column.

        Every row's mark has ``file`` and ``offset``. A bad row's mark also has ``reason`` and ``value``, the text of
        the row, and the row's columns are null.
        """

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """Return the number of the line in which the row at ``offset`` begins; None if lines are not counted."""


@dataclass(frozen=True)
class Fault:
    """The fault of one row: its kind in words, and the row's text.

    If a single ``column`` is wrong, ``value`` is its text; if several are, ``row`` has their texts as JSON.
    """

    reason: str
    value: str
    column: str | None = None
    row: str | None = None


def make_marks(path: str, offsets: npt.NDArray[np.int64], faults: Mapping[int, Fault]) -> pa.StructArray:
    """Return the marks of rows that begin at ``offsets``; ``faults`` has the bad ones by their index."""
    count = len(offsets)
    texts = {name: _place_texts(count, faults, name) for name in ("column", "value", "reason", "row")}
    arrays = {
        "file": pa.repeat(pa.scalar(path, pa.string()), count),
        "offset": pa.array(offsets, pa.int64()),
        **texts,
    }
    return join_marks(arrays)


def _place_texts(count: int, faults: Mapping[int, Fault], name: str) -> pa.Array:
    if not faults:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for number, fault in faults.items():
        texts[number] = getattr(fault, name)
    return pa.array(texts, pa.string())


@dataclass(frozen=True)
class Part:
    """A row group or a stripe of a file: its offset, its size in bytes and its rows."""

    start: int
    size: int
    rows: int
