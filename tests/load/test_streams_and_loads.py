"""A table that continuous runs and loads of their own take turns at: neither loads again what the other has."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.resets import begin_backfill
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import change_over
from lakewriter.receipt import Batch
from lakewriter.receipts.parts import Receipts
from lakewriter.records.fold.steps import is_unchanged
from lakewriter.records.state import TableState
from lakewriter.run import load as steps
from lakewriter.run.kinds import MicroBatch, Plain
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.load.lakes import BUCKET

ID = "public.events"
NOTHING: Any = None
"""In place of what no step here asks for."""


class Killed(BaseException):
    """The process is gone."""


class Table:
    """Loads and batches of a table, none of which has a row."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str = "") -> None:
        destination = {"type": "supaflow-s3", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1"}
        destination |= {"custom_s3_endpoint": endpoint} if endpoint else {}
        read = {"format": "json", "path": "in"}
        content = {"pipeline": "p", "destination": destination,
                   "tables": [{"table": "events", "schema": "public", "read": read}]}  # fmt: skip
        file = folder / "lake.yaml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        self.spec, self.loads, self.dies = load_spec(file), 0, False
        self.clients = Clients(self.spec.access)
        self.control = Control(S3Store(self.clients), ControlKeys("", "p"), ID)
        monkeypatch.setattr(steps, "stage_table", self.staged)

    def staged(self, load, _table, _began, _sync, uploads):
        """The intent of a load without rows."""
        if self.dies:
            raise Killed
        uploads.hold(Receipts(), Receipts())
        batch = load.kind.batch
        names: dict[str, Any] = {"table_id": ID, "schema_name": "public", "table": "events", "access": self.spec.access}
        return intent(load.attempt, batch=batch, **names)

    def do(self, step: str) -> str | None:
        """Why a step failed, None where it did not."""
        verb, _, number = step.partition(" ")
        if verb == "adopt":
            change_over(self.control, "a test")
        elif verb == "backfill":
            begin_backfill(self.control, "a test")
        elif verb == "load":
            self.loads += 1
            return self.load(f"load-{self.loads}", None)
        else:
            batch = Batch("q", int(number))
            self.dies = verb == "killed"
            return self.load(batch.job_id, MicroBatch(batch, self.control.state.read().last_batch, NOTHING))
        return None

    def load(self, job_id: str, micro_batch: MicroBatch | None) -> str | None:
        """The code of its failure."""
        try:
            report = steps.run(
                self.spec, job_id=job_id, clients=self.clients, spark=lambda: NOTHING, kind=micro_batch or Plain()
            )
        except Killed:
            self.dies = False
            return None
        return report.tables[0].code


@pytest.fixture
def turning(tmp_path, monkeypatch, aws, bucket) -> Table:
    return Table(tmp_path, monkeypatch)


TURNS = [
    # what is done to the table, how the last step ends
    ("batch 0, batch 1", None),
    ("load, load", None),
    ("load, batch 0", "CHECKPOINT_LOST"),
    ("load, batch 0, adopt, batch 0, batch 1", None),
    ("load, adopt, killed 0, batch 0, batch 1", None),
    ("load, adopt, adopt, batch 0", None),
    ("load, adopt, load, batch 0", "CHECKPOINT_LOST"),
    ("load, backfill, batch 0", None),
    ("load, backfill, killed 0, batch 0", None),
    ("load, backfill, load, batch 0", "CHECKPOINT_LOST"),
    ("load, backfill, batch 3", "CHECKPOINT_LOST"),
    ("batch 0, backfill, batch 1", "CHECKPOINT_LOST"),
    ("batch 0, backfill, batch 0", None),
    ("batch 0, load", "SPEC_INVALID"),
    ("batch 0, load, batch 1", None),
    ("batch 0, adopt, load", None),
    ("batch 0, adopt, batch 1", None),
    ("batch 0, adopt, load, batch 1", "CHECKPOINT_LOST"),
    ("batch 0, adopt, load, adopt, batch 1, load", "SPEC_INVALID"),
    ("batch 0, backfill, load, load", None),
    ("load, adopt, batch 0, load", "SPEC_INVALID"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("steps", "code"), TURNS)
def test_turns(turning, steps, code):
    ends = [turning.do(step) for step in steps.split(", ")]
    assert ends[-1] == code, ends
    assert turning.control.state.read().pending is None


def test_a_load_of_release_0_1_0_between_two_batches(turning):
    turning.do("batch 0")
    turning.control.state.move(Edit(committed=2, last_job="load-1"))
    assert [turning.do(step) for step in ("batch 1", "adopt", "batch 1")] == ["CHECKPOINT_LOST", None, None]


def test_what_is_said(turning):
    turning.do("load")
    run = steps.run(
        turning.spec,
        job_id="j",
        clients=turning.clients,
        spark=lambda: NOTHING,
        kind=MicroBatch(Batch("q", 0), None, NOTHING),
    )
    assert run.tables[0].message == (
        "table public.events: it has 1 load and no batch of a continuous run. A continuous run reads its source from "
        "the checkpoint's place on, or from the beginning, and would load again what that load has. Where its source "
        "brings only what is not there yet, let it go on: lakewriter reset LAKE public.events --go-on --reason WHY. "
        "Or load everything again: lakewriter reset LAKE public.events --backfill --reason WHY."
    )


def test_a_stream_that_begins_while_a_load_stages():
    """Both read the same source, so the load is not bound."""
    before = TableState()
    assert is_unchanged(before, TableState(committed=1), exclusive=False)
    assert not is_unchanged(before, TableState(committed=1, batch=Batch("q", 0)), exclusive=False)
