"""Commits that race, and commits whose answer is lost: each load is one snapshot, and nothing else stays."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakewriter.errors import CommitUnknownError, PendingUnrecoverableError, SchemaIncompatibleError
from tests.iceberg.commits import Table, strays
from tests.support.call import Call
from tests.support.narrow import need
from tests.support.sample import in_turn
from tests.support.sign_ins import SIGN_INS


@pytest.fixture(params=["glue", *in_turn(*SIGN_INS)])
def table(request, aws, bucket):
    """A table of Glue, and of a REST catalog of each sign-in."""
    if request.param == "glue":
        yield Table(aws)
        return
    with SIGN_INS[request.param](aws, bucket) as catalog:
        yield Table(aws, catalog)


def rows(job: str, **more: object) -> pa.Table:
    return pa.table({"id": [1, 2], "job": [job] * 2} | {name: [value] * 2 for name, value in more.items()})


def loads(table: Table) -> list[str]:
    return [str(need(snapshot.summary)["lakewriter.job-id"]) for snapshot in table.seen.snapshots()]


def updates(call: Call) -> bool:
    return call.action == "glue:UpdateTable"


@pytest.mark.exhaustive
def test_ten_writers_at_once(aws, table):
    jobs = [f"j{number}" for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda job: table.intent(job, rows(job)), jobs))
        # Ten pipelines: in one, the state lets them commit in turn.
        found = [each.model_copy(update={"pipeline": each.job_id}) for each in found]
        list(pool.map(lambda each: table.publish(each, 1), found))
    assert sorted(loads(table)) == jobs
    assert sorted(table.seen.scan().to_arrow()["job"].to_pylist()) == sorted(jobs * 2)
    assert strays(aws, table.seen) == set()


def test_two_recoverers_at_once(aws, table):
    found = table.intent("a", rows("a"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: table.publish(each, 1), [found] * 4))
    assert loads(table) == ["a"]
    assert table.seen.scan().to_arrow().num_rows == 2
    assert strays(aws, table.seen) == set()


LOST = [
    # what is dropped after it was applied, and how often: the SDK asks eight times, and its calls meet each other
    (updates, 1),
    (updates, 8),
    (lambda call: call.action == "s3:PutObject" and call.key.endswith(".metadata.json"), 1),
    (lambda call: call.action == "s3:PutObject" and call.key.endswith(".avro"), 1),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("match", "times"), LOST)
def test_lost_answer(aws, bucket, match, times):
    table = Table(aws)
    found = table.intent("a", rows("a"))
    aws.drop_answer(match, times=times)
    table.publish(found, 1)
    assert loads(table) == ["a"]
    assert table.seen.scan().to_arrow().num_rows == 2
    assert strays(aws, table.seen) == set()


def test_refused_again_and_again(aws, bucket, monkeypatch):
    table = Table(aws)
    found = table.intent("a", rows("a"))
    monkeypatch.setattr("lakewriter.commit.iceberg.iceberg_tables.COMMIT_SECONDS", 1.0)
    aws.fail(updates, status=400, code="ConcurrentModificationException", times=1000)
    with pytest.raises(CommitUnknownError):
        table.publish(found, 1)
    aws.interceptors.clear()
    assert strays(aws, table.seen) == {f"s3://{found.files.at_hand[0].bucket}/{found.files.at_hand[0].key}"}
    table.publish(found, 1)
    assert loads(table) == ["a"]


def test_property_outlives_later_loads_and_expired_snapshots(aws, table):
    first = table.intent("a", rows("a"))
    table.publish(first, 1)
    table.publish(table.intent("b", rows("b"), committed=1), 2)
    old = table.seen.snapshots()[0].snapshot_id
    aws.hide_missing = False
    table.seen.maintenance.expire_snapshots().by_id(old).commit()
    table.publish(first, 1)
    assert loads(table) == ["b"]
    assert sorted(table.seen.scan().to_arrow()["job"].to_pylist()) == ["a", "a", "b", "b"]


def test_column_added_by_two_loads_at_once(aws, table):
    table.publish(table.intent("a", rows("a")), 1)
    with ThreadPoolExecutor(2) as pool:
        both = list(
            pool.map(
                lambda extra: table.intent(extra[0], rows(extra[0], **extra[1]), committed=1),
                [("b", {"more": "of b", "b": 1}), ("c", {"c": 1, "more": "of c"})],
            )
        )
    table.publish(both[0], 2)
    table.publish(both[1], 3)
    read = table.seen.scan().to_arrow()
    columns = ("job", "more", "b", "c")
    assert sorted({tuple(row[name] for name in columns) for row in read.to_pylist()}) == [
        ("a", None, None, None),
        ("b", "of b", 1, None),
        ("c", "of c", None, 1),
    ]


def test_a_compaction_in_between(aws, table):
    table.publish(table.intent("a", rows("a")), 1)
    found = table.intent("b", rows("b"), committed=1)
    aws.hide_missing = False
    table.seen.overwrite(table.seen.scan().to_arrow())
    table.publish(found, 2)
    assert sorted(table.seen.scan().to_arrow()["job"].to_pylist()) == ["a", "a", "b", "b"]


def test_table_dropped_and_made_anew(aws, bucket):
    table = Table(aws)
    found = table.intent("a", rows("a"))
    aws.client("glue").delete_table(DatabaseName="db", Name="t")
    with pytest.raises(PendingUnrecoverableError, match="is gone"):
        table.publish(found, 1)
    table.ready("b", rows("b").schema)
    with pytest.raises(PendingUnrecoverableError, match="made anew"):
        table.publish(found, 1)


def test_read_back_tells_what_differs(aws, bucket):
    table = Table(aws)
    found = table.intent("a", rows("a"))
    table.publish(found, 1)
    (receipt,) = found.files.at_hand
    elsewhere = receipt.model_copy(update={"key": "data/production/db/t/data/x"})
    wrong = found.model_copy(update={"receipts": (receipt.model_copy(update={"rows": 3}), elsewhere)})
    with pytest.raises(CommitUnknownError, match="has 2 rows, expected 3") as caught:
        table.publish(wrong, 1)
    assert "data/x is not in the snapshot" in caught.value.message


def test_bounds_prune_files(aws, bucket):
    table = Table(aws)
    for number in (0, 10):
        found = table.intent(f"j{number}", pa.table({"id": [number, number + 1]}), committed=min(number, 1))
        table.publish(found, 1 + min(number, 1))
    assert len(list(table.seen.scan(row_filter="id >= 10").plan_files())) == 1
    assert len(list(table.seen.scan(row_filter="id < 100").plan_files())) == 2


def test_manifests_are_merged(aws, bucket):
    table = Table(aws)
    table.ready("a", rows("a").schema)
    aws.hide_missing = False
    with table.seen.transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
    for number, job in enumerate("abcd"):
        table.publish(table.intent(job, rows(job), committed=number), number + 1)
    assert len(need(table.seen.current_snapshot()).manifests(table.seen.io)) < 4
    assert sorted(table.seen.scan().to_arrow()["job"].to_pylist()) == sorted("aabbccdd")
    assert strays(aws, table.seen) == set()


def test_table_that_others_partitioned(aws, bucket):
    table = Table(aws)
    found = table.intent("a", rows("a"))
    aws.hide_missing = False
    with table.seen.update_spec() as update:
        update.add_identity("job")
    with pytest.raises(PendingUnrecoverableError, match="was partitioned"):
        table.publish(found, 1)
    with pytest.raises(SchemaIncompatibleError, match="is partitioned"):
        table.ready("b", rows("b").schema)
