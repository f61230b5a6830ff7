"""A change is a load by what its report says; by its job id only where the report was written without the intent."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lakewriter.commit.committed_loads import is_of_rows
from lakewriter.report import ABANDONED_BLIND, CompactCounts, MergeCounts, TableReport

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
    ("a", {"notes": (f"{ABANDONED_BLIND}: lost",)}, True),
    ("compact.s.t.3", {"notes": (f"{ABANDONED_BLIND}: lost",)}, False),
]


@pytest.mark.parametrize(("job_id", "said", "is_load"), CHANGES)
def test_loads(job_id: str, said: dict[str, Any], is_load: bool) -> None:
    assert is_of_rows(TableReport.model_validate(REPORT | said | {"job_id": job_id})) is is_load
