"""Read how many rows the last loads of a table have brought."""

import threading
from collections.abc import Mapping, Sequence
from itertools import islice

from lakewriter.commit.repeats import is_taken_back
from lakewriter.commit.state import TableState
from lakewriter.commit.store import Entry, Store
from lakewriter.commit.traces import list_reports
from lakewriter.control_object import parse
from lakewriter.naming import REPLAY, ControlKeys
from lakewriter.report import ABANDONED_BLIND, TableReport


class LastLoads:
    """The committed loads that are kept of a pipeline's tables, listed once: each table would list those of all."""

    def __init__(self, store: Store, keys: ControlKeys) -> None:
        self._store, self._keys = store, keys
        self._lock = threading.Lock()
        self._reports: dict[str, dict[str, Entry]] | None = None

    def read_rows(self, table_id: str, state: TableState, most: int) -> Sequence[int]:
        """Return the rows of the table's last committed loads, of at most ``most``, the newest first.

        Loads whose records are no longer kept are not among them, nor those that were undone or whose rows are not
        known.
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
                self._reports = list_reports(self._store, self._keys)
        return self._reports.get(table_id, {})

    def _read(self, key: str) -> TableReport | None:
        content = self._store.get(key)
        return None if content is None else parse(TableReport, key, content[0])


def _is_load(report: TableReport) -> bool:
    is_whole = report.undoes is None and not report.job_id.startswith(REPLAY)
    return is_whole and not any(note.startswith(ABANDONED_BLIND) for note in report.notes)
