"""What a shared job has staged of a table is aborted where the table then fails in a job of its own, too."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lakewriter.errors import SourceFailedError
from lakewriter.report import RunReport
from lakewriter.run import shared_jobs, table_staging
from lakewriter.run.loader import load
from lakewriter.staging.shared_job import Attempted, SharedTable
from tests.simulation import shared_tasks
from tests.simulation.crowd import Crowd
from tests.simulation.source import Session
from tests.simulation.stand_ins import installed


def stage_half(spark: object, tables: Sequence[SharedTable]) -> list[Attempted]:
    """All files are staged, and no table comes back whole."""
    return [replace(each, whole=False) for each in shared_tasks.stage_together(spark, tables)]


def fail(*_: object) -> Any:
    """As a source does that is gone by then."""
    raise SourceFailedError("the file is gone")


def test_nothing_is_staged_any_more_of_tables_that_fail_twice():
    reports: list[RunReport] = []
    with (
        installed(),
        patch.object(shared_jobs, "stage_together", stage_half),
        patch.object(table_staging, "stage", fail),
    ):
        crowd = Crowd(3)

        def act(pipeline: Any) -> None:
            session: Any = Session(crowd.sources, "crowd", "a", "p")
            reports.append(load(crowd.spec, job_id="a", clients=pipeline.clients, spark=session))

        requests = crowd.count(act)
    assert [table.code for table in reports[0].tables] == ["SOURCE_FAILED"] * 3
    assert requests["CreateMultipartUpload"] >= 1
    assert crowd.bucket.uploads == {}
