"""The kinds of load: plain tables that Spark reads, a sync of streams, a micro-batch of a continuous run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from lakewriter.commit.batches import is_due, require_no_stream
from lakewriter.commit.decisions import Decision
from lakewriter.errors import LakeError
from lakewriter.lineage.follower import Follower
from lakewriter.receipt import Batch
from lakewriter.records.facets import Removal
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState
from lakewriter.report import TableResult
from lakewriter.source.feed import FeedOpener
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.splits import MessagesFeed
from lakewriter.spec.listed_files import ListedFile

StreamFeed = MessagesFeed | ArrivingFeed
"""The records of a stream, from files or as they arrive."""


class _Whole:
    """A load that is no micro-batch: it reads what its tables' sources hold when it starts."""

    batch: ClassVar[None] = None
    follower: ClassVar[None] = None
    takes: tuple[Removal, ...]
    """The files of the quarantine whose rows a replay loads; empty for other loads."""

    def is_due(self, state: TableState, table_id: str) -> bool:
        """Return True; raise ``SPEC_INVALID`` for a table of a continuous run, unless it is a replay: no batch has its
        rows."""
        if not self.takes:
            require_no_stream(state, table_id)
        return True


@dataclass(frozen=True)
class Plain(_Whole):
    """Every table of the pipeline, each for itself; ``opener`` opens a table's feed in place of ``open_feed``."""

    sync: ClassVar[None] = None
    opener: FeedOpener | None = None
    takes: tuple[Removal, ...] = ()


@dataclass(frozen=True)
class Ending:
    """The end of a table's input. ``complete`` lets older generations be deleted; ``continues`` stays in the generation
    that was begun."""

    complete: bool = True
    continues: bool = False
    source: SourceState | None = None


def _pass() -> None:
    """Let a table be bound that depends on no other."""


@dataclass(frozen=True)
class TablePart:
    """What is known of one table's part of a sync before the table registers.

    ``ending`` is None for a replay, which reads nothing of the source: what the last sync recorded of the source stays.
    ``feed`` is None for a table that is read as its ``read`` says. ``read`` is the state from which the input was
    chosen (where the source continues, and from which place records are loaded); None where no state was read.
    ``listed`` are the files of messages, if they are read whole; else None. ``gate`` is called once the table is
    staged: it returns when the table may be bound, and raises where it may not.
    """

    ending: Ending | None = Ending()
    feed: StreamFeed | None = None
    read: TableState | None = None
    listed: tuple[ListedFile, ...] | None = None
    gate: Callable[[], None] = _pass


@dataclass(frozen=True)
class Sync(_Whole):
    """Tables by id, the only ones that are loaded; ``failures`` go into the report with the others.

    Where the source has one state for all streams, ``together`` is the decision that binds all tables which it names,
    or none of them.
    """

    sync_id: int
    tables: Mapping[str, TablePart]
    failures: tuple[tuple[TableResult, LakeError], ...] = ()
    opener: FeedOpener | None = None
    takes: tuple[Removal, ...] = ()
    together: Decision | None = None

    def is_bound_together(self, table_id: str) -> bool:
        """Return whether a table is one of those that are bound together."""
        return self.together is not None and table_id in self.together.tables

    @property
    def sync(self) -> "Sync":
        """Itself."""
        return self


@dataclass(frozen=True)
class MicroBatch:
    """A batch of a continuous run of one table; ``since`` was the last one when its query started. ``beside`` has the
    id of its history: one that is new begins with any batch.

    ``sync`` is the batch's own where the destination numbers its syncs. ``follower`` follows all batches of a run.
    """

    batch: Batch
    since: Batch | None
    opener: FeedOpener
    sync: Sync | None = None
    follower: Follower | None = None
    beside: frozenset[str] = frozenset()
    takes: ClassVar[tuple[Removal, ...]] = ()

    def is_due(self, state: TableState, table_id: str) -> bool:
        """Return False for a batch that is committed already; raise ``CHECKPOINT_LOST`` if it does not follow the
        state."""
        begins = table_id in self.beside and not state.is_loaded
        return begins or is_due(state, self.batch, table_id, self.since)


Kind = Plain | Sync | MicroBatch
