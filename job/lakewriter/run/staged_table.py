"""Define the state that a load's tables share, and the state of each table between its steps."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.expect.repeated_keys import RepeatedKeys
from lakewriter.expect.watching import Watched
from lakewriter.lineage.follower import Follower
from lakewriter.receipt import Floor, GivenName, InferredType, Receipt, RepeatedFiles, SetAside, Violations
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import CatalogAction
from lakewriter.records.sync_records import SyncIntent
from lakewriter.run.chosen_files import Chosen
from lakewriter.run.kinds import Kind, MicroBatch
from lakewriter.run.shared_jobs import SharedJobs
from lakewriter.run.stop import Stop
from lakewriter.shape.shapers import AnyPlan
from lakewriter.source.kafka_topics import AnyEdge
from lakewriter.source.request import Feed, SparkFactory
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.table_spec import TableSpec

Progress = Callable[[TableSpec, str, str], None]
"""Called with a table, the step it is in, and a detail for people. One that is ``Measured`` gets numbers too."""


@dataclass
class BeginRecord:
    """The attempt's begin record. A load that seems to be done writes it only when a table registers after all, so that
    running a finished load again leaves no trace.

    Several tables may write it at the same time, with the same content.
    """

    control: Control
    key: str
    content: Mapping[str, Any]
    is_checked: bool
    """If true, the object is created a second time, which a store with conditions refuses."""
    is_written: bool = False

    def write(self) -> None:
        """Create the object, unless this process has done so."""
        if self.is_written:
            return
        self.control.write_once(self.key, self.content)
        if self.is_checked:
            self.control.require_conditions(self.key, self.content)
        self.is_written = True


def seems_done(pipeline: Pipeline, attempt: Attempt, kind: Kind) -> bool:
    """Return whether the first table that is to be loaded is done: if the load was finished, all tables are."""
    if isinstance(kind, MicroBatch):
        last = pipeline.first_control.state.recall().last_batch
        return last is not None and last.query == kind.batch.query and kind.batch.number <= last.number
    names = kind.sync.tables if kind.sync is not None else pipeline.controls
    keys = (
        pipeline.keys.report(job, name) for name in list(names)[:1] for job in (attempt.job_id, *attempt.repeats.of)
    )
    return any(any(pipeline.store.list_entries(key, limit=1)) for key in keys)


@dataclass(frozen=True)
class Load:
    """Facts that a load's tables share. By table id: ``names`` of objects, ``columns`` of Parquet files, ``repeated``
    files of the source. ``stopped`` says that a failed table ends the others. ``begin`` is None in a process that takes
    over a registered load. ``group`` has the name of the tables that are bound together, blank for those of a sync;
    None where a table is bound by itself."""

    pipeline: Pipeline
    attempt: Attempt
    spark: SparkFactory
    progress: Progress
    names: dict[str, ObjectNames]
    kind: Kind
    stop: Stop
    stopped: Event = field(default_factory=Event)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    repeated: dict[str, RepeatedFiles] = field(default_factory=dict)
    follower: Follower = field(default_factory=Follower)
    shared: SharedJobs = field(default_factory=SharedJobs)
    begin: BeginRecord | None = None
    group: str | None = None

    @property
    def is_of_many(self) -> bool:
        """True for a load of several tables, which may share Spark's jobs; a table and its history are one."""
        return len(self.pipeline.spec.named_tables) > 1

    def control(self, table: TableSpec) -> Control:
        """Return the table's control objects."""
        return self.pipeline.controls[table.id]

    def note_begin(self) -> None:
        """Make sure that the attempt's begin record is there: before it registers at a table."""
        if self.begin is not None:
            self.begin.write()


@dataclass(frozen=True)
class Planned:
    """The plan of one checked table, by which its files are staged and its intent is made. Spark's writer hands it to
    other processes.

    ``feed`` is the kind of its feed, ``opened`` when the feed was open, ``watched`` the columns that expectations ask
    about. ``inputs`` are the files of its source, None where its rows come from elsewhere. ``given`` are the names that
    the table keeps, and ``types`` those that its columns have by their values; ``edge`` is the highest value of the
    cursor where a database has compared it. ``is_in_order`` is that of its feed.
    """

    shape: AnyPlan
    action: CatalogAction
    names: ObjectNames
    sync: SyncIntent | None
    feed: str
    opened: datetime
    watched: Watched
    inputs: Chosen | None = None
    given: tuple[GivenName, ...] | None = None
    edge: AnyEdge | None = None
    types: tuple[InferredType, ...] | None = None
    is_in_order: bool = False


@dataclass(frozen=True)
class Checked:
    """A table that can be staged: its feed is open, the catalog's table is ready for files, and the files' keys are
    fixed."""

    feed: Feed
    planned: Planned


class StagedUploads:
    """The uploads of one table that nobody sees yet; iterating over them yields all their receipts."""

    def __init__(self) -> None:
        self.receipts, self._bad_rows = Receipts(), Receipts()

    def hold(self, receipts: Receipts, bad_rows: Receipts) -> None:
        """Hold the receipts of the table's files, and those of files with bad rows, in place of earlier ones."""
        self.receipts, self._bad_rows = receipts, bad_rows

    def __iter__(self) -> Iterator[Receipt]:
        yield from self._bad_rows
        yield from self.receipts


@dataclass(frozen=True)
class Staged:
    """The result of staging. ``seconds`` begin when the feed is open; ``repeated`` are rows that are not unique,
    ``keys`` those with the primary key of another, ``quarantined`` the receipts of files with bad rows.
    ``is_as_listed`` says that only listed files were read, ``floors`` are those among the rows."""

    planned: Planned
    action: CatalogAction
    receipts: Receipts
    seconds: float
    set_aside: SetAside | None
    quarantined: Receipts
    repeated: Mapping[str, Violations] = field(default_factory=dict)
    keys: RepeatedKeys | None = None
    is_as_listed: bool = True
    floors: tuple[Floor, ...] = ()
