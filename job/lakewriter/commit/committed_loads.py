"""Read the committed changes of a pipeline's tables by their reports: in which order they were committed, which are
undone, which are loads."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Self

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.store import Entry
from lakewriter.records.changes import Expire
from lakewriter.records.state import TableState
from lakewriter.report import TableReport
from lakewriter.spec.load_ids import EXPIRE, REPLAY, is_id_of_load, make_undo_job_id

Moment = tuple[datetime, datetime]
"""What changes are ordered by, as they were committed: the store's clock when the report was written, in whole seconds,
then the clock of the load's machine when it began."""


class TableReports:
    """The reports of one table: ``entries`` are those of a listing, by job id. Each is read once."""

    def __init__(self, control: Control, entries: Mapping[str, Entry]) -> None:
        self.control, self.entries = control, entries
        self._reports: dict[str, TableReport | None] = {}

    @classmethod
    def list_all(cls, controls: Mapping[str, Control]) -> dict[str, Self]:
        """List the reports of tables of one pipeline, by table id: one listing has those of all tables."""
        reports = next(iter(controls.values())).history.list_reports()
        return {table_id: cls(control, reports.get(table_id, {})) for table_id, control in controls.items()}

    def read(self, job_id: str) -> TableReport | None:
        """Return the report of a change; None where there is none, or where it was cleared away since the listing."""
        if job_id not in self._reports:
            self._reports[job_id] = self.control.read_report(job_id)
        return self._reports[job_id]

    def read_all(self, state: TableState | None = None) -> list[TableReport]:
        """Read the reports of all changes, the oldest first; with ``state`` without those that are undone."""
        jobs = [job for job in sorted(self.entries) if state is None or not self.is_undone(state, job)]
        reports = [report for report in call_all(self.read, jobs) if report is not None]
        return sorted(reports, key=self.get_moment)

    def get_moment(self, report: TableReport) -> Moment:
        """Return when a change was committed."""
        return self.entries[report.job_id].modified, report.started

    def is_whole(self, state: TableState) -> bool:
        """Return whether the reports of all changes of the table exist."""
        return len(self.entries) >= state.committed

    def is_undone(self, state: TableState, job_id: str) -> bool:
        """Return whether the load is undone: the state names only the last undos, but each undo has a report."""
        return state.find_undone(job_id) is not None or make_undo_job_id(job_id) in self.entries

    def read_rows(self, state: TableState, most: int) -> Sequence[int]:
        """Return the row counts of the table's last committed loads, at most ``most`` of them, the newest first.

        Loads without a report are left out, and so are loads that were undone or whose rows are not known.
        """
        return tuple(islice((report.rows for report in self._read_newest(state) if _is_load(report)), most))

    def _read_newest(self, state: TableState) -> Iterator[TableReport]:
        newest = sorted(self.entries, key=lambda job_id: (self.entries[job_id].modified, job_id), reverse=True)
        for job_id in newest:
            # Not kept: a load of thousands of tables asks for one number of each report.
            if not self.is_undone(state, job_id) and (report := self.control.read_report(job_id)) is not None:
                yield report


@dataclass(frozen=True)
class TableLoads:
    """A table's state, and its loads that have a report and are not undone, in the order of their commits."""

    reports: TableReports
    state: TableState
    loads: tuple[TableReport, ...]

    @property
    def control(self) -> Control:
        """The control objects of the table."""
        return self.reports.control

    @property
    def is_whole(self) -> bool:
        """Return whether the records of all loads of the table exist."""
        return self.reports.is_whole(self.state)

    def is_undone(self, job_id: str) -> bool:
        """Return whether the load is undone."""
        return self.reports.is_undone(self.state, job_id)

    def get_moment(self, position: int) -> Moment:
        """Return when the load at a position was committed."""
        return self.reports.get_moment(self.loads[position])

    def find(self, job_id: str) -> int | None:
        """Return the position of the load; None where the table has no such load, or it is undone."""
        return next((at for at, load in enumerate(self.loads) if load.job_id == job_id), None)

    def find_expiry(self, job_id: str) -> datetime | None:
        """Find when an expiry has removed a snapshot that the undo of the load needs; None where none has."""
        for other in self.reports.entries:
            if other.startswith(EXPIRE) and (report := self.reports.read(other)) is not None:
                intent = self.control.find_intent(other, report.attempt)
                if isinstance(intent, Expire) and job_id in intent.expire.undos:
                    return self.reports.get_moment(report)[0]
        return None


def read_table_loads(controls: Sequence[Control]) -> list[TableLoads]:
    """Read the loads of tables of one pipeline.

    States are read before reports are listed: what is committed in between shows in the counts of later states.
    """
    states = call_all(lambda control: control.state.read(), controls)
    listed = TableReports.list_all({control.table_id: control for control in controls})

    def read(reports: TableReports, state: TableState) -> TableLoads:
        return TableLoads(reports, state, tuple(filter(is_of_rows, reports.read_all(state))))

    return call_all(lambda pair: read(*pair), zip(listed.values(), states, strict=True))


class LastLoads:
    """The reports of a pipeline's tables, listed once: a listing for each table would list those of all tables."""

    def __init__(self, controls: Mapping[str, Control]) -> None:
        self._controls = controls
        self._lock = threading.Lock()
        self._tables: dict[str, TableReports] | None = None

    def read_rows(self, table_id: str, state: TableState, most: int) -> Sequence[int]:
        """See ``TableReports.read_rows``."""
        with self._lock:
            if self._tables is None:
                self._tables = TableReports.list_all(self._controls)
        return self._tables[table_id].read_rows(state, most)


def is_of_rows(report: TableReport) -> bool:
    """Return whether the change is a load. The job id decides only where the report was written without the intent:
    loads of earlier releases may have any id."""
    if report.is_blind:
        return is_id_of_load(report.job_id)
    return report.undoes is None and (report.counts is None or report.counts.are_of_loaded)


def _is_load(report: TableReport) -> bool:
    is_of_some_rows = report.job_id.startswith(REPLAY) or report.between is not None
    return is_of_rows(report) and not is_of_some_rows and not report.is_blind
