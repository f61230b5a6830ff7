"""Define a table's report and the run's report: versioned, growing, never changing in meaning."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field

from lakewriter.control_object import ControlObject, sparse
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.exit_codes import EXIT_RETRY
from lakewriter.receipt import ChangedValues, Cursor, ReceiptPart, RepeatedFiles, SetAside, Verdict
from lakewriter.spec.model import Model
from lakewriter.spec.specification import MIB

SMALL_FILE_BYTES: Final = 16 * MIB
"""Files below this are what makes a table slow to read when there are many."""


ABANDONED: Final = "abandoned before its catalog agreed"
"""Begins the note in the report of a load that was given up when its files were visible already."""

ABANDONED_BLIND: Final = "abandoned without its intent"
"""Begins the note in the report of a load whose intent was gone: what it wrote is not known."""


STOPPED: Final = "STOPPED"
"""The code of an end by a signal; no error has it."""


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun: ``1 file``, ``1,234 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_size(size: float) -> str:
    """Format bytes in the unit a person would choose."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.{0 if unit == 'B' else 1}f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def format_hours(span: timedelta) -> str:
    """Format a time span as ``12 h`` or ``1 h 30 min``."""
    whole, minutes = divmod(round(span.total_seconds() / 60), 60)
    return " ".join(part for part in (f"{whole} h" if whole else "", f"{minutes} min" if minutes else "") if part)


def join_first(names: Sequence[str], most: int) -> str:
    """Join the first ``most`` names, and say how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def describe_repeated(tables: Iterable[RepeatedFiles | None]) -> str | None:
    """Say what loads have appended again, as far as it is known; None where it is nothing."""
    counted = [table for table in tables if table is not None and not table.is_silent]
    counted_files = [repeat for repeat in counted if repeat.files is not None]
    again, changed = sum(repeat.again for repeat in counted_files), sum(repeat.changed for repeat in counted_files)
    parts = []
    if again:
        rows = [repeat.rows for repeat in counted_files if repeat.again]
        of_rows = "" if None in rows else f"{format_count(sum(filter(None, rows)), 'row')}, "
        files = format_count(sum(repeat.files or 0 for repeat in counted_files), "file")
        parts.append(f"appended again: {of_rows}{again:,} of {files} that an earlier load has read")
    if changed:
        parts.append(f"{format_count(changed, 'file')} changed since an earlier load has read them")
    if unknown := len(counted) - len(counted_files):
        parts.append(f"rows of {format_count(unknown, 'table')} may repeat")
    return "; ".join(parts) or None


class DeletedRows(ControlObject):
    """The ``rows`` of an Iceberg table that ``files`` with deletes delete, ``of`` all that its data files have."""

    files: int
    rows: int
    of: int

    def describe(self) -> str:
        """Return the share in words."""
        share = self.rows / max(self.of, 1)
        return f"{share:.0%} of its rows are deleted by {format_count(self.files, 'file')} until they are rewritten"


class TableHealth(ControlObject):
    """The effect of small loads on an Iceberg table; files under 32 MiB are small, and too many to count are None.
    ``deletes`` is None where no row is deleted by a file with deletes."""

    snapshots: int
    files: int | None
    small_files: int | None
    deletes: DeletedRows | None = None


class Counts(ControlObject):
    """What became of the rows of a change that reports more than their number."""

    field: ClassVar[str]
    """The field that has them in the table's report."""
    are_of_loaded: ClassVar[bool] = True
    """Whether the rows of the change's files are loaded: the report counts no others."""

    @classmethod
    def name_property(cls) -> str:
        """Return the name under which the summary of an Iceberg snapshot has them, as JSON."""
        return f"lakewriter.{cls.field}"

    @abstractmethod
    def describe(self) -> str:
        """Return the counts in words."""

    def list_dropped(self) -> tuple[int, ...]:
        """List the numbers of the intent's groups of files that were not published."""
        return ()


class MergeCounts(Counts):
    """What became of the rows of a load that merges them; together they are all of its rows.

    inserted    those of a key that the table did not have
    updated     those that replaced the table's row
    deleted     those that deleted the table's row
    unchanged   those that are as new as the table's row, and deletes of keys that the table does not have
    late        those that are older than the table's row
    superseded  those that a later row of the same load replaced
    cleared     rows of the table that a truncate, or the end of a new snapshot, took out: they are beside the load's
    """

    field = "merged"

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    late: int = 0
    superseded: int = 0
    cleared: int = sparse(0)

    def __add__(self, other: "MergeCounts") -> "MergeCounts":
        return MergeCounts(**{name: getattr(self, name) + getattr(other, name) for name in MergeCounts.model_fields})

    def describe(self) -> str:
        """Return the counts in words."""
        changed = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        left = f"{self.unchanged:,} unchanged, {self.late:,} late, {self.superseded:,} superseded"
        cleared = f"; {self.cleared:,} cleared by a truncate or a new snapshot" if self.cleared else ""
        return f"rows merged: {changed}; {left}{cleared}"


class CompactCounts(Counts):
    """The work of a compaction: it replaced ``files`` of a table by ``files_after`` with the same rows.

    sizes          bytes of the files before and after
    rows           rows of the files after it
    deletes        rows that files with deletes had deleted, and that no file has any more
    delete_files   files with deletes that left the table, since they applied to nothing
    dropped        the numbers of the intent's groups that were left as they are: others had changed their files
    """

    field = "compacted"
    are_of_loaded = False

    files: int = 0
    files_after: int = 0
    bytes: int = 0
    bytes_after: int = 0
    rows: int = 0
    deletes: int = 0
    delete_files: int = 0
    dropped: tuple[int, ...] = ()

    def describe(self) -> str:
        """Return the counts in words."""
        sizes = f"{format_size(self.bytes)} and {format_size(self.bytes_after)}"
        files = f"{format_count(self.files, 'file')} replaced by {self.files_after:,} ({sizes})"
        deletes = f"{format_count(self.deletes, 'deleted row')} and {format_count(self.delete_files, 'delete file')}"
        left = f"; {format_count(len(self.dropped), 'group')} left: others changed their files" if self.dropped else ""
        return f"{files}, {format_count(self.rows, 'row')} kept, {deletes} removed{left}"

    def list_dropped(self) -> tuple[int, ...]:
        """See ``Counts``."""
        return self.dropped


class ExpireCounts(Counts):
    """The work of an expiry: ``snapshots``, and ``refs`` such as tags, left a table, and then ``files`` that no other
    snapshot has, of ``bytes`` as far as manifests say. A process that goes on where another one was killed counts the
    files that it has deleted itself."""

    field = "expired"
    are_of_loaded = False

    snapshots: int = 0
    refs: int = 0
    files: int = 0
    bytes: int = 0

    def describe(self) -> str:
        """Return the counts in words."""
        refs = f" and {format_count(self.refs, 'ref')}" if self.refs else ""
        left = f"{format_count(self.snapshots, 'snapshot')}{refs} expired"
        return f"{left}, {format_count(self.files, 'file')} deleted ({format_size(self.bytes)})"


COUNTS: Final[Mapping[str, type[Counts]]] = {"merge": MergeCounts, "compact": CompactCounts, "expire": ExpireCounts}
"""The counts of each kind of change that has any."""


class TableFigures(ControlObject):
    """A load's figures of one table, under the same names wherever they are kept or printed.

    A table's report, its entry in the run's report and its entry in the load's record add their own fields to these;
    ``of`` makes one of another.
    """

    schema_name: str
    """Blank where the table has no schema."""
    table: str
    rows: int = 0
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    """Files below 16 MiB."""
    changes: int = 0
    """Values that are not as the source gave them."""
    change_samples: tuple[str, ...] = ()
    """The first of the changed values, in words."""
    undeclared: Mapping[str, int] = Field(default_factory=dict)
    """Properties of documents that no column has, by path."""
    set_aside: SetAside | None = None
    """Rows that were not loaded."""
    repeated: RepeatedFiles | None = None
    """Rows that are appended again; None where none can be."""
    merged: MergeCounts | None = None
    """What became of the rows of a merge."""
    expectations: tuple[Verdict, ...] = ()
    """A verdict on each of the table's expectations."""
    cursor_after: Cursor | None = None
    """Where the table's next load begins."""
    feed: str | None = None
    """How the rows were given to the writers; None where nothing was committed, as are the next three."""
    engine: str | None = None
    """The libraries that wrote the files."""
    sync_id: int | None = None
    generation_id: int | None = None
    retired: int = 0
    """Objects of older generations that the load deleted."""
    health: TableHealth | None = None
    """The health of an Iceberg table after the load."""
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """``{schema}.{table}``, or the table alone without a schema."""
        return ".".join(part for part in (self.schema_name, self.table) if part)

    @property
    def rows_set_aside(self) -> int:
        """The number of rows that were not loaded."""
        return self.set_aside.rows if self.set_aside is not None else 0

    @classmethod
    def of(cls, figures: "TableFigures", **others: Any) -> Self:
        """Return the same figures as this model; ``others`` are its other fields, and those that differ."""
        shared = cls.model_fields.keys() & type(figures).model_fields.keys()
        return cls(**{name: getattr(figures, name) for name in shared} | others)


@dataclass(frozen=True)
class Sums:
    """Sums over tables."""

    rows: int = 0
    rows_set_aside: int = 0
    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, tables: Iterable[TableFigures]) -> "Sums":
        """Return the sums over the figures of tables."""
        counts = [(table.rows, table.rows_set_aside, table.files, table.bytes) for table in tables]
        return cls(*map(sum, zip(*counts, strict=True)))


class TableReport(TableFigures):
    """A committed table of a load; the object's existence is what makes the table done."""

    version: Literal[1] = 1
    pipeline: str
    job_id: str
    attempt: str
    started: datetime
    keys: tuple[str, ...]
    parts: tuple[ReceiptPart, ...] = ()
    """For a load of many files, they have the keys that ``keys`` lacks."""
    cursor_before: Cursor | None
    cursor_nulls: int
    """Rows whose cursor was null."""
    staged_seconds: float
    needs: tuple[str, ...] = ()
    undoes: str | None = None
    """The load that was taken back, in the report of an undo."""
    between: str | None = None
    """The range of rows that the load has brought again, in words."""
    refreshes: bool = False
    """True for a full refresh: its files are all that the table had after it."""
    compacted: CompactCounts | None = None
    """The work of a compaction, which loads no rows."""
    expired: ExpireCounts | None = None
    """The work of an expiry, likewise."""
    abandoned: Literal["before_catalog", "without_intent"] | None = None
    """Set where a person gave the change up when its files were visible, so that its catalog may lack it. Without its
    intent its rows are not known either."""

    @property
    def is_blind(self) -> bool:
        """True for a change that was given up without its intent."""
        return self.abandoned == "without_intent"

    @property
    def counts(self) -> Counts | None:
        """The counts of its kind of change; None of one that has none."""
        every = (getattr(self, counts.field) for counts in COUNTS.values())
        return next((counts for counts in every if counts is not None), None)


TableStatus = Literal["done", "already_done", "failed", "not_run"]


class TableOutcome(TableFigures):
    """How one table ended in a run of a load."""

    status: str
    code: str | None = None
    message: str | None = None
    """It ends with ``remedy``, where the error has one."""
    remedy: str | None = None
    seconds: float | None = None
    """The run's own time for the table; None where its process did not report it."""
    changed: tuple[ChangedValues, ...] = ()
    """The changes by field and reason; only the process that loaded the table knows them."""


class TableResult(TableOutcome):
    """One table in the run's report."""

    model_config = ConfigDict(extra="forbid")

    status: TableStatus
    seconds: float = 0.0
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = Field((), exclude=True)
    """The columns of the Parquet files, for the load's page alone."""


class RunReport(Model):
    """One run of a load. ``requests`` counts HTTP requests to AWS by method."""

    version: Literal[1] = 1
    pipeline: str
    job_id: str
    attempt: str
    status: Literal["done", "failed"]
    started_at: datetime
    seconds: float
    tables: tuple[TableResult, ...]
    requests: Mapping[str, int]
    notes: tuple[str, ...] = ()
    stopped: str | None = None
    """The signal that ended it before all tables were done."""

    def __repr__(self) -> str:
        """Return one line, as a notebook shows it."""
        sums, tables = Sums.of(self.tables), format_count(len(self.tables), "table")
        counts = (tables, format_count(sums.rows, "row"), format_count(sums.files, "file"))
        return f"<load {self.job_id} of {self.pipeline}: {self.status}, {', '.join(counts)} in {self.seconds:.1f} s>"


class ErrorReport(Model):
    """The reason why a command did not exit with 0, in the JSON that it prints.

    code       an error's code, ``STOPPED`` after a signal, null where only the command's own fields say more
    problems   what is wrong with lake.yaml, one text each
    notes      what else is known, such as what could not be withdrawn
    transient  True if the same command can succeed when it is run again
    exit_code  what the process exits with
    """

    code: str | None
    message: str
    remedy: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    transient: bool
    exit_code: int

    @classmethod
    def of(cls, error: LakeError) -> "ErrorReport":
        """Return the report of an error."""
        problems = error.problems if isinstance(error, SpecInvalidError) else ()
        return cls(
            code=error.code,
            message=error.summary if isinstance(error, SpecInvalidError) and problems else error.message,
            remedy=error.remedy,
            problems=problems,
            notes=tuple(getattr(error, "__notes__", ())),
            transient=error.transient,
            exit_code=error.exit_code,
        )

    @classmethod
    def of_stop(cls, reason: str, exit_code: int, remedy: str = "") -> "ErrorReport":
        """Return the report of a signal."""
        return cls(code=STOPPED, message=f"stopped by {reason}.", remedy=remedy, transient=True, exit_code=exit_code)

    @classmethod
    def of_exit(cls, exit_code: int, message: str, code: str | None = None) -> "ErrorReport":
        """Return the report of an exit code that the command's own fields explain."""
        return cls(code=code, message=message, transient=exit_code == EXIT_RETRY, exit_code=exit_code)


class FailureReport(Model):
    """The JSON that a command with ``--json`` prints when it ends before its own object exists."""

    version: Literal[1] = 1
    command: str
    status: Literal["failed"] = "failed"
    job_id: str | None = None
    error: ErrorReport
