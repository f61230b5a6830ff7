"""Read how many rows the last loads of a table have brought."""

from collections.abc import Sequence
from itertools import islice

from lakewriter.commit.control import Control
from lakewriter.commit.state import TableState
from lakewriter.commit.traces import find_traces
from lakewriter.control_object import parse
from lakewriter.naming import make_undo_job_id
from lakewriter.report import ABANDONED_BLIND, TableReport


def read_last_rows(control: Control, state: TableState, most: int) -> Sequence[int]:
    """Return the rows of the last committed loads, of at most ``most``, the newest first.

    Loads whose records are no longer kept are not among them, nor those that were undone or whose rows are not known.
    """
    traces = [trace for trace in find_traces(control.store, control.keys, control.table_id) if trace.kind == "report"]
    jobs = {trace.job_id for trace in traces}
    newest = sorted(traces, key=lambda trace: (trace.entry.modified, trace.job_id), reverse=True)
    loads = (trace for trace in newest if not _is_undone(state, jobs, trace.job_id))
    reports = (_read_report(control, trace.entry.key) for trace in loads)
    counted = (report.rows for report in reports if report is not None and _is_load(report))
    return tuple(islice(counted, most))


def _is_undone(state: TableState, jobs: set[str], job_id: str) -> bool:
    return state.find_undone(job_id) is not None or make_undo_job_id(job_id) in jobs


def _read_report(control: Control, key: str) -> TableReport | None:
    body = control.read_body(key)
    return None if body is None else parse(TableReport, key, body)


def _is_load(report: TableReport) -> bool:
    return report.undoes is None and not any(note.startswith(ABANDONED_BLIND) for note in report.notes)
