"""Micro-batches that are merges: rows by docs/merge.md, whatever comes twice, late, or between two batches."""

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.batches import clear_batches
from lakewriter.errors import CatalogFailedError
from lakewriter.operate import compaction
from lakewriter.operate.repair import change_over
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.receipt import Batch
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load
from lakewriter.source.feed import open_feed
from tests.load.lakes import BUCKET, read_quarantine
from tests.load.materializations import UnderPrefix
from tests.load.refreshed import Refreshed
from tests.load.test_compacted import compact
from tests.load.test_merged import DELETED, Killed, make, rows
from tests.support.narrow import need

pytestmark = pytest.mark.spark

QUERY: Final = "0d9e2c1c-5a1e-4c0e-9d0a-3b1f6a1c2d3e"
Row = tuple[int, int, str]


class Batches:
    """The batches of one table: each is a file of rows, and has a number."""

    def __init__(self, users: Refreshed) -> None:
        self.users, self.number = users, -1

    def bring(self, *given: Row) -> None:
        """Load the next batch."""
        self.number += 1
        ids, ats, values = zip(*given, strict=True)
        self.users.write_rows(id=list(ids), at=list(ats), v=list(values))
        assert self.again() == "done"

    def again(self, number: int | None = None) -> str:
        """Load a batch, the last one by default, with the rows that were written last; return how it ended."""
        batch = Batch(QUERY, self.number if number is None else number, None)
        kind, spec = MicroBatch(batch, self.users.state.batch, open_feed), self.users.spec
        report = load(
            spec, job_id=batch.job_id, clients=Clients(spec.access), spark=lambda: self.users.spark, kind=kind
        )
        (table,) = report.tables
        return table.code or table.status

    def bring_and_die(self, *given: Row, at: str = "settle") -> None:
        """Let the process be gone before the batch is published, or before it is bound."""
        with patch.object(attempts, at, side_effect=Killed), pytest.raises(Killed):
            self.bring(*given)

    def compact(self) -> None:
        """Compact the table, as another process does."""
        need(compact(self.users).run())

    def commit_by_another(self, *given: Row) -> None:
        """Append rows by another engine."""
        self.users.aws.hide_missing = False
        table = self.users.iceberg()
        ids, ats, values = zip(*given, strict=True)
        columns = {"id": list(ids), "at": list(ats), "v": list(values), "_deleted": [False] * len(ids)}
        table.append(pa.table(columns, schema=table.schema().as_arrow()))


def deliver_twice(it: Batches) -> None:
    it.bring((1, 1, "a"))
    it.bring((1, 2, "b"), (2, 1, "a"))
    assert it.again() == "already_done"


def bring_a_late_row(it: Batches) -> None:
    it.bring((1, 5, "a"))
    it.bring((1, 3, "late"), (2, 1, "a"))


def delete_and_create_late(it: Batches) -> None:
    it.bring((1, 1, "a"), (9, 1, "x"))
    it.bring((1, 5, "D"))
    it.bring((1, 3, "late"), (2, 1, "a"))
    it.bring((1, 4, "later"))


def delete_and_create_again(it: Batches) -> None:
    it.bring((1, 5, "D"), (2, 1, "a"))
    it.bring((1, 6, "again"))


def bring_a_key_twice(it: Batches) -> None:
    it.bring((1, 1, "a"), (2, 1, "a"))
    it.bring((1, 2, "b"))
    it.bring((1, 3, "c"), (1, 2, "b"))


def close_by_the_same(it: Batches) -> None:
    it.bring((1, 1, "a"))
    it.bring_and_die((1, 2, "b"), (2, 1, "D"))
    assert it.again() == "already_done"
    it.bring((2, 0, "late"))


def close_by_the_next(it: Batches) -> None:
    """As where the checkpoint has noted the batch, whose last object of control is missing."""
    it.bring((1, 1, "a"), (2, 1, "a"))
    it.bring_and_die((1, 5, "D"), (2, 2, "b"))
    it.bring((1, 3, "late"), (3, 1, "a"))


def die_before_it_is_bound(it: Batches) -> None:
    it.bring((1, 1, "a"))
    it.bring_and_die((1, 2, "b"), at="bind")
    assert rows(it.users) == [(1, 1, "a")]
    assert it.again() == "done"


def compact_between(it: Batches) -> None:
    for at in range(5):
        it.bring((1, at, "a"), (2, at, "D"))
    it.compact()
    it.bring((1, 9, "b"), (2, 2, "late"))
    it.compact()
    it.bring((3, 1, "a"))


def commit_between(it: Batches) -> None:
    it.bring((1, 1, "a"), (2, 1, "a"))
    it.commit_by_another((1, 3, "theirs"), (2, 0, "theirs"))
    it.bring((1, 2, "late"), (2, 2, "b"))


def commit_while_one_is_pending(it: Batches) -> None:
    it.bring((1, 1, "a"))
    it.bring_and_die((1, 2, "b"))
    it.commit_by_another((1, 1, "theirs"))
    assert it.again() == "already_done"


def clear_old_objects(it: Batches) -> None:
    it.bring((1, 5, "D"), (2, 1, "a"))
    for at in range(2, 24):
        it.bring((2, at, "a"))
    clear_batches(it.users.pipeline.first_control, Batch(QUERY, it.number))
    it.bring((1, 4, "late"))


def undo_the_last(it: Batches) -> None:
    """Whose rows are in the source no more; so a person lets the run go on."""
    it.bring((1, 1, "a"), (2, 1, "D"))
    it.bring((1, 2, "b"), (2, 5, "D"))
    Undo(it.users.pipeline, Batch(QUERY, 1).job_id, Choices("a test", keep_cursor=True)).run()
    assert it.again(2) == "CHECKPOINT_LOST"
    change_over(it.users.pipeline.first_control, "a test")
    it.number = 1
    it.bring((2, 3, "c"))


# What is done, and what readers see then; the text D deletes.
CASES: Final[dict[str, tuple[Callable[[Batches], None], list[Row]]]] = {
    "a batch is delivered twice": (deliver_twice, [(1, 2, "b"), (2, 1, "a")]),
    "a row is late": (bring_a_late_row, [(1, 5, "a"), (2, 1, "a")]),
    "a delete, then a late create": (delete_and_create_late, [(2, 1, "a"), (9, 1, "x")]),
    "a delete, then a create": (delete_and_create_again, [(1, 6, "again"), (2, 1, "a")]),
    "batches with the same key": (bring_a_key_twice, [(1, 3, "c"), (2, 1, "a")]),
    "a killed batch is closed when it is read again": (close_by_the_same, [(1, 2, "b")]),
    "a killed batch is closed by the next": (close_by_the_next, [(2, 2, "b"), (3, 1, "a")]),
    "a batch dies before it is bound": (die_before_it_is_bound, [(1, 2, "b")]),
    "a compaction between two batches": (compact_between, [(1, 9, "b"), (3, 1, "a")]),
    "a foreign commit between": (commit_between, [(1, 3, "theirs"), (2, 2, "b")]),
    "a foreign commit while one is pending": (commit_while_one_is_pending, [(1, 2, "b")]),
    "objects of old batches are cleared away": (clear_old_objects, [(2, 23, "a")]),
    "the last batch is undone": (undo_the_last, [(1, 1, "a"), (2, 3, "c")]),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES)
def test_batches_are_merged(tmp_path, aws, bucket, spark, case):
    act, expected = CASES[case]
    users = make(tmp_path, aws, **DELETED, spark=spark)
    act(Batches(users))
    assert rows(users) == expected
    assert (users.state.pending, users.state.running, users.differences()) == (None, {}, [])
    assert not aws.uploads(BUCKET)


class Merged(UnderPrefix):
    """Files of lines that arrive, and are merged into an Iceberg table by a continuous run."""

    def describe(self, maintenance: dict[str, Any] | None = None, **changes: Any) -> None:
        destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1",
                       "catalog": "iceberg", "tracking": ["deleted"]}  # fmt: skip
        read = {"format": "json", "path": "in", "options": {"maxFilesPerTrigger": "2"}}
        table = {"table": "users", "schema": "crm", "mode": "merge", "primary_key": ["id"], "order_by": ["at"],
                 "deleted": "v = 'D'", "read": read,
                 "columns": {"id": "bigint", "at": "bigint", "v": "string"}}  # fmt: skip
        content = {"pipeline": "crm", "destination": destination, "checkpoint": "checkpoint", "interval_seconds": 1}
        content |= {"maintenance": maintenance} if maintenance else {}
        self.file.write_text(yaml.safe_dump(content | {"tables": [table | changes]}), "utf-8")

    def arrive(self, name: str, *given: Row) -> None:
        self.documents(f"in/{name}.json", [dict(zip(("id", "at", "v"), row, strict=True)) for row in given])

    def open_table(self) -> Any:
        settings = {"s3.endpoint": self.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", type="glue", **settings).load_table(("crm", "users"))

    def read_rows(self) -> list[Row]:
        found = self.open_table().scan().to_arrow().to_pylist()
        return sorted((row["id"], row["at"], row["v"]) for row in found)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("changes", [{}, {"sort_by": ["v"]}, {"partition_by": ["v"]}], ids=str)
def test_a_run_merges_files(tmp_path, aws, bucket, spark, changes):
    """Of rows with one key and order the one further down stays, in the file that arrived last; a restart repeats
    nothing."""
    lake = Merged(tmp_path, aws, spark)
    lake.describe(**changes, on_bad_row={"action": "quarantine", "at_most": 1.0})
    lake.arrive("z", (1, 1, "z"), (1, 1, "D"), (1, 1, "y"), (2, 1, "a"), (3, 1, "a"))
    with lake.running() as first:
        lake.until(0, "crm.users")
        assert lake.read_rows() == [(1, 1, "y"), (2, 1, "a"), (3, 1, "a")]
        lake.arrive("y", (2, 2, "D"), (3, 0, "late"), (4, 1, "a"))
        lake.until(1, "crm.users")
    lake.documents("in/x.json", [{"id": None, "at": 3, "v": "no key"}])
    with lake.running() as second:
        lake.until(2, "crm.users")
    assert [run.ended[1] for run in (first, second)] == [None, None]
    assert lake.read_rows() == [(1, 1, "y"), (3, 1, "a"), (4, 1, "a")]
    assert len(read_quarantine(aws)) == 1
    done = [each for each in (*first.batches, *second.batches) if each.status == "done"]
    assert [(each.batch, each.merged and each.merged.describe()) for each in done] == [
        (0, "rows merged: 3 inserted, 0 updated, 0 deleted; 0 unchanged, 0 late, 2 superseded"),
        (1, "rows merged: 1 inserted, 0 updated, 1 deleted; 0 unchanged, 1 late, 0 superseded"),
        (2, None),
    ]


CLOCK = "concat(substr(_meta.uuid, 16, 3), substr(_meta.uuid, 10, 4), substr(_meta.uuid, 1, 8))"


def test_documents_of_a_collection(tmp_path, aws, bucket, spark):
    """Merged by the collection's key, in the order of the clock in ``/_meta/uuid``, as ``/_meta/op`` says."""

    def document(key: int, clock: int, v: str, op: str) -> dict[str, Any]:
        uuid = f"{clock & 0xFFFFFFFF:08x}-{clock >> 32 & 0xFFFF:04x}-1{clock >> 48:03x}-8000-000000000000"
        return {"id": key, "v": v, "_meta": {"op": op, "uuid": uuid}}

    now = 0x1F0CAFE12345678
    lake = Merged(tmp_path, aws, spark)
    documents = {
        "format": "json",
        "path": "in",
        "columns": "id bigint, v string, _meta struct<op: string, uuid: string>",
    }
    lake.describe(
        read={
            "sql": f"SELECT id, v, _meta.op AS op, CAST(conv({CLOCK}, 16, 10) AS BIGINT) AS at FROM documents",
            "views": {"documents": documents},
        },
        deleted="op = 'd'",
        columns={},
    )
    lake.documents("in/a.json", [document(1, now, "a", "c"), document(2, now, "a", "c")])
    with lake.running():
        lake.until(0, "crm.users")
        # The highest parts of a clock stand last in a text.
        late = [document(1, now + (1 << 32), "b", "u"), document(1, now + 0xF, "late", "u")]
        lake.documents("in/b.json", [*late, document(2, now + 1, "a", "d")])
        lake.until(1, "crm.users")
    assert lake.read_rows() == [(1, now + (1 << 32), "b")]


@pytest.mark.parametrize(
    ("fails", "step"), [(False, "compacted: "), (True, "note: its upkeep failed; tried again in 1 s: ")]
)
def test_a_run_compacts(tmp_path, aws, bucket, spark, fails, step, monkeypatch):
    """Between its batches, when it is time; a compaction that fails ends nothing."""
    lake = Merged(tmp_path, aws, spark)
    lake.describe({"by": "run", "every": "1 second"})
    if fails:
        monkeypatch.setattr(compaction, "find_groups", raise_unreachable)
    at = 0
    with lake.running() as run:
        while not any(said.startswith(step) for said in run.steps):
            lake.arrive(str(at), (1, at, "a"), (2, at, "D"))
            lake.until(at, "crm.users")
            at += 1
            assert at < 20
        lake.arrive("last", (1, at, "b"), (2, at, "a"), (3, 0, "a"))
        lake.until(at, "crm.users")
    assert run.ended[1] is None
    assert lake.read_rows() == [(1, at, "b"), (2, at, "a"), (3, 0, "a")]
    operations = {snapshot.summary.operation.value for snapshot in lake.open_table().snapshots()}
    assert ("replace" in operations) != fails


def raise_unreachable(*given: Any) -> None:
    raise CatalogFailedError("the catalog does not answer")
