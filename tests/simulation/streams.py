"""A continuous run: batches planned in a checkpoint, each loaded until the checkpoint can note it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch
from lakewriter.report import RunReport
from lakewriter.run.kinds import MicroBatch
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import Mode, TableSpec
from tests.simulation.lakes import Lake
from tests.simulation.simulated import SimulatedClients
from tests.simulation.source import Feed, Session, Sources

Load = Callable[[str, MicroBatch], RunReport | None]


@dataclass
class Stream:
    """Spark's side of one table: ``planned`` is its log of offsets, written once each, ``noted`` that of the batches
    that ended. The ``lake`` has that table alone, and its history."""

    lake: Lake
    sources: Sources
    planned: list[tuple[int, int]] = field(default_factory=list)
    noted: int = 0
    is_copied: bool = False
    is_lost: bool = False
    """Whether the product has said that this checkpoint is not the one that the table's batches came from."""

    def copy(self) -> "Stream":
        """The checkpoint as another machine, or a backup, has it: it goes on by itself."""
        self.is_copied = True
        return Stream(self.lake, self.sources, list(self.planned), self.noted)

    @property
    def is_caught_up(self) -> bool:
        """Whether every batch planned has ended."""
        return self.noted == len(self.planned)

    @property
    def table(self) -> TableSpec:
        """The table that its batches are loaded into."""
        (table,) = self.lake.spec.named_tables
        return table

    def go(self, clients: SimulatedClients, batches: int, process: str, load: Load) -> None:
        """A process of so many batches, or until one fails."""
        table, beside = self.table, frozenset(own.id for own in self.lake.spec.tables if own.history_of is not None)
        keys = ControlKeys(self.lake.spec.access.prefix, self.lake.pipeline)
        since = Control(S3Store(clients), keys, table.id).state.read().batch
        for _ in range(batches):
            number = self._plan()
            first, last = self.planned[number]
            offsets = hashlib.sha256(f"{number} {first} {last}".encode()).hexdigest()
            batch = Batch("q1", number, offsets)
            opener: Any = self._opener(batch, process, tuple(range(first, last)))
            report = load(batch.job_id, MicroBatch(batch, since, opener, beside=beside))
            if report is None or any(result.code for result in report.tables):
                codes = {result.code for result in report.tables} if report is not None else set()
                self.is_lost = "CHECKPOINT_LOST" in codes
                return
            self.noted = max(self.noted, number + 1)

    def _plan(self) -> int:
        """The batch in hand, or the next one."""
        if self.noted < len(self.planned):
            return self.noted
        first = self.planned[-1][1] if self.planned else 0
        self.planned.append((first, max(first, self.sources.grow(f"{self.lake.pipeline}/{self.table.id} stream"))))
        return len(self.planned) - 1

    def _compact(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return what a topic still has of a batch: of a key it may have dropped all but the last message."""
        name, rng = f"{self.lake.pipeline}/{self.table.id}", self.sources.rng
        if not ids or rng.random() > 0.2:
            return ids
        keys = [event.key for event in self.sources.events.list(name, self.planned[-1][1])]
        return tuple(number for number in ids if keys[number] not in keys[number + 1 :] or rng.random() < 0.5)

    def _opener(self, batch: Batch, process: str, ids: tuple[int, ...]) -> Callable[[RowsRequest], Feed]:
        def opener(request: RowsRequest) -> Feed:
            table, session = request.table, cast("Session", request.spark())
            if table.mode is Mode.MERGE:
                events: Feed = self.sources.events.open(session, table, self._compact(ids), single=request.single)
                return events
            # Later batches have more columns.
            columns = self.sources.widen(f"{self.lake.pipeline}/{table.id}")
            reading = self.sources.read(self.lake.pipeline, table.id, batch.job_id, process, ids, columns=columns)
            return Feed(reading, 1 if request.single else self.sources.rng.choice([1, 2]), session)

        return opener
