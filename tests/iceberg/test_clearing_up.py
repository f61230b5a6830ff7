"""Clearing up decides no load's end: what vanishes meanwhile is cleared up, and what cannot be is told."""

import pyarrow as pa
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable
from lakewriter.naming import LOAD_METADATA
from lakewriter.records.state import Running, TableState
from tests.iceberg.commits import Table
from tests.load.lakes import BUCKET
from tests.support.s3_rules import moto_bucket

ROWS = pa.table({"id": [1, 2]})
METADATA = "data/production/db/t/metadata"


@pytest.fixture
def table(aws, bucket):
    return Table(aws)


def publish(table, found, *, gone=True):
    """As whoever recovers the load does it; what could not be cleared up."""
    tables = IcebergTables(found.catalog, table.clients, found.load)
    tables.publish(found, 1)
    tables.read_back(found)
    return tables.clear_up(found, gone=gone)


def heads(call):
    return call.method == "HEAD"


def vanish(aws, key):
    """The object is deleted by somebody else between the listing that shows it and the HEAD of it."""

    def rule(call, proceed):
        held = moto_bucket(BUCKET)
        if heads(call) and call.key == key and held is not None and key in held.keys:
            held.keys.pop(key)
        return proceed(call)

    aws.interceptors.append(rule)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_manifest_that_vanishes_between_list_and_head(aws, table, hidden):
    """S3 answers 403, or 404 to those who may list."""
    aws.hide_missing = hidden
    found = table.intent("a", ROWS)
    own, others = f"{METADATA}/own.avro", f"{METADATA}/others.avro"
    aws.client("s3").put_object(Bucket=BUCKET, Key=others, Body=b"x")
    aws.client("s3").put_object(Bucket=BUCKET, Key=own, Body=b"x", Metadata={LOAD_METADATA: found.load})
    vanish(aws, others)
    assert publish(table, found) == ()
    assert {own, others}.isdisjoint(aws.objects(BUCKET))


REFUSED = [
    # what fails while the dead process's metadata is cleared up, and words of the note
    (heads, "s3:GetObject"),
    (lambda call: call.method == "DELETE", "s3:DeleteObject"),
    (lambda call: call.method == "GET" and call.query.get("prefix", "").startswith(METADATA), "s3:ListBucket"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize(("match", "words"), REFUSED)
def test_what_cannot_be_cleared_up_is_told(aws, table, monkeypatch, match, words, status):
    monkeypatch.setattr("time.sleep", lambda _: None)
    found = table.intent("a", ROWS)
    key = f"{METADATA}/own.avro"
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x", Metadata={LOAD_METADATA: found.load})
    aws.fail(match, status=status, code="AccessDenied" if status == 403 else "InternalError", times=1000)
    (note,) = publish(table, found)
    assert words in note
    assert "takes room only" in note
    aws.interceptors.clear()
    assert table.seen.scan().to_arrow().num_rows == 2


def test_files_of_a_lost_race_that_cannot_be_deleted(aws, table):
    """The first try is refused, and so is the deletion of its files; the second is committed."""
    found = table.intent("a", ROWS)
    aws.fail(lambda call: call.action == "glue:UpdateTable", status=400, code="ConcurrentModificationException")
    aws.deny("s3:DeleteObject")
    notes = publish(table, found, gone=False)
    assert notes
    assert all("s3:DeleteObject" in note for note in notes)
    assert table.seen.scan().to_arrow().num_rows == 2


def test_earlier_attempts_files_that_cannot_be_listed(aws, table):
    """They are looked for before the load begins, which goes on without."""
    found = table.intent("a", ROWS)
    aws.fail(lambda call: call.query.get("prefix", "").startswith(METADATA), status=403, code="AccessDenied", times=9)
    before = IcebergTargetTable(table.action, table.clients, "p/a/a2")
    running = Running(attempt="a2", since=found.started, first=found.started)
    before.prepare(ROWS.schema, TableState(running={"a": running}))
    assert len(before.left) == 1


def test_a_manifest_that_a_slow_process_may_commit_stays(aws, table):
    """It is committed to whatever version of the table is there; a new version of the metadata to none but its own."""
    found = table.intent("a", ROWS)
    manifest, version = f"{METADATA}/slow-m0.avro", f"{METADATA}/00001-slow.metadata.json"
    for key in (manifest, version):
        aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x", Metadata={LOAD_METADATA: found.load})
    before = IcebergTargetTable(table.action, table.clients, "p/a/a2")
    running = Running(attempt="a2", since=found.started, first=found.started)
    before.prepare(ROWS.schema, TableState(running={"a": running}))
    assert {manifest, version}.intersection(aws.objects(BUCKET)) == {manifest}


def test_files_that_cannot_be_counted(aws, table):
    """A load is there whatever becomes of the count of its table's files."""
    table.publish(table.intent("a", ROWS), 1)
    found = table.intent("b", ROWS, committed=1)
    tables = IcebergTables(found.catalog, Clients(table.clients.access), found.load)
    tables.publish(found, 2)
    seen = []

    def rule(call, proceed):
        if call.key.endswith("-m0.avro"):
            seen.append(call)
            # The first is the look at what the load has added.
            return proceed(call) if len(seen) == 1 else call.error(403, "AccessDenied", "Access Denied")
        return proceed(call)

    aws.interceptors.append(rule)
    assert tables.read_back(found) is None
    assert len(seen) > 1
