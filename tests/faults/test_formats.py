"""Airbyte's formats under what Parquet tables are put to: killed at each point, and through a bad network."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.formats import FORMATS
from tests.faults.gate import Fault
from tests.faults.process import KILLED, Process
from tests.load.lakes import completes, uploads_part, writes
from tests.load.syncs import BUCKET, TWO_FILES, SyncLake, bulky, catalog, record, state, stream
from tests.support.narrow import need
from tests.support.server import StrictAws

pytestmark = pytest.mark.spark

NUMBERS = list(range(10))
POINTS = {
    # where a load is killed: the matching call, how many of them pass before; there is no catalog to tell
    "before begin": (writes("/begin.json"), 0),
    "before it is registered": (writes("/state.json"), 0),
    "while staging": (uploads_part, 1),
    "before the intent is written": (writes("public.users.json"), 0),
    "intent written, state not": (writes("/state.json"), 1),
    "state intended": (completes, 0),
    "while completing": (completes, 1),
    "completed, state not": (writes("/state.json"), 2),
    "before the report": (writes(".report.json"), 0),
    "report written, state not": (writes("/state.json"), 3),
    "state closed": (writes("/outcome.json"), 0),
}


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> SyncLake:
    """Messages in two files, so that a load writes two."""
    own = SyncLake(tmp_path, aws, spark)
    records = [record("users", bulky(number)) for number in NUMBERS]
    own.messages(*records[:5], name="1.jsonl")
    own.messages(*records[5:], state("users", 9), name="2.jsonl")
    return own


def write(lake: SyncLake, form: str) -> None:
    source = {"messages": ["1.jsonl", "2.jsonl"], "catalog": catalog(stream("users"))}
    lake.write({"format": FORMATS[form]}, source=source, limits=TWO_FILES)


def audit(lake: SyncLake) -> None:
    """All rows once, in several files, and nothing left behind."""
    rows = lake.rows()
    assert sorted(int(row["user_id"]) for row in rows) == NUMBERS
    assert len({row["_airbyte_raw_id"] for row in rows}) == len(NUMBERS)
    assert len(lake.data()) >= 2
    assert not lake.aws.uploads(BUCKET)
    kept = lake.control("public.users").state.read()
    assert (kept.pending, dict(kept.running), need(kept.sync.source).job_id) == (None, {}, "a")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after"), POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("form", FORMATS)
def test_killed_then_the_same_job_again(lake, form, match, after):
    write(lake, form)
    assert lake.killed("a", match, after=after) == KILLED
    assert lake.load("a").status == "done"
    audit(lake)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMATS)
def test_a_fifth_of_all_calls_fails(lake, form):
    write(lake, form)
    rng = random.Random(1)
    weather = lambda _: rng.choice(list(Fault)) if rng.random() < 0.2 else None  # noqa: E731
    with Process(lake.file, "a", lake.aws.url, weather=weather) as process:
        assert process.wait() == 0, process.errors
    assert process.gate.met
    audit(lake)
