"""Loads of Iceberg tables killed with SIGKILL at each point of docs/failures.md; then the same job id again."""

import pytest

from tests.iceberg.commits import strays
from tests.iceberg.tables import SCHEMA, IcebergLake
from tests.load.lakes import BUCKET, completes, table, uploads_part
from tests.support.call import Call

pytestmark = pytest.mark.spark

EVENTS = "id,at\n" + "".join(f"{number},{number}\n" for number in range(10))
KILLED = -9


def writes(ending: str):
    """A PutObject with this ending."""
    return lambda call: call.method == "PUT" and call.key.endswith(ending)


def calls(action: str):
    """A call of Glue."""
    return lambda call: call.action == action


def manifest(call: Call) -> bool:
    """A PutObject of a manifest or of a list of them."""
    return call.method == "PUT" and call.key.endswith(".avro")


POINTS = [
    # where a load is killed: the matching call, how many of them pass before, the phase left behind
    ("before the database", calls("glue:CreateDatabase"), 0, None),
    ("before the table", calls("glue:CreateTable"), 0, None),
    ("while staging", uploads_part, 0, None),
    ("intent written, state not", writes("/state.json"), 1, None),
    ("while completing", completes, 1, "intended"),
    ("before the manifest list", manifest, 1, "uploaded"),
    ("before the commit", calls("glue:UpdateTable"), 0, "uploaded"),
    ("after the commit, before the report", writes(".report.json"), 0, "uploaded"),
    ("report written, state not", writes("/state.json"), 3, "uploaded"),
]


@pytest.fixture
def events(lake: IcebergLake) -> IcebergLake:
    """A table that a load writes in two files."""
    lake.csv("events.csv", EVENTS)
    view = table("e", "events.csv")["read"]
    read = {"sql": "SELECT /*+ REPARTITION(2) */ * FROM e", "views": {"e": view}}
    lake.write({"table": "events", "schema": "public", "read": read, "cursor": "at"})
    return lake


@pytest.mark.parametrize(("match", "after", "phase"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
def test_killed_then_the_same_job_again(events, match, after, phase):
    assert events.killed("a", match, after=after) == KILLED
    pending = events.control(f"{SCHEMA}.events").state.read().pending
    assert (pending and pending.phase) == phase
    assert events.load("a").status == "done"
    read = events.scan("events").to_pylist()
    assert sorted(row["id"] for row in read) == list(range(10))
    assert sorted(row["_supa_index"] for row in read) == list(range(1, 11))
    assert len(events.table("events").snapshots()) == 1
    assert strays(events.aws, events.table("events")) == set()
    assert not events.aws.uploads(BUCKET)
    state = events.control(f"{SCHEMA}.events").state.read()
    assert (state.pending, state.committed, state.cursor.text, dict(state.running)) == (None, 1, "9", {})


def test_killed_in_an_evolution_then_the_same_job_again(events):
    events.load("a")
    events.csv("events.csv", EVENTS.replace("id,at", "id,at,more").replace("\n", ",x\n").replace("more,x", "more"))
    assert events.killed("b", calls("glue:UpdateTable")) == KILLED
    before = strays(events.aws, events.table("events"))
    assert len(before) == 1
    events.csv("events.csv", "id,at,more\n10,10,x\n")
    assert events.load("b").status == "done"
    assert events.scan("events").num_rows == 11
    assert strays(events.aws, events.table("events")) == set()


def test_killed_then_the_next_load(events):
    assert events.killed("a", calls("glue:UpdateTable")) == KILLED
    events.csv("events.csv", EVENTS + "10,10\n")
    assert events.load("b").status == "done"
    read = events.scan("events").to_pylist()
    assert sorted((row["id"], row["_supa_job_id"]) for row in read) == [
        *((number, "a") for number in range(10)),
        (10, "b"),
    ]
    assert strays(events.aws, events.table("events")) == set()
