"""Read the committed loads of a pipeline's tables that are not undone: whole reports, or the row counts of the last
ones."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.history import History
from lakewriter.commit.repeated_loads import is_taken_back
from lakewriter.commit.state import TableState
from lakewriter.commit.store import Entry, Store
from lakewriter.control_object import parse
from lakewriter.report import ABANDONED_BLIND, TableReport
from lakewriter.spec.load_ids import REPLAY, is_id_of_load


@dataclass(frozen=True)
class TableLoads:
    """A table's state, and its loads that have a report and are not undone, the oldest first.

    ``reported`` are the job ids of all changes that have a report.
    """

    control: Control
    state: TableState
    loads: tuple[TableReport, ...]
    reported: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Return whether the records of all loads of the table exist."""
        return len(self.reported) >= self.state.committed

    def is_undone(self, job_id: str) -> bool:
        """Return whether the load is undone."""
        return is_taken_back(self.state, self.reported, job_id)

    def find(self, job_id: str) -> int | None:
        """Return the position of the load; None where the table has no such load, or it is undone."""
        return next((at for at, load in enumerate(self.loads) if load.job_id == job_id), None)


def read_table_loads(controls: Sequence[Control]) -> list[TableLoads]:
    """Read the loads of tables of one pipeline.

    States are read before reports are listed: what is committed in between shows in the counts of later states.
    """
    states = call_all(lambda control: control.state.read(), controls)
    reports = controls[0].history.list_reports()

    def read(control: Control, state: TableState) -> TableLoads:
        table = TableLoads(control, state, (), frozenset(reports.get(control.table_id, ())))
        names = [job for job in sorted(table.reported) if not table.is_undone(job)]
        changes = [report for report in call_all(control.read_report, names) if report is not None]
        loads = sorted(filter(is_of_rows, changes), key=lambda load: load.started)
        return replace(table, loads=tuple(loads))

    return call_all(lambda pair: read(*pair), zip(controls, states, strict=True))


class LastLoads:
    """The reports of a pipeline's tables, listed once: a listing for each table would list those of all tables."""

    def __init__(self, store: Store, history: History) -> None:
        self._store, self._history = store, history
        self._lock = threading.Lock()
        self._reports: dict[str, dict[str, Entry]] | None = None

    def read_rows(self, table_id: str, state: TableState, most: int) -> Sequence[int]:
        """Return the row counts of the table's last committed loads, at most ``most`` of them, the newest first.

        Loads without a report are left out, and so are loads that were undone or whose rows are not known.
        """
        entries = self._list(table_id)
        newest = sorted(entries, key=lambda job_id: (entries[job_id].modified, job_id), reverse=True)
        loads = (entries[job_id] for job_id in newest if not is_taken_back(state, entries, job_id))
        reports = (self._read(entry.key) for entry in loads)
        counted = (report.rows for report in reports if report is not None and _is_load(report))
        return tuple(islice(counted, most))

    def _list(self, table_id: str) -> Mapping[str, Entry]:
        with self._lock:
            if self._reports is None:
                self._reports = self._history.list_reports()
        return self._reports.get(table_id, {})

    def _read(self, key: str) -> TableReport | None:
        content = self._store.get(key)
        return None if content is None else parse(TableReport, key, content[0])


def is_of_rows(report: TableReport) -> bool:
    """Return whether the change is a load. The job id decides only where the report was written without the intent:
    loads of earlier releases may have any id."""
    if _is_blind(report):
        return is_id_of_load(report.job_id)
    return report.undoes is None and (report.counts is None or report.counts.are_of_loaded)


def _is_blind(report: TableReport) -> bool:
    return any(note.startswith(ABANDONED_BLIND) for note in report.notes)


def _is_load(report: TableReport) -> bool:
    return is_of_rows(report) and not report.job_id.startswith(REPLAY) and not _is_blind(report)
