"""A process, a Python worker or an executor that dies in a job which several tables share: each row once, no upload
left."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.cluster import SPECULATION, make_environment, make_java
from tests.faults.gate import Fault, Weather, once
from tests.faults.process import Process
from tests.faults.test_workers import slaughter
from tests.faults.without_spark import ForkedProcess
from tests.load.lakes import BUCKET, Lake, uploads_part, writes
from tests.support.call import Call

pytestmark = pytest.mark.spark

NAMES = tuple("abcdef")


@pytest.fixture
def tables(lake: Lake) -> Lake:
    """Six tables of bare Parquet files, two rows in each."""
    for name in NAMES:
        pq.write_table(pa.table({"id": [1, 2], "text": [name, name]}), lake.folder / f"{name}.parquet")
    lake.write(
        *({"table": n, "schema": "public", "read": {"format": "parquet", "path": f"{n}.parquet"}} for n in NAMES)
    )
    return lake


def require_whole(lake: Lake) -> None:
    """Every table has its rows once, and no upload is left."""
    for name in NAMES:
        rows = lake.rows("SELECT _supa_job_id, id, text FROM t ORDER BY id", f"supaflow_nyc_public/{name}")
        assert rows == [("j", 1, name), ("j", 2, name)], name
    assert lake.aws.uploads(BUCKET) == []


# In the middle of a task, which has staged some of its tables; between the job and the first intent; among the binds.
MOMENTS: list[Any] = [
    pytest.param(uploads_part, 2, id="in a shared task"),
    pytest.param(uploads_part, 5, id="at its last table"),
    pytest.param(writes("/tables/supaflow_nyc_public.c.json"), 0, id="at an intent"),
    pytest.param(writes("supaflow_nyc_public.d/state.json"), 1, id="at a bind"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after"), MOMENTS)
def test_killed_process_then_the_same_job_again(tables, match, after):
    with ForkedProcess(tables.file, "j", tables.aws.url).killed_at(match, after=after) as process:
        assert process.wait() == -9
    with ForkedProcess(tables.file, "j", tables.aws.url) as process:
        assert process.wait() == 0, process.errors
    require_whole(tables)


def cluster(lake: Lake, folder: Path, weather: Weather = lambda _: None, **settings: str) -> Process:
    """Load on a cluster of two executors, where tasks are tried again."""
    driver = make_environment(make_java(folder), **settings)
    return Process(lake.file, "j", lake.aws.url, weather=weather, stall_seconds=15, **driver)


@pytest.mark.exhaustive
def test_killed_python_worker(tables):
    """Spark gives the job up, and each of its tables is staged in a job of its own."""
    with Process(tables.file, "j", tables.aws.url) as process:
        process.gate.at(uploads_part, lambda: slaughter(process.workers()))
        assert process.wait() == 0, process.errors
    require_whole(tables)


@pytest.mark.exhaustive
@pytest.mark.parametrize("applied", [False, True], ids=["before a part", "after it"])
@pytest.mark.parametrize("whole", [False, True], ids=["workers", "executors"])
def test_killed_on_a_cluster(tables, tmp_path, applied, whole):
    """Spark runs the task again, with all of its tables."""
    with cluster(tables, tmp_path) as process:
        process.gate.at(
            uploads_part,
            lambda: slaughter((process.executors() if whole else []) + process.workers()),
            after=1,
            applied=applied,
        )
        assert process.wait() == 0, process.errors
    require_whole(tables)


@pytest.mark.exhaustive
def test_task_that_runs_twice_at_once(tables, tmp_path):
    late = once(lambda call: uploads_part(call) and "/b/" in call.key, Fault.STALL)
    with cluster(tables, tmp_path, late, **SPECULATION) as process:
        assert process.wait() == 0, process.errors
    require_whole(tables)


@pytest.mark.exhaustive
def test_part_that_is_refused_once_on_a_cluster(tables, tmp_path):
    refused: list[Call] = []

    def refuse(call: Call, proceed: Any) -> Any:
        if refused or not uploads_part(call):
            return proceed(call)
        refused.append(call)
        return call.error(400, "EntityTooSmall", "A part is refused once.")

    tables.aws.interceptors.append(refuse)
    with cluster(tables, tmp_path) as process:
        assert process.wait() == 0, process.errors
    assert len(refused) == 1
    require_whole(tables)
