"""The record of an attempt at a load, of which pages and the history are made."""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, Self

from pydantic import Field

from lakewriter.control_object import ControlObject
from lakewriter.report import Sums, TableFigures, TableOutcome, describe_repeated

MOST_SAMPLES: Final = 10
"""A record has at most so many of a table's changed values; its report has a hundred."""
MOST_UNDECLARED: Final = 50
"""A record names at most so many of a table's undeclared properties."""
MOST_COLUMNS: Final = 500
"""A record describes at most so many columns of a table."""

Status = Literal["done", "failed", "stopped", "unfinished", "undone"]


class FileSizes(ControlObject):
    """The sizes of a table's files, in bytes."""

    smallest: int
    median: int
    largest: int


class LoadedTable(TableOutcome):
    """One table of a load; ``phases`` are seconds by step, ``columns`` names and types, where these are known."""

    sizes: FileSizes | None = None
    phases: Mapping[str, float] = Field(default_factory=dict)
    columns: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, figures: TableFigures, **others: Any) -> Self:
        """Return the figures with as many samples and paths as a page shows."""
        undeclared = dict(islice(figures.undeclared.items(), MOST_UNDECLARED))
        fewer = {"change_samples": figures.change_samples[:MOST_SAMPLES], "undeclared": undeclared}
        return super().of(figures, **fewer | others)


class AttemptEnd(ControlObject):
    """How an attempt at a load ended; times are None where its process did not report them, or has not ended."""

    attempt: str = ""
    status: Status = "unfinished"
    started: datetime | None = None
    finished: datetime | None = None
    seconds: float | None = None
    code: str | None = None
    message: str | None = None


class LoadRecord(AttemptEnd):
    """One load, as its last attempt left it.

    earlier   the attempts before the last one, in their order
    requests  HTTP requests to AWS by method, None where its process did not report
    given     what its user gave to name it: the file, and options such as --local; none of a deployed job
    """

    version: Literal[1] = 1
    pipeline: str
    job_id: str
    requests: Mapping[str, int] | None = None
    remedy: str = ""
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    tables: tuple[LoadedTable, ...] = ()
    earlier: tuple[AttemptEnd, ...] = ()

    @property
    def sums(self) -> Sums:
        """The sums over its tables."""
        return Sums.of(self.tables)

    @property
    def repeated(self) -> str | None:
        """The rows that it has appended again, in words; None where it is nothing."""
        return describe_repeated(table.repeated for table in self.tables)
