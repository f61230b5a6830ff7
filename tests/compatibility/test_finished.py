"""Loads that release 0.1.0 left behind at each point, finished or given up: see the README beside this file."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.commit.recover import read_failure
from tests.compatibility.released import BUCKET, SAMPLE
from tests.support.sample import sampled

pytestmark = pytest.mark.spark

UNDONE, CLOSED = "undone", "closed as it is"

SAME = [
    # What 0.1.0 left when load b died, after load a of the rows 1 and 2; the status of b when it is run again, the
    # rows that readers see then.
    ("files-staging", "done", [1, 2, 3, 4]),
    ("files-intent", "done", [1, 2, 3, 4]),
    ("files-intended", "already_done", [1, 2, 3, 4]),
    ("files-uploaded", "already_done", [1, 2, 3, 4]),
    ("files-closing", "already_done", [1, 2, 3, 4]),
    ("files-aborting", "done", [1, 2, 3, 4]),
    ("files-withdrawn", "done", [1, 2, 3, 4]),
    ("glue-intended", "already_done", [1, 2, 3, 4]),
    ("glue-uploaded", "already_done", [1, 2, 3, 4]),
    ("glue-published", "already_done", [1, 2, 3, 4]),
    ("glue-aborting", "done", [1, 2, 3, 4]),
    ("iceberg-glue-intended", "already_done", [1, 2, 3, 4]),
    ("iceberg-glue-uploaded", "already_done", [1, 2, 3, 4]),
    ("iceberg-glue-published", "already_done", [1, 2, 3, 4]),
    ("iceberg-glue-aborting", "done", [1, 2, 3, 4]),
    ("iceberg-rest-intended", "already_done", [1, 2, 3, 4]),
    ("iceberg-rest-uploaded", "already_done", [1, 2, 3, 4]),
    ("iceberg-rest-published", "already_done", [1, 2, 3, 4]),
    ("iceberg-rest-aborting", "done", [1, 2, 3, 4]),
    ("airbyte-append-intended", "already_done", [1, 2, 3, 4]),
    ("airbyte-append-uploaded", "already_done", [1, 2, 3, 4]),
    ("airbyte-append-aborting", "done", [1, 2, 3, 4]),
    ("airbyte-overwrite-intended", "already_done", [3, 4]),
    ("airbyte-overwrite-uploaded", "already_done", [3, 4]),
    ("airbyte-overwrite-aborting", "done", [3, 4]),
    ("estuary-intended", "already_done", [1, 2, 3]),
    ("estuary-uploaded", "already_done", [1, 2, 3]),
    ("estuary-aborting", "done", [1, 2, 3]),
]


@pytest.mark.parametrize(("name", "status", "ids"), sampled(SAME, SAMPLE))
def test_the_same_job_id_again(put_back, name, status, ids):
    lake = put_back(name)
    lake.remove_strangers()
    (result,) = lake.load("b").tables
    assert (result.status, result.code) == (status, None), result.message
    assert lake.ids() == ids
    state = lake.control.state.read()
    assert (state.pending, dict(state.running), state.committed, state.last_job) == (None, {}, 2, "b")
    assert lake.aws.uploads(BUCKET) == []
    assert lake.differences("b") == []


ABANDONED = [
    # The same sets; what abandoning b says, the rows that readers see then, how many loads are committed.
    ("files-staging", "SPEC_INVALID", [1, 2], 1),
    ("files-intended", UNDONE, [1, 2], 1),
    ("files-uploaded", CLOSED, [1, 2, 3, 4], 2),
    ("files-closing", CLOSED, [1, 2, 3, 4], 2),
    ("files-aborting", UNDONE, [1, 2], 1),
    ("glue-intended", UNDONE, [1, 2], 1),
    ("glue-uploaded", CLOSED, [1, 2, 3, 4], 2),
    ("glue-published", CLOSED, [1, 2, 3, 4], 2),
    ("glue-aborting", UNDONE, [1, 2], 1),
    ("iceberg-glue-intended", UNDONE, [1, 2], 1),
    ("iceberg-glue-uploaded", CLOSED, [1, 2], 2),
    ("iceberg-glue-published", CLOSED, [1, 2, 3, 4], 2),
    ("iceberg-glue-aborting", UNDONE, [1, 2], 1),
    ("iceberg-rest-intended", UNDONE, [1, 2], 1),
    ("iceberg-rest-uploaded", CLOSED, [1, 2], 2),
    ("iceberg-rest-published", CLOSED, [1, 2, 3, 4], 2),
    ("iceberg-rest-aborting", UNDONE, [1, 2], 1),
    ("airbyte-append-intended", UNDONE, [1, 2], 1),
    ("airbyte-append-uploaded", CLOSED, [1, 2, 3, 4], 2),
    ("airbyte-append-aborting", UNDONE, [1, 2], 1),
    ("airbyte-overwrite-intended", UNDONE, [1, 2], 1),
    # One of the two objects of a is deleted already, and the other one then.
    ("airbyte-overwrite-uploaded", CLOSED, [3, 4], 2),
    ("airbyte-overwrite-aborting", UNDONE, [1, 2], 1),
    ("estuary-intended", UNDONE, [1, 2], 1),
    ("estuary-uploaded", CLOSED, [1, 2, 3], 2),
    ("estuary-aborting", UNDONE, [1, 2], 1),
]


@pytest.mark.parametrize(("name", "said", "ids", "committed"), sampled(ABANDONED, SAMPLE))
def test_abandoned(put_back, name, said, ids, committed):
    lake = put_back(name)
    assert lake.abandon("b").partition(":")[0] == said
    assert lake.ids() == ids
    state = lake.control.state.read()
    assert (state.pending, state.committed) == (None, committed)
    assert len(lake.aws.uploads(BUCKET)) == (2 if said == "SPEC_INVALID" else 0)
    assert ("a test" in [reset.reason for reset in state.resets]) is (said != "SPEC_INVALID")


STATES = [
    # What a state of 0.1.0 says, as ``status --json`` prints it.
    ("files-intended", {"committed": 1, "last_job": "a", "cursor": {"type": "int32", "text": "7"}, "backfill": 0}),
    ("estuary-uploaded", {"committed": 1, "counter": 1, "backfill": 1, "cursor": None}),
    ("files-withdrawn", {"committed": 1, "pending": None, "running": {}}),
]


@pytest.mark.parametrize(("name", "said"), STATES)
def test_status(put_back, name, said):
    lake = put_back(name)
    result = CliRunner().invoke(main, ["status", str(lake.folder / "lake.yaml"), "--json"])
    (printed,) = json.loads(result.stdout)["tables"].values()
    assert {key: printed[key] for key in said} == said


def test_changes_by_hand_are_kept(put_back):
    lake = put_back("files-intended")
    kept = [("cursor set to 6, was 7", "late rows"), ("cursor set to 7, was 6", "no, they are there")]
    assert [(reset.what, reset.reason) for reset in lake.control.state.read().resets] == kept
    lake.load("b")
    arguments = ["reset", str(lake.folder / "lake.yaml"), "events", "--cursor", "9", "--reason", "4 is wrong"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    found = [(reset.what, reset.reason) for reset in lake.control.state.read().resets]
    assert found == [*kept, ("cursor set to 9, was 11", "4 is wrong")]


def test_why_an_intent_was_withdrawn(put_back):
    lake = put_back("files-withdrawn")
    control = lake.control
    root = f"{control.keys.load('b')}/"
    (attempt,) = {key.removeprefix(root).split("/")[0] for key in lake.aws.objects(BUCKET) if key.startswith(root)}
    error = read_failure(control, "b", attempt)
    assert error is not None
    assert (error.code, "exists already, written by another writer" in error.message) == ("KEY_EXISTS", True)


COMMITTED = ["files-closing", "glue-aborting", "iceberg-glue-intended", "iceberg-rest-uploaded",
             "airbyte-append-intended", "airbyte-overwrite-aborting", "estuary-intended"]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", COMMITTED)
def test_verify_a_load_of_then(put_back, name):
    lake = put_back(name)
    # An aborting load met a foreign object, which verify names as long as it is there.
    lake.remove_strangers()
    assert lake.differences("a") == []
    before = of_load(lake, "a")
    assert lake.load("a").tables[0].status == "already_done"
    assert of_load(lake, "a") == before


def of_load(lake, job_id):
    """The records of a load."""
    root = f"{lake.control.keys.load(job_id)}/"
    return {key: body for key, body in lake.aws.objects(BUCKET).items() if key.startswith(root)}


def test_verify_finds_what_became_of_a_load_of_then(put_back):
    lake = put_back("airbyte-overwrite-uploaded")
    assert lake.differences("a") == ["STAGED_LOST"]
