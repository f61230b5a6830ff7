"""The record of an attempt at a load, of which pages and the history are made."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from lakewriter.control_object import ControlObject
from lakewriter.receipt import ChangedValues, Cursor, RepeatedFiles, SetAside, Verdict
from lakewriter.report import describe_repeated

MOST_SAMPLES: Final = 10
"""A record has at most so many of a table's changed values; its report has a hundred."""
MOST_COLUMNS: Final = 500
"""A record describes at most so many columns of a table."""

Status = Literal["done", "failed", "stopped", "unfinished", "undone"]


class FileSizes(ControlObject):
    """The sizes of a table's files, in bytes."""

    smallest: int
    median: int
    largest: int


class LoadedTable(ControlObject):
    """One table of a load; ``phases`` are seconds by step, ``columns`` names and types, where these are known."""

    schema_name: str
    table: str
    status: str
    code: str | None = None
    message: str | None = None
    remedy: str | None = None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    sizes: FileSizes | None = None
    seconds: float | None = None
    phases: Mapping[str, float] = Field(default_factory=dict)
    columns: tuple[tuple[str, str], ...] = ()
    changes: int = 0
    change_samples: tuple[str, ...] = ()
    changed: tuple[ChangedValues, ...] = ()
    undeclared: Mapping[str, int] = Field(default_factory=dict)
    set_aside: SetAside | None = None
    cursor_after: Cursor | None = None
    notes: tuple[str, ...] = ()
    expectations: tuple[Verdict, ...] = ()
    repeated: RepeatedFiles | None = None

    @property
    def id(self) -> str:
        """``{schema}.{table}``, or the table alone without a schema."""
        return ".".join(part for part in (self.schema_name, self.table) if part)


class EarlierAttempt(ControlObject):
    """How an attempt at a load ended before the last one; times are None where its process did not report them."""

    attempt: str = ""
    status: Status = "unfinished"
    started: datetime | None = None
    finished: datetime | None = None
    seconds: float | None = None
    code: str | None = None
    message: str | None = None


class LoadRecord(ControlObject):
    """One load, as its last attempt left it.

    earlier   the attempts before the last one, in their order
    seconds   of the whole run, None where its process did not report
    requests  HTTP requests to AWS by method, None likewise
    given     what its user gave to name it: the file, and options such as --local; none of a deployed job
    finished  when it ended, None while it has not
    """

    version: Literal[1] = 1
    pipeline: str
    job_id: str
    attempt: str
    status: Status
    started: datetime | None = None
    finished: datetime | None = None
    seconds: float | None = None
    requests: Mapping[str, int] | None = None
    code: str | None = None
    message: str | None = None
    remedy: str = ""
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    tables: tuple[LoadedTable, ...] = ()
    earlier: tuple[EarlierAttempt, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def files(self) -> int:
        """Files of all tables."""
        return sum(table.files for table in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        return sum(table.bytes for table in self.tables)

    @property
    def repeated(self) -> str | None:
        """The rows that it has appended again, in words; None where it is nothing."""
        return describe_repeated(table.repeated for table in self.tables)

    @property
    def rows_set_aside(self) -> int:
        """Rows that were not loaded."""
        return sum(table.set_aside.rows for table in self.tables if table.set_aside is not None)
