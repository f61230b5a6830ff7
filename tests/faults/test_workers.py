"""Executors and Python workers that die, tasks that run twice at once: one copy of each row, and no upload left."""

import os
import signal

import pytest

from tests.faults.books import ORDERS, TABLES, Books
from tests.faults.cluster import SPECULATION, make_environment, make_java
from tests.faults.gate import Fault, Weather, once
from tests.faults.process import Process
from tests.load.lakes import Lake, creates_upload, uploads_part
from tests.support.call import Call

pytestmark = pytest.mark.spark


@pytest.fixture
def java(tmp_path) -> str:
    return make_java(tmp_path)


def clustered(lake: Lake, java: str, weather: Weather = lambda _: None, **settings: str) -> Process:
    """Load ``a`` on a cluster of two executors, where tasks are tried again."""
    driver = make_environment(java, **settings)
    return Process(lake.file, "a", lake.aws.url, weather=weather, stall_seconds=15, **driver)


def slaughter(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.exhaustive
def test_killed_python_worker_then_the_same_job_again(lake):
    books = Books(lake, ORDERS)
    with Process(lake.file, "a", lake.aws.url) as process:
        process.gate.at(uploads_part, lambda: slaughter(process.workers()))
        code = process.wait()
    assert code == 75, process.errors
    assert "TIMEOUT: " in process.errors
    assert lake.data() == {}
    assert lake.load("a").status == "done"
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("applied", [False, True], ids=["before a part", "after it"])
@pytest.mark.parametrize("table", TABLES)
def test_killed_python_worker_on_a_cluster(lake, java, table, applied):
    books = Books(lake, table)
    with clustered(lake, java) as process:
        process.gate.at(uploads_part, lambda: slaughter(process.workers()), applied=applied)
        assert process.wait() == 0, process.errors
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("table", TABLES)
def test_killed_executor(lake, java, table):
    """With its Python workers, as when a machine is gone: left behind they would go on for a while."""
    books = Books(lake, table)
    with clustered(lake, java) as process:
        process.gate.at(uploads_part, lambda: slaughter(process.executors() + process.workers()), applied=True)
        assert process.wait() == 0, process.errors
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
def test_retried_task(lake, java):
    books = Books(lake)

    def refuse(call: Call, proceed):
        return call.error(400, "EntityTooSmall", "A part is refused once.") if first(call) else proceed(call)

    refused: list[Call] = []

    def first(call: Call) -> bool:
        if refused or not uploads_part(call):
            return False
        refused.append(call)
        return True

    lake.aws.interceptors.append(refuse)
    with clustered(lake, java) as process:
        assert process.wait() == 0, process.errors
    assert len(refused) == 1
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
def test_speculative_task(lake, java):
    books = Books(lake, ORDERS)
    late = once(lambda call: uploads_part(call) and call.key.endswith("00000.gzip.parquet"), Fault.STALL)
    with clustered(lake, java, late, **SPECULATION) as process:
        assert process.wait() == 0, process.errors
    # A stalled part is sent again by its own task; only another one begins a second upload.
    begun = [call.key for call in process.gate.calls if creates_upload(call)]
    assert len(begun) > len(set(begun))
    assert books.audit(again=["a"]).left_uploads == {}
