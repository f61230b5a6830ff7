"""Read the records and objects that the loads of one table have left, to rebuild a control object that was lost."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.earlier_attempts import BeginRecord
from lakewriter.commit.history import LoadObject, parse_all
from lakewriter.commit.intent import Intent
from lakewriter.commit.state import Running
from lakewriter.commit.store import StoredObject
from lakewriter.commit.table_objects import find_own_objects, list_objects
from lakewriter.control_object import parse
from lakewriter.receipt import Batch
from lakewriter.report import TableReport

MOST_ASKED: Final = 1000
"""The most objects, the newest first, for which HEAD reads which load wrote them."""
_BATCH: Final = re.compile(r"stream-(.+)-(\d{10})")


@dataclass(frozen=True)
class Closed:
    """A committed load: its report, when the report was written, and its intent where that is still there."""

    job_id: str
    at: datetime
    report: TableReport
    intent: Intent | None

    @property
    def batch(self) -> Batch | None:
        """The load's batch of a continuous run, from its intent or its job id; None for a plain load."""
        return (self.intent.batch if self.intent else None) or parse_batch(self.job_id)


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
    items = list(control.history.list_objects())
    mine = list(parse_all(items, control.table_id))
    reports = {trace.job_id: trace.entry.modified for trace in mine if trace.kind == "report"}
    closed = [load for job_id, at in reports.items() if (load := _read_closed(control, job_id, at)) is not None]
    withdrawn = {(trace.job_id, trace.attempt) for trace in mine if trace.kind == "failure"}
    named = sorted({(trace.job_id, trace.attempt) for trace in mine if trace.kind == "intent"} - withdrawn)
    intents = [control.read_intent(*names) for names in named if names[0] not in reports]
    layout = control.layout
    objects = () if layout is None else find_own_objects(
        control.store, control.keys, control.table_id, layout, most=MOST_ASKED
    )  # fmt: skip
    return Leftovers(
        closed=tuple(sorted(closed, key=lambda load: (load.at, load.report.started))),
        unclosed=tuple(sorted(intents, key=lambda intent: intent.started, reverse=True)),
        running=_find_running(control, items, reports, {(i.job_id, i.attempt) for i in intents}),
        objects=tuple(objects),
        keys=() if layout is None else tuple(entry.key for entry in list_objects(control.store, layout)),
    )


def _read_closed(control: Control, job_id: str, at: datetime) -> Closed | None:
    report = control.read_report(job_id)
    if report is None:
        # It was cleared away since it was listed, as those of older loads were before.
        return None
    key = control.keys.intent(job_id, report.attempt, control.table_id)
    content = control.read_body(key)
    intent = Intent.parse(key, content).reading_by(control.read_body) if content is not None else None
    return Closed(job_id, at.astimezone(UTC), report, intent)


def _find_running(
    control: Control, items: Iterable[LoadObject], done: Iterable[str], unclosed: Collection[tuple[str, str]]
) -> dict[str, Running]:
    """Return the last attempt of each job that is not done, without attempts that ended before they were bound."""
    closed, records = set(done), [(item.job_id, *item.name.split("/")) for item in items]
    ended = {(name[0], name[1]) for name in records if name[2:] == ("outcome.json",)}.difference(unclosed)
    running: dict[str, Running] = {}
    for job_id, attempt in [(name[0], name[1]) for name in records if name[2:] == ("begin.json",)]:
        key = control.keys.begin(job_id, attempt)
        content = control.store.get(key)
        record = parse(BeginRecord, key, content[0]) if content is not None else None
        if record is None or job_id in closed or (job_id, attempt) in ended or control.table_id not in record.tables:
            continue
        since, other = record.started, running.get(job_id)
        first = min(since, other.first or other.since) if other else since
        if other is None or other.since < since:
            running[job_id] = Running(attempt=attempt, since=since, first=first)
        else:
            running[job_id] = other.model_copy(update={"first": first})
    return running
