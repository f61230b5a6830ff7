"""Outages that a continuous run outlasts, and the failures that end a table after some restarts."""

import shutil
import time

import pytest

from lakewriter.aws import Clients
from lakewriter.errors import (
    CheckpointLostError,
    CommitUnknownError,
    EndpointUnreachableError,
    NoAnswerError,
    SourceFailedError,
    SourceUnreachableError,
    WorkerDiedError,
)
from lakewriter.operate.upkeep import BETWEEN_BATCHES
from lakewriter.run import continuous_table
from lakewriter.run.continuous import run_continuously
from tests.load.materializations import Materialization, Running, binding

SCHEMA = {"schema": {"properties": {"id": {"type": "integer"}}}}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(continuous_table, "restart_pause", lambda restarts: 0.05)
    monkeypatch.setattr("lakewriter.run.continuous.POLL_SECONDS", 0.01)


ENDS = [
    # what starting the query raises, how often before something else, the restarts it is worth
    (EndpointUnreachableError("a"), 20, 20), (NoAnswerError("a"), 20, 20), (CommitUnknownError("a"), 20, 20),
    (SourceUnreachableError("a"), 20, 20), (WorkerDiedError("a"), 20, 6), (SourceFailedError("a"), 20, 0),
    (CheckpointLostError("a"), 20, 0),
]  # fmt: skip


@pytest.mark.parametrize(("error", "times", "restarts"), ENDS, ids=lambda each: getattr(each, "code", str(each)))
def test_outages_have_no_limit(tmp_path, aws, bucket, quick, error, times, restarts):
    lake = Materialization(tmp_path, aws, None)  # type: ignore[arg-type]
    lake.write(binding("changes", "in", primary_key=["id"], collection=SCHEMA), checkpoint="checkpoint")
    run, asked = Running(lake.spec, None), []  # type: ignore[arg-type]

    def spark():
        asked.append(1)
        raise error if len(asked) <= times else CheckpointLostError("the end")

    ended, said = run_continuously(
        run.spec,
        clients=Clients(run.spec.access),
        spark=spark,
        watch=run,
        stop=run.stop,
        upkeep=BETWEEN_BATCHES,
    )
    assert (ended.state, len(asked)) == ("failed", restarts + 1)
    assert str(said).endswith("the end" if restarts == times else "a")


@pytest.mark.spark
def test_a_missing_folder_is_waited_for_and_a_broken_checkpoint_is_named(tmp_path, aws, bucket, spark, quick):
    lake = Materialization(tmp_path, aws, spark)
    lake.write(binding("changes", "in", primary_key=["id"], collection=SCHEMA), checkpoint="checkpoint")
    with lake.running() as run:
        _until(run, "SOURCE_UNREACHABLE: table 'changes': its source is not there yet: [PATH_NOT_FOUND] Path does not ")
        lake.documents("in/0.jsonl", [{"id": 0}])
        lake.until(0, "changes")
        offsets = next((tmp_path / "checkpoint").rglob("offsets"))
        offsets.rename(tmp_path / "kept")
        offsets.write_text("in the way", "utf-8")
        lake.documents("in/1.jsonl", [{"id": 1}])
        _until(run, f"TIMEOUT: table 'changes': the checkpoint '{offsets.parent}' cannot be read or written: ")
        offsets.unlink()
        shutil.copytree(tmp_path / "kept", offsets)
        lake.until(1, "changes")
    assert lake.rows("SELECT id FROM t ORDER BY id", "changes") == [(0,), (1,)]


def _until(run, said, seconds=60):
    end = time.monotonic() + seconds
    while not any(step.startswith("restarting: ") and said in step for step in run.steps):
        assert time.monotonic() < end, run.steps
        time.sleep(0.05)
