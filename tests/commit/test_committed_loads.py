"""Committed changes by their reports: their order, and which are loads: by what a report says, or by the job id only
where it was written without the intent."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from lakewriter.commit.committed_loads import TableReports, is_of_rows
from lakewriter.commit.control import Control
from lakewriter.commit.store import Entry
from lakewriter.records.state import TableState
from lakewriter.report import CompactCounts, MergeCounts, TableReport

REPORT: dict[str, Any] = {
    "pipeline": "p",
    "attempt": "a",
    "schema_name": "s",
    "table": "t",
    "started": datetime(2026, 1, 1, tzinfo=UTC),
    "rows": 1,
    "files": 1,
    "bytes": 1,
    "keys": (),
    "feed": "splits",
    "engine": "parquet",
    "cursor_before": None,
    "cursor_after": None,
    "cursor_nulls": 0,
    "staged_seconds": 0.0,
}

CHANGES = [
    # the job id, what the report says besides, whether it is a load
    ("a", {}, True),
    ("a", {"merged": MergeCounts()}, True),
    ("compact.s.t.3", {"compacted": CompactCounts()}, False),
    ("undo.a", {"undoes": "a"}, False),
    # of an earlier release, which refused no such id
    ("compact.daily", {}, True),
    ("undo.daily", {}, True),
    # written without the intent, which alone said what it was
    ("a", {"abandoned": "without_intent"}, True),
    ("compact.s.t.3", {"abandoned": "without_intent"}, False),
]


@pytest.mark.parametrize(("job_id", "said", "is_load"), CHANGES)
def test_loads(job_id: str, said: dict[str, Any], is_load: bool) -> None:
    assert is_of_rows(TableReport.model_validate(REPORT | said | {"job_id": job_id})) is is_load


def test_changes_are_in_the_order_of_their_commits() -> None:
    """S3's clock decides, in whole seconds; machines' clocks only within one. A slow load may have begun first."""
    committed, began = {"slow": 40, "b": 30, "a": 30, "undo.u": 50, "u": 20}, {"slow": 1, "a": 2, "b": 3}
    start = datetime(2026, 1, 1, tzinfo=UTC)

    class Reports:
        def read_report(self, job_id: str) -> TableReport:
            at = start + timedelta(seconds=began.get(job_id, 0))
            undoes = "u" if job_id == "undo.u" else None
            return TableReport.model_validate(REPORT | {"job_id": job_id, "started": at, "undoes": undoes})

    entries = {job: Entry(job, start + timedelta(seconds=at)) for job, at in committed.items()}
    reports = TableReports(cast(Control, Reports()), entries)
    assert [report.job_id for report in reports.read_all()] == ["u", "a", "b", "slow", "undo.u"]
    assert [report.job_id for report in reports.read_all(TableState())] == ["a", "b", "slow", "undo.u"]
    assert (reports.is_whole(TableState(committed=5)), reports.is_whole(TableState(committed=6))) == (True, False)
