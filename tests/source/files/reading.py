"""Read bytes by the readers of files, without Spark: files on disk, work spread over nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from lakewriter.cast.sql_types import parse_columns
from lakewriter.source.files.csv_reader import CsvReader
from lakewriter.source.files.file_reader import FileReader
from lakewriter.source.files.spark_options import take_options
from lakewriter.source.files.stored_files import HeldFile, StoredFile
from lakewriter.source.storage import pin_local

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_turn(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` for each item."""
    return [work(item) for item in items]


@dataclass(frozen=True)
class Content(HeldFile):
    """A file in memory of which any range can be read."""

    def stream(self, start: int = 0, end: int | None = None) -> Any:
        """Yield the range."""
        yield self.content[start : self.size if end is None else end]


def hold(data: bytes, path: str = "a.csv") -> StoredFile:
    """A file with these bytes, in memory."""
    return Content(path, len(data), "", content=data)


def store(path: Path, data: bytes) -> StoredFile:
    """A file with these bytes, on disk."""
    path.write_bytes(data)
    size, version = pin_local(path)
    return StoredFile(str(path), size, version)


@dataclass
class Outcome:
    """What a reader gives: names, good rows, bad rows as offset, reason and text, notes."""

    names: list[str]
    good: list[tuple[Any, ...]]
    bad: list[tuple[int, str, str]]
    notes: tuple[str, ...]


def read_with(reader: FileReader, files: Sequence[StoredFile], size: int = 1 << 30) -> Outcome:
    """Read files in pieces of a size; counts and rows agree."""
    look = reader.look(files, "s.t", in_turn)
    good, bad = list[tuple[Any, ...]](), list[tuple[int, str, str]]()
    for piece in reader.cut(look, size, in_turn):
        rows = 0
        for batch in reader.read(piece, look.schema):
            rows += batch.num_rows
            *columns, marks = (column.to_pylist() for column in batch.columns)
            for mark, *values in zip(marks, *columns, strict=True):
                if mark["reason"] is None:
                    good.append(tuple(values))
                else:
                    bad.append((mark["offset"], mark["reason"], mark["value"]))
        assert rows == reader.count(piece)
    return Outcome(look.schema.names, good, bad, look.notes)


def read_csv(
    *contents: bytes,
    columns: str | None = None,
    size: int = 1 << 30,
    options: Mapping[str, str] | None = None,
    nameless: tuple[str, ...] = (),
) -> Outcome:
    """Read the bytes of one file or several as CSV."""
    declared = None if columns is None else parse_columns(columns)
    reader = CsvReader.make(replace(take_options("csv", options or {}, "s.t"), nameless=nameless), declared)
    return read_with(reader, [hold(data, f"{number}.csv") for number, data in enumerate(contents)], size)
