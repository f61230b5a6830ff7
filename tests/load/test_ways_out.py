"""verify, abandon, reset and the clearing away of old control objects, on whole loads."""

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.retention import sweep
from lakewriter.operate.repair import abandon
from lakewriter.operate.verification import verify
from tests.load.lakes import BUCKET, Lake, completes, table

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
ID = f"{SCHEMA}.events"
EVENTS = "id,at\n1,5\n2,7\n"
KEY = f"data/production/{SCHEMA}/events/a/part-a-00000.gzip.parquet"


@pytest.fixture
def events(lake: Lake) -> Lake:
    lake.write(table("events", lake.csv("events.csv", EVENTS), cursor="at"))
    return lake


def compared(lake: Lake, job_id: str):
    found = verify({ID: lake.control(ID)}, job_id, Clients(lake.spec.access))
    return [(difference.code, difference.message) for difference in found.differences]


def gone(client):
    client.delete_object(Bucket=BUCKET, Key=KEY)


def replaced(client):
    client.put_object(Bucket=BUCKET, Key=KEY, Body=b"other")


@pytest.mark.parametrize(
    ("harm", "code", "said"),
    [(gone, "STAGED_LOST", "the object is gone"), (replaced, "KEY_EXISTS", "written by 'another writer'")],
)
def test_verify_finds_what_happened_to_an_object(events, harm, code, said):
    events.load("a")
    assert compared(events, "a") == []
    harm(events.aws.client("s3"))
    assert compared(events, "a") == [(code, f"s3://{BUCKET}/{KEY}: {'it was ' * ('written' in said)}{said}.")]


def test_verify_finds_what_the_catalog_lost(events):
    events.load("a")
    events.aws.client("glue").delete_table(DatabaseName=SCHEMA, Name="events")
    ((code, message),) = compared(events, "a")
    assert (code, "the table is not there" in message) == ("COMMIT_UNKNOWN", True)


@pytest.mark.exhaustive
def test_abandon_undoes_what_no_catalog_has_heard_of(events):
    assert events.killed("a", completes) == -9
    done = abandon({ID: events.control(ID)}, "a", "disk full", Clients(events.spec.access))
    assert done[ID].startswith("undone: nothing of its 1 file is visible")
    assert (events.data(), events.aws.uploads(BUCKET)) == ({}, [])
    state = events.control(ID).state.read()
    assert (state.pending, state.committed, state.cursor) == (None, 0, None)
    assert [(reset.what, reset.reason) for reset in state.resets] == [("load a abandoned (intended)", "disk full")]


def test_abandon_closes_what_is_visible(events):
    events.aws.deny("glue:CreateTable")
    events.load("a")
    done = abandon({ID: events.control(ID)}, "a", "no permission to be had", Clients(events.spec.access))
    assert done[ID].startswith("closed as it is: 1 object with 2 rows left visible")
    state = events.control(ID).state.read()
    assert (state.pending, state.committed, state.cursor.text, list(events.data())) == (
        None,
        1,
        "7",
        [KEY.removeprefix("data/production/")],
    )
    assert events.load("a").tables[0].status == "already_done"


def test_reset_reads_again(events):
    events.load("a")
    arguments = ["reset", str(events.file), "events", "--cursor", "5", "--reason", "late rows"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stdout) == (0, f"{ID}: cursor set to 5, was 7\n")
    assert events.load("b").tables[0].rows == 1


@pytest.mark.parametrize("arguments", [["--cursor", "soon"], ["--cursor", "1.5"]])
def test_reset_to_what_is_no_cursor(events, arguments):
    events.load("a")
    result = CliRunner().invoke(main, ["reset", str(events.file), "events", *arguments, "--reason", "r"])
    assert (result.exit_code, result.stderr.startswith("SPEC_INVALID: cursor")) == (2, True)


def test_reset_overtakes_a_running_load(events):
    def progress(_table: object, step: str, _detail: str) -> None:
        if step == "committing":
            CliRunner().invoke(main, ["reset", str(events.file), "events", "--no-cursor", "--reason", "r"])

    assert events.load("a", progress=progress).tables[0].code == "CONCURRENT_LOAD"
    assert events.data() == {}


def test_old_control_objects_are_cleared_away(events):
    events.load("a")
    events.load("b")
    control, keep = events.control(ID), timedelta(days=30)
    control.write_once(control.keys.run("left"), {})
    root = "data/production/_lakewriter/flights/loads/"

    def loads() -> set[str]:
        return {k.removeprefix(root).split("/")[0] for k in events.aws.objects(BUCKET) if k.startswith(root)}

    assert sweep(control, datetime.now(UTC), keep) == 0
    assert loads() == {"a", "b"}
    assert control.keys.run("left") in events.aws.objects(BUCKET)
    assert sweep(control, datetime.now(UTC) + timedelta(days=31), keep) > 0
    assert loads() == set()
    assert control.keys.run("left") not in events.aws.objects(BUCKET)
    assert len(events.data()) == 1
