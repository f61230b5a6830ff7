"""Loads killed with SIGKILL at each point of docs/failures.md; then the same job id again, or the next load instead."""

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.books import EVENTS, SCHEMA, Books
from tests.faults.process import KILLED, Process
from tests.load.lakes import BUCKET, PREFIX, calls, completes, uploads_part, writes

pytestmark = pytest.mark.spark


POINTS = {
    # where a load is killed: the matching call, how many of them pass before, the phase left behind; then, of a next
    # load that comes instead: whether it commits the killed one, how many uploads that leaves to the lifecycle rule
    "before begin": (writes("/begin.json"), 0, None, False, 0),
    "before it is registered": (writes("/state.json"), 0, None, False, 0),
    "while staging": (uploads_part, 1, None, False, 2),
    "before the intent is written": (writes(f"{EVENTS}.json"), 0, None, False, 2),
    "intent written, state not": (writes("/state.json"), 1, None, False, 2),
    "state intended": (completes, 0, "intended", True, 0),
    "while completing": (completes, 1, "intended", True, 0),
    "completed, state not": (writes("/state.json"), 2, "intended", True, 0),
    "before the catalog": (calls("glue:CreateDatabase"), 0, "uploaded", True, 0),
    "between database and table": (calls("glue:CreateTable"), 0, "uploaded", True, 0),
    "before the partition": (calls("glue:BatchCreatePartition"), 0, "uploaded", True, 0),
    "before the report": (writes(".report.json"), 0, "uploaded", True, 0),
    "report written, state not": (writes("/state.json"), 3, "uploaded", True, 0),
    "state closed": (writes("/outcome.json"), 0, None, True, 0),
}
SAMPLE = ("intent written, state not", "while completing")


def sampled(columns: int, *sample: str) -> list[Any]:
    """The points as parameters, those that are no ``sample`` for scripts/nightly alone."""
    marks = {point: () if point in sample else (pytest.mark.exhaustive,) for point in POINTS}
    return [pytest.param(*values[:columns], id=point, marks=marks[point]) for point, values in POINTS.items()]


def killed(books: Books, job: str, match, after: int, phase: str | None) -> None:
    assert books.lake.killed(job, match, after=after) == KILLED
    pending = books.controls[EVENTS].state.read().pending
    assert (pending and pending.phase) == phase
    books.glance()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("match", "after", "phase"), sampled(3, *SAMPLE))
def test_killed_then_the_same_job_again(events, match, after, phase):
    killed(events, "a", match, after, phase)
    assert events.lake.load("a").status == "done"
    assert events.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after", "phase", "committed", "staged"), sampled(5, "state intended"))
def test_killed_then_the_next_load_instead(events, match, after, phase, committed, staged):
    killed(events, "a", match, after, phase)
    events.grow()
    assert events.lake.load("b").status == "done"
    found = events.audit(again=["b"], left=["a"])
    assert found.committed[EVENTS] == (["b", "a"] if committed else ["b"])
    assert found.left_uploads["a"] == staged


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [0, 1])
def test_killed_while_a_row_group_is_written(lake, after):
    """A row group of 20 MB compressed: its first parts are uploaded while its later pages are compressed."""
    digests = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(300_000)]
    source = lake.folder / "digests.parquet"
    pq.write_table(pa.table({"id": range(300_000), "digest": digests, "backwards": digests[::-1]}), source)
    lake.write({"table": "digests", "schema": "public", "read": {"format": "parquet", "path": str(source)}})
    assert lake.killed("a", uploads_part, after=after) == KILLED
    assert (lake.data(), len(lake.aws.uploads(BUCKET))) == ({}, 1)
    assert lake.load("a").status == "done"
    assert not lake.aws.uploads(BUCKET)
    ((_, body),) = lake.data().items()
    found = pq.read_table(pa.BufferReader(body), page_checksum_verification=True)
    assert found.column("digest").to_pylist() == digests
    assert found.column("backwards").to_pylist() == digests[::-1]
    assert found.column("_supa_index").to_pylist() == list(range(1, 300_001))


WITHDRAWING = {
    "before an abort": (calls("s3:AbortMultipartUpload"), 0),
    "uploads aborted, objects there": (calls("s3:DeleteObject"), 0),
    "withdrawn, reason not kept": (lambda call: call.method == "PUT" and "/failed/" in call.key, 0),
    "reason kept, state not": (writes("/state.json"), 1),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after"), WITHDRAWING.values(), ids=WITHDRAWING)
@pytest.mark.parametrize("job", ["a", "b"])
def test_killed_while_aborting(events, match, after, job):
    events.lake.cut_off("a", completes, after=1)
    ((key, _),) = events.lake.aws.uploads(BUCKET)
    client = events.lake.aws.client("s3")
    client.put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    with Process(events.lake.file, "a", events.lake.aws.url).killed_at(match, after=after) as process:
        assert process.wait() == KILLED
    assert events.controls[EVENTS].state.read().pending.phase == "aborting"
    assert events.lake.load(job).tables[0].code == ("KEY_EXISTS" if job == "a" else None)
    assert events.lake.aws.objects(BUCKET)[key] == b"a stranger's"
    client.delete_object(Bucket=BUCKET, Key=key)
    assert events.audit(again={job} - {"a"}, left=["a"]).left_uploads == {}
    assert events.lake.load("a").status == "done"
    events.audit(again={"a", job})


@pytest.mark.exhaustive
def test_stranger_takes_a_key_while_the_load_is_pending(events):
    events.lake.cut_off("a", completes)
    key = events.lake.aws.uploads(BUCKET)[1][0]
    events.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    assert events.lake.load("b").status == "done"
    assert events.lake.aws.objects(BUCKET)[key] == b"a stranger's"
    jobs = [name.removeprefix(f"{PREFIX}/").split("/")[2] for name in events.lake.data()]
    assert sorted(jobs) == ["a", "b", "b"]
    assert not events.lake.aws.uploads(BUCKET)
    assert key.startswith(f"{PREFIX}/{SCHEMA}/{EVENTS}/a/")


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [0, 1])
def test_killed_while_giving_up(events, after):
    with Process(events.lake.file, "late", events.lake.aws.url) as late:
        late.stalled_at(writes(f"{EVENTS}.json"))
        late.killed_at(calls("s3:AbortMultipartUpload"), after=after)
        late.wait_for_stall()
        assert events.lake.load("early").status == "done"
        late.go_on()
        assert late.wait() == KILLED
    events.grow()
    assert events.lake.load("late").status == "done"
    assert events.audit(again=["early", "late"]).left_uploads == {}
