"""Decide for each mode and each way of reading whether ``repeated: fail`` works, or is refused.

A load that appends may read files again that the table has, and compares them with those that earlier loads have read.
Where no row comes again, or where a source has no files to compare, ``fail`` would be a promise that nothing keeps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewriter.spec.stream import MessageSource
from lakewriter.spec.table_spec import Mode, TableSpec


class Way(StrEnum):
    """The way in which the loads of a table read its source."""

    NEW_FILES = "read: {files: new}"
    CURSOR = "cursor"
    FILES = "all files"
    ROWS = "a source without files"
    CHECKPOINT = "checkpoint"
    PROGRAM = "rows of a program"
    MESSAGES = "files of messages"
    CONNECTOR = "messages of a connector or standard input"


class Fail(StrEnum):
    """What a load does about ``repeated: fail``.

    ``COMPARED``: loads compare files, and end with ``INPUT_REPEATED``. ``ASKED``: they do if the table itself has the
    key; ``repeated`` of the whole file is about rows that are appended again. ``NONE_AGAIN``: no row is appended again,
    so the table's own key is refused, and that of the whole file has nothing to do. ``UNKNOWN``: rows may be appended
    again, and nobody can tell: both are refused. ``IMPOSSIBLE``: another rule refuses the pair of keys before.
    """

    COMPARED = "compared"
    ASKED = "asked"
    NONE_AGAIN = "none again"
    UNKNOWN = "unknown"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Cell:
    """What a load does about ``repeated: fail``, and the reason."""

    fail: Fail
    why: str = ""


_COMPARED: Final = Cell(Fail.COMPARED)
_REPLACED: Final = Cell(Fail.NONE_AGAIN, "each load replaces the rows, so that none comes again")
_ABOVE: Final = Cell(Fail.NONE_AGAIN, "its loads read files again on purpose, for the rows above the cursor")
_GIVEN: Final = Cell(Fail.NONE_AGAIN, "a program gives its rows, which are of no file")
_MERGED: Final = Cell(Fail.NONE_AGAIN, "its source has no files to compare, and a merge adds no row twice")
_FOLLOWED: Final = Cell(Fail.NONE_AGAIN, "a continuous run goes on behind its checkpoint")
_NO_FILES: Final = Cell(Fail.UNKNOWN, "its source has no files that could be compared with those of earlier loads")
_NOT_NEW: Final = Cell(Fail.IMPOSSIBLE, "files: new adds rows, and the mode replaces them")

_REPLACES: Final = dict.fromkeys(Way, _REPLACED) | {Way.NEW_FILES: _NOT_NEW}

REPEATED: Final[Mapping[Mode, Mapping[Way, Cell]]] = {
    Mode.APPEND: {
        Way.NEW_FILES: _COMPARED,
        Way.CURSOR: _ABOVE,
        Way.FILES: _COMPARED,
        Way.ROWS: _NO_FILES,
        Way.CHECKPOINT: _FOLLOWED,
        Way.PROGRAM: _GIVEN,
        Way.MESSAGES: _COMPARED,
        Way.CONNECTOR: _NO_FILES,
    },
    Mode.OVERWRITE: _REPLACES,
    Mode.REFRESH: _REPLACES,
    Mode.REPLACE_PARTITIONS: _REPLACES,
    Mode.MERGE: {
        Way.NEW_FILES: _COMPARED,
        Way.CURSOR: _ABOVE,
        Way.FILES: Cell(Fail.ASKED, "a merge adds no row twice, but brings back rows that somebody has deleted"),
        Way.ROWS: _MERGED,
        Way.CHECKPOINT: _FOLLOWED,
        Way.PROGRAM: _GIVEN,
        Way.MESSAGES: _MERGED,
        Way.CONNECTOR: _MERGED,
    },
}
"""A cell for each mode and each way: a new one of either needs its own."""


def find_way(table: TableSpec, source: MessageSource | None = None, *, has_checkpoint: bool = False) -> Way:
    """Return how the loads of a table read; ``source`` is that of a pipeline of messages."""
    if table.stream is not None:
        is_listed = source is not None and bool(source.paths) and "-" not in source.paths
        return Way.MESSAGES if is_listed else Way.CONNECTOR
    if table.is_given:
        return Way.PROGRAM
    if table.cursor is not None:
        return Way.CURSOR
    if table.read.new_files:
        return Way.NEW_FILES
    if table.read.leaves and all(read.is_of_files for read in table.read.leaves):
        return Way.FILES
    return Way.CHECKPOINT if has_checkpoint else Way.ROWS


def compares_when_merged(table: TableSpec) -> bool:
    """Return True for a table that is merged and whose loads compare its files with those that earlier ones have read.

    A merge changes no row if it reads a file again, unless somebody else has changed the table since.
    """
    fail = REPEATED[table.mode][find_way(table)].fail
    is_asked = fail is Fail.ASKED and table.repeated == "fail"
    return table.mode is Mode.MERGE and (fail is Fail.COMPARED or is_asked)
