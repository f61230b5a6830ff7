"""DataFrames whose program is killed, whose tasks are tried again or run twice: every row once."""

import json
import os
import signal

import pytest

from tests.faults.chain import Chain
from tests.faults.cluster import SPECULATION, make_environment, make_java
from tests.faults.gate import Fault, once
from tests.faults.given import WAYS, GivenBooks, GivenLake
from tests.load.lakes import completes, creates_upload, uploads_part

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("LAKEWRITER_FAULTS_KILLS", "50"))
IN_A_CHAIN = 10


@pytest.fixture
def books_of(tmp_path, aws, bucket, spark):
    return lambda way: GivenBooks(GivenLake(tmp_path, aws, spark, way))


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_is_killed_after_binding(books_of, way):
    books = books_of(way)
    with books.process("a").killed_at(completes, after=1) as process:
        process.wait()
    assert books.lake.load("a").status == "done"
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(max(1, KILLS // IN_A_CHAIN)))
def test_random_kills_of_programs(books_of, way, number, record_property):
    chain = Chain(books_of(way), f"given/{number}")
    try:
        chain.play(IN_A_CHAIN)
    except BaseException as error:
        error.add_note(json.dumps(chain.record(), indent=1))
        raise
    for name, value in chain.record().items():
        record_property(name, value)


@pytest.fixture
def java(tmp_path) -> str:
    return make_java(tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_an_executor_that_dies(books_of, java, way):
    books = books_of(way)
    with books.process("a", stall_seconds=15, **make_environment(java)) as process:
        process.gate.at(uploads_part, lambda: kill(process.executors() + process.workers()), applied=True)
        assert process.wait() == 0, process.errors
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_runs_twice_at_once(books_of, java, way):
    books = books_of(way)
    late = once(lambda call: uploads_part(call) and call.key.endswith("00000.gzip.parquet"), Fault.STALL)
    environment = make_environment(java, **SPECULATION)
    with books.process("a", weather=late, stall_seconds=15, **environment) as process:
        assert process.wait() == 0, process.errors
    # A stalled part is sent again by its own task; only another one begins a second upload.
    begun = [call.key for call in process.gate.calls if creates_upload(call)]
    assert len(begun) > len(set(begun))
    assert books.audit(again=["a"]).left_uploads == {}


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
