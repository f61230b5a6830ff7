"""What every reader of files offers: look at them on the driver, cut them into pieces, read a piece in a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewriter.source.bad_rows import BAD_FIELD
from lakewriter.source.files.stored import StoredFile

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """The rows that begin in the bytes ``start`` to before ``end`` of a file, counted as they are stored.

    ``layout`` is what the format's reader knows of this file from its look. ``first_line`` is the number of the line
    that ``start`` is in, and ``rows`` how many rows there are, None where nobody has counted. A piece that
    ``is_whole`` is all of a file that cannot be cut: offsets of its rows count plain, decompressed bytes.
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
        """The bytes that are read for it."""
        return self.end - self.start


class Hint(str):
    """A note on what looks wrong in a source that can be read, and what to do if it is."""

    __slots__ = ("message", "remedy")

    message: str
    remedy: str

    def __new__(cls, message: str, remedy: str) -> Self:
        """Make the note; whoever prints it ends it with a full stop."""
        made = super().__new__(cls, f"{message} {remedy}".removesuffix("."))
        made.message, made.remedy = message, remedy
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.message, self.remedy)


@dataclass(frozen=True)
class Look:
    """What the driver knows of a source's files: the columns of all, each file with its layout, notes for a user."""

    schema: pa.Schema
    files: tuple[tuple[StoredFile, Any], ...]
    notes: tuple[str, ...] = ()


class Spread(Protocol):
    """Calls a picklable function for each item, in tasks where there are any; returns the results in order."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Call ``work`` for each item."""


class FileReader(Protocol):
    """The settings of one source's reader; picklable.

    Where it ``has_lines``, the offset of a row is that of its first byte, and the row's text can be read by itself.
    Else it is the row's number in the file, from 0, and its columns have types.
    """

    has_lines: ClassVar[bool]

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """Return the columns of the files. All that can be refused before a byte is written is refused here.

        ``spread`` is where files are looked through, if all their rows have to be.
        """

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """Cut the files into pieces of about ``size`` bytes, in the order of the files."""

    def count(self, piece: Piece) -> int:
        """Return how many rows ``read`` gives of a piece, bad ones included."""

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, in the columns of a look's ``schema`` and ``BAD_FIELD`` behind them.

        Every row's mark has ``file`` and ``offset``; that of a bad row also ``reason`` and ``value``, the row as it
        stands, and the row's columns are null.
        """

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """Return the number of the line in which the row at ``offset`` begins; None where nobody has counted."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with one row: the kind of fault in words, and the row's text.

    Where a ``column`` alone is to blame, ``value`` is its text; of several ``row`` has their texts as JSON.
    """

    reason: str
    value: str
    column: str | None = None
    row: str | None = None


def make_marks(path: str, offsets: npt.NDArray[np.int64], faults: Mapping[int, Fault]) -> pa.StructArray:
    """Return the marks of rows that begin at ``offsets``; ``faults`` has the bad ones by their number among them."""
    count = len(offsets)
    texts = {name: _place_texts(count, faults, name) for name in ("column", "value", "reason", "row")}
    arrays = {
        "file": pa.repeat(pa.scalar(path, pa.string()), count),
        "offset": pa.array(offsets, pa.int64()),
        **texts,
    }
    return pa.StructArray.from_arrays([arrays[field.name] for field in BAD_FIELD.type], fields=list(BAD_FIELD.type))


def _place_texts(count: int, faults: Mapping[int, Fault], name: str) -> pa.Array:
    if not faults:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for number, fault in faults.items():
        texts[number] = getattr(fault, name)
    return pa.array(texts, pa.string())
