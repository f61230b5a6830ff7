"""Loads killed with SIGKILL at each point of docs/failures.md; then the same job id again, or the next load."""

import pytest

from tests.load.lakes import BUCKET, Lake, completes, table, uploads_part

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
EVENTS = "id,at\n" + "".join(f"{number},{number}\n" for number in range(10))
KILLED = -9


def writes(ending: str):
    """A PutObject of the control object with this ending."""
    return lambda call: call.method == "PUT" and call.key.endswith(ending)


POINTS = [
    # where a load is killed: the matching call, how many of them pass before, the phase left behind
    ("before begin", writes("/begin.json"), 0, None),
    ("before it is registered", writes("/state.json"), 0, None),
    ("while staging", uploads_part, 0, None),
    ("intent written, state not", writes("/state.json"), 1, None),
    ("while completing", completes, 1, "intended"),
    ("before the catalog", lambda call: call.action == "glue:CreateTable", 0, "uploaded"),
    ("before the partition", lambda call: call.action == "glue:BatchCreatePartition", 0, "uploaded"),
    ("before the report", writes(".report.json"), 0, "uploaded"),
    ("report written, state not", writes("/state.json"), 3, "uploaded"),
]


@pytest.fixture
def events(lake: Lake) -> Lake:
    """A table that a load writes in two files."""
    (lake.folder / "events").mkdir()
    for half in (0, 1):
        lines = EVENTS.splitlines()[1:][half::2]
        (lake.folder / "events" / f"{half}.csv").write_text("id,at\n" + "\n".join(lines) + "\n", "utf-8")
    read = {"sql": "SELECT /*+ REPARTITION(2) */ * FROM e", "views": {"e": table("e", "events")["read"]}}
    lake.write({"table": "events", "schema": "public", "read": read, "cursor": "at"})
    return lake


def by_job(lake: Lake) -> list[tuple[object, ...]]:
    query = "SELECT _supa_job_id, count(*), count(DISTINCT id), max(_supa_index) FROM t GROUP BY ALL ORDER BY ALL"
    return lake.rows(query, f"{SCHEMA}/events")


@pytest.mark.parametrize(("match", "after", "phase"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
def test_killed_then_the_same_job_again(events, match, after, phase):
    assert events.killed("a", match, after=after) == KILLED
    pending = events.control(f"{SCHEMA}.events").state.read().pending
    assert (pending and pending.phase) == phase
    assert events.load("a").status == "done"
    assert by_job(events) == [("a", 10, 10, 10)]
    assert len(events.data()) == 2
    assert not events.aws.uploads(BUCKET)
    state = events.control(f"{SCHEMA}.events").state.read()
    assert (state.pending, state.committed, state.cursor.text, dict(state.running)) == (None, 1, "9", {})


@pytest.mark.parametrize(("match", "after", "rows"), [(uploads_part, 1, {"b": 10}), (completes, 1, {"a": 10})])
def test_killed_then_the_next_load(events, match, after, rows):
    assert events.killed("a", match, after=after) == KILLED
    assert events.load("b").status == "done"
    assert by_job(events) == [(job, count, count, count) for job, count in rows.items()]


def test_stranger_takes_a_key_while_the_load_is_pending(events):
    assert events.killed("a", completes) == KILLED
    key = sorted(key for key, _ in events.aws.uploads(BUCKET))[1]
    events.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    assert events.load("b").status == "done"
    assert events.aws.objects(BUCKET)[key] == b"a stranger's"
    jobs = {name.split("/")[2] for name in events.data()}
    assert (jobs, len(events.data())) == ({"a", "b"}, 3)
    assert not events.aws.uploads(BUCKET)
