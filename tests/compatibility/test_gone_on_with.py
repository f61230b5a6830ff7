"""Tables and streams that release 0.1.0 left behind, loaded further: see the README beside this file."""

import threading
import time

import pytest

from tests.compatibility.keys_0_1_0 import unknown_keys
from tests.compatibility.released import BUCKET, SAMPLE
from tests.load.materializations import Running
from tests.support.sample import sampled

pytestmark = pytest.mark.spark

NEXT = [
    # The same sets; the rows that readers see after a load c of one row more, how many loads are committed then, how
    # many uploads are left to b, which c cannot know to be dead.
    ("files-staging", [1, 2, 3, 4, 5], 2, 2),
    ("files-intent", [1, 2, 3, 4, 5], 2, 2),
    ("files-intended", [1, 2, 3, 4, 5], 3, 0),
    ("files-uploaded", [1, 2, 3, 4, 5], 3, 0),
    ("files-closing", [1, 2, 3, 4, 5], 3, 0),
    ("files-aborting", [1, 2, 3, 4, 5], 2, 0),
    ("glue-intended", [1, 2, 3, 4, 5], 3, 0),
    ("glue-uploaded", [1, 2, 3, 4, 5], 3, 0),
    ("glue-published", [1, 2, 3, 4, 5], 3, 0),
    ("glue-aborting", [1, 2, 3, 4, 5], 2, 0),
    ("iceberg-glue-intended", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-glue-uploaded", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-glue-published", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-glue-aborting", [1, 2, 3, 4, 5], 2, 0),
    ("iceberg-rest-intended", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-rest-uploaded", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-rest-published", [1, 2, 3, 4, 5], 3, 0),
    ("iceberg-rest-aborting", [1, 2, 3, 4, 5], 2, 0),
    ("airbyte-append-intended", [1, 2, 3, 4, 5], 3, 0),
    ("airbyte-append-uploaded", [1, 2, 3, 4, 5], 3, 0),
    ("airbyte-append-aborting", [1, 2, 5], 2, 0),
    ("airbyte-overwrite-intended", [5], 3, 0),
    ("airbyte-overwrite-uploaded", [5], 3, 0),
    ("airbyte-overwrite-aborting", [5], 2, 0),
    ("estuary-intended", [1, 2, 3, 5], 3, 0),
    ("estuary-uploaded", [1, 2, 3, 5], 3, 0),
    ("estuary-aborting", [1, 2, 5], 2, 0),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "ids", "committed", "uploads"), sampled(NEXT, SAMPLE))
def test_the_next_load(put_back, name, ids, committed, uploads):
    lake = put_back(name)
    lake.remove_strangers()
    lake.more(5)
    (result,) = lake.load("c").tables
    assert (result.status, result.code) == ("done", None), result.message
    assert lake.ids() == ids
    state = lake.control.state.read()
    left = {"b"} if uploads else set()
    assert (state.pending, set(state.running), state.committed, state.last_job) == (None, left, committed, "c")
    assert len(lake.aws.uploads(BUCKET)) == uploads
    assert lake.differences("c") == []
    # A bundle of 0.1.0 can be deployed again after this load.
    assert unknown_keys(lake.aws.objects(BUCKET), lake.control.table_id) == []


def test_partitions_in_glue(put_back):
    lake = put_back("glue-uploaded")
    assert lake.partitions() == ["a"]
    lake.more(5)
    lake.load("c")
    assert lake.partitions() == ["a", "b", "c"]


def test_a_sync_that_ended_early(put_back):
    """The same job id with the whole input: what is behind the last state is added, in the same generation."""
    lake = put_back("airbyte-unfinished")
    assert lake.ids() == [1]
    messages = lake.folder / "m.jsonl"
    lines = messages.read_text("utf-8").splitlines(keepends=True)
    messages.write_text("".join(line for line in lines if "boom" not in line), "utf-8")
    assert lake.load("a").status == "done"
    assert lake.ids() == [1, 2]
    sync = lake.control.state.read().sync
    assert (sync.generation_id, sync.unfinished, len(sync.live)) == (1, False, 2)


CONTINUOUS = [
    # How the run ended after two files, the batches that Spark calls again, those that are new.
    ("continuous-intended", [1], [2]),
    ("continuous-uploaded", [1], [2]),
    ("continuous-stopped", None, [2]),
]


@pytest.mark.parametrize(("name", "again", "new"), CONTINUOUS)
def test_a_continuous_run_from_its_checkpoint(put_back, spark, name, again, new):
    """Each row once, though the batch in hand is called again."""
    lake = put_back(name)
    (lake.folder / "in/2.jsonl").write_text('{"id": 20}\n{"id": 21}\n', "utf-8")
    before = lake.control.state.read().batch
    run = Running(lake.spec, spark)
    thread = threading.Thread(target=run.run)
    thread.start()
    try:
        end = time.monotonic() + 240
        while lake.control.state.read().batch.number < 2 and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        run.stop.set()
        thread.join()
    assert lake.ids() == [0, 1, 10, 11, 20, 21]
    batch = lake.control.state.read().batch
    assert (before.query, batch.query, batch.number) == (batch.query, batch.query, 2)
    assert [each.batch for each in run.batches if each.status == "done"] == new
    # Whether Spark noted the end of the last batch before it was stopped is chance.
    assert again is None or [each.batch for each in run.batches if each.status != "done"] == again
    assert (run.ended[0].state, run.ended[1]) == ("stopped", None)
    assert lake.aws.uploads(BUCKET) == []


def test_a_checkpoint_names_no_module(put_back):
    """What a package is called has nothing to do with going on from its checkpoints."""
    lake = put_back("continuous-stopped")
    files = [path for path in (lake.folder / "checkpoint").rglob("*") if path.is_file()]
    assert len(files) == 7
    texts = [path.read_text("utf-8") for path in files]
    assert not [text for text in texts if "python" in text.lower() or "job" in text or "lakewriter" in text]
