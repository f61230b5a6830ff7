"""DataFrames whose program is killed, whose tasks are tried again or run twice: every row once."""

import json
import os

import pytest

from tests.faults.chain import Chain
from tests.faults.given import WAYS, GivenBooks, GivenLake
from tests.load.lakes import completes

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("LAKEWRITER_FAULTS_KILLS", "50"))
IN_A_CHAIN = 10


@pytest.fixture
def books_of(tmp_path, aws, bucket, spark):
    return lambda way: GivenBooks(GivenLake(tmp_path, aws, spark, way))


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
