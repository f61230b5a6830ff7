"""Read the records and objects that the loads of one table have left, to rebuild a control object that was lost."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from lakewriter.commit.committed_loads import TableReports
from lakewriter.commit.control import Control
from lakewriter.commit.history import PastLoad
from lakewriter.commit.store import StoredObject
from lakewriter.commit.table_objects import find_own_objects, list_objects
from lakewriter.receipt import Batch
from lakewriter.records.changes import Intent, Load
from lakewriter.records.state import Running
from lakewriter.report import TableReport

MOST_ASKED: Final = 1000
"""The most objects, the newest first, for which HEAD reads which load wrote them."""
_BATCH: Final = re.compile(r"stream-(.+)-(\d{10})")


@dataclass(frozen=True)
class Closed:
    """A committed load: its report, when the report was written, and its intent where that is still there."""

    at: datetime
    report: TableReport
    intent: Intent | None

    @property
    def job_id(self) -> str:
        """The load's job id."""
        return self.report.job_id

    @property
    def batch(self) -> Batch | None:
        """The load's batch of a continuous run, from its intent or its job id; None for a plain load."""
        return (self.intent.batch if isinstance(self.intent, Load) else None) or parse_batch(self.job_id)


@dataclass(frozen=True)
class Leftovers:
    """What the loads of a table have left.

    closed    committed loads in the order of their commits
    unclosed  intents without a report, the newest first
    running   attempts that neither ended nor were superseded, by job id
    objects   the newest objects that the pipeline wrote, with their metadata
    keys      the keys of all objects that match the layout
    """

    closed: tuple[Closed, ...] = ()
    unclosed: tuple[Intent, ...] = ()
    running: dict[str, Running] = field(default_factory=dict)
    objects: tuple[tuple[str, StoredObject], ...] = ()
    keys: tuple[str, ...] = ()


def parse_batch(job_id: str) -> Batch | None:
    """Parse the job id of a continuous run's batch; None for another job id."""
    match = _BATCH.fullmatch(job_id)
    return Batch(match[1], int(match[2])) if match else None


def read_leftovers(control: Control) -> Leftovers:
    """Read everything that the loads of a table have left; ``PENDING_UNRECOVERABLE`` for a record that cannot be
    read."""
    loads, table_id = list(control.history.list_loads()), control.table_id
    entries = {item.job_id: item.entry for load in loads for item in load.select("report", table_id)}
    unclosed = [load for load in loads if load.job_id not in entries]
    intents = [control.read_intent(load.job_id, at.attempt) for load in unclosed for at in load.list_intents(table_id)]
    running = {load.job_id: _find_running(control, load) for load in unclosed}
    layout = control.layout
    objects = () if layout is None else find_own_objects(
        control.store, control.keys, table_id, layout, most=MOST_ASKED
    )  # fmt: skip
    times = {job_id: entry.modified.astimezone(UTC) for job_id, entry in entries.items()}
    return Leftovers(
        closed=tuple(
            Closed(times[report.job_id], report, control.find_intent(report.job_id, report.attempt))
            for report in TableReports(control, entries).read_all()
        ),
        unclosed=tuple(sorted(intents, key=lambda intent: intent.started, reverse=True)),
        running={job_id: entry for job_id, entry in running.items() if entry is not None},
        objects=tuple(objects),
        keys=() if layout is None else tuple(entry.key for entry in list_objects(control.store, layout)),
    )


def _find_running(control: Control, load: PastLoad) -> Running | None:
    """Return the load's last attempt at the table, without attempts that ended before they were bound."""
    ended = {item.attempt for item in load.select("outcome")}
    ended.difference_update(item.attempt for item in load.list_intents(control.table_id))
    items = [item for item in load.select("begin", "") if item.attempt not in ended]
    records = [record for item in items for record in control.begun.read_at(item.entry.key)]
    begun = [record for record in records if control.table_id in record.tables]
    if not begun:
        return None
    last = max(begun, key=lambda record: record.started)
    return Running(attempt=last.attempt, since=last.started, first=min(record.started for record in begun))
