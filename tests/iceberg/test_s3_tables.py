"""Amazon S3 Tables: tables in buckets that list, delete and mark nothing, and whose service clears up by itself.

Loads as a whole, by each sign-in, are in ``test_commit``, ``test_recovery`` and ``tests.load.test_lakewriter_s3``.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import open_data_store, reuse_clients
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.commit.presence import require_presence
from lakewriter.commit.recover import read_failure, recover
from lakewriter.commit.uploads import delete_own, withdraw
from lakewriter.errors import LoadGoneError, S3AccessDeniedError, StagedLostError
from lakewriter.naming import ControlKeys
from lakewriter.operate.load_objects import compare_objects
from lakewriter.operate.repair import abandon
from lakewriter.receipt import NotedUpload
from lakewriter.records.state import Pending, Running, TableState
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Limits
from lakewriter.staging.returned import make_object_writer
from lakewriter.staging.upload import ApartBucket, StagedUpload
from tests.commit.edits import Edit
from tests.iceberg.commits import Table, strays
from tests.load.lakes import BUCKET
from tests.support.s3_tables import EXPIRED, UNREFERENCED, S3TablesCatalog

ROWS = pa.table({"id": [1, 2]})
KEYS = ControlKeys("data/production", "p")


class Managed:
    """A table of the catalog, and the control objects of its pipeline."""

    def __init__(self, catalog: S3TablesCatalog) -> None:
        self.catalog, self.aws = catalog, catalog.aws
        self.table = Table(catalog.aws, catalog)
        self.clients = self.table.clients
        self.control = Control(S3Store(self.clients), KEYS, "db.t", pause=lambda _: None)
        self.control.abilities = self.table.action.service.abilities
        self.open_clients = reuse_clients(self.clients)

    @property
    def bucket(self) -> str:
        """The table's own."""
        (bucket,) = self.catalog.buckets
        return bucket

    def bind(self, job: str, phase: str, committed: int = 0, since: datetime | None = None):
        """A load whose process died in a phase, its file there."""
        intent = self.table.intent(job, ROWS, committed=committed)
        running = {job: Running(attempt=intent.attempt, since=intent.started, first=intent.started)}
        pending = Pending(job_id=job, attempt=intent.attempt, phase=phase, since=since or intent.started)
        self.control.state.move(Edit(pending=pending, running=running, committed=committed))
        self.control.write_once(KEYS.intent(job, intent.attempt, "db.t"), intent.model_dump_json())
        return intent

    def store(self, intent):
        """The store of a load's files."""
        return open_data_store(self.control.store, intent.catalog, intent.access, self.open_clients)

    def ids(self) -> list[int]:
        return sorted(self.table.seen.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def managed(aws, bucket):
    """A table bucket, and a bucket of ours."""
    with S3TablesCatalog(aws, bucket) as catalog:
        yield Managed(catalog)


def test_a_store_says_what_its_bucket_does(managed):
    """And a table that is not there yet has no bucket."""
    intent = managed.table.intent("a", ROWS)
    store = managed.store(intent)
    assert (intent.bucket, intent.access.bucket) == (managed.bucket, BUCKET)
    assert not any(vars(store.abilities).values())
    assert all(vars(managed.control.store.abilities).values())
    assert managed.table.action.find_bucket("ours") == "ours"
    assert intent.catalog.find_location() == f"s3://{managed.bucket}"


def publish(managed, intent):
    """By a process, after others that are gone."""
    tables = IcebergTables(intent.catalog, managed.clients, intent.load)
    tables.publish(intent, 1)
    tables.read_back(intent)
    return tables.clear_up(intent, gone=True)


def look_for_strays(managed, intent):
    before = managed.table._before("a")
    running = Running(attempt="a2", since=intent.started, first=intent.started)
    before.prepare(ROWS.schema, TableState(running={"a": running}))
    return before.left


def verify(managed, intent):
    publish(managed, intent)
    store = managed.store(intent)
    found = compare_objects(intent, store, managed.clients.at(intent.bucket, store.abilities), lambda _: True)
    return [mismatch.kind.value for mismatch in found]


def look_for_presence(managed, intent):
    publish(managed, intent)
    managed.control.write_once(KEYS.report("a", "db.t"), intent.make_report().model_dump_json())
    managed.control.write_once(KEYS.intent("a", intent.attempt, "db.t"), intent.model_dump_json())
    return require_presence(managed.control, "a", managed.clients)


ANSWERS: list[tuple[Callable[[Managed, Any], Any], Any, bool]] = [
    # what is done about a load whose file is in the table's bucket, what it answers, whether readers see the load
    (publish, (), True),
    (look_for_strays, (), False),
    (lambda managed, intent: tuple(IcebergTables(intent.catalog, managed.clients, "p/r/r").find_changes("p")),
     (0, frozenset(), frozenset()), False),
    (lambda managed, intent: withdraw(managed.store(intent), intent), None, False),
    (lambda managed, intent: delete_own(managed.store(intent), intent), None, False),
    (lambda managed, intent: managed.store(intent).delete_all(list(intent.files.list_keys())), None, False),
    (verify, [], True),
    (look_for_presence, None, True),
]  # fmt: skip


@pytest.mark.parametrize(("act", "answer", "is_seen"), ANSWERS)
def test_each_command_has_its_answer(managed, act, answer, is_seen):
    """None asks the bucket for what it lacks, or takes the file away: what no snapshot names the service clears."""
    intent = managed.table.intent("a", ROWS)
    assert act(managed, intent) == answer
    assert managed.ids() == ([1, 2] if is_seen else [])
    assert managed.catalog.rule.refused == []
    assert set(intent.files.list_keys()) <= set(managed.aws.objects(managed.bucket))
    cleared = managed.catalog.pass_time(UNREFERENCED)
    assert (f"s3://{managed.bucket}/{next(iter(intent.files.list_keys()))}" in cleared) is not is_seen
    assert strays(managed.aws, managed.table.seen) == set()


ENDS = [
    # the phase in which its process died, whether its file was cleared away since, who looks; the phase of the load
    # once it is over: whether readers see it, how many numbers are used up by nothing
    ("uploaded", False, recover, (True, 0)),
    ("uploaded", True, recover, (False, 1)),
    ("intended", True, recover, (False, 0)),
    ("aborting", True, recover, (False, 0)),
    ("uploaded", True, abandon, (False, 1)),
    ("uploaded", False, abandon, (False, 1)),
    ("intended", True, abandon, (False, 0)),
]


@pytest.mark.parametrize(("phase", "is_cleared", "act", "end"), ENDS)
def test_a_pending_load_comes_to_an_end(managed, phase, is_cleared, act, end):
    """Whatever has become of its files: no load is stuck, and the next one goes on."""
    intent = managed.bind("a", phase)
    if is_cleared:
        managed.catalog.pass_time(UNREFERENCED)
    if act is recover:
        recover(managed.control, managed.open_clients)
    else:
        abandon({"db.t": managed.control}, "a", "a drill", managed.clients)
    state = managed.control.state.read()
    is_seen, given_up = end
    assert (state.pending, state.given_up, state.committed) == (None, given_up, is_seen + given_up)
    assert managed.ids() == ([1, 2] if is_seen else [])
    failure = read_failure(managed.control, "a", intent.attempt)
    assert isinstance(failure, StagedLostError) is (act is recover and is_cleared and phase != "aborting")
    managed.bind("b", "uploaded", committed=state.committed)
    recover(managed.control, managed.open_clients)
    assert managed.ids() == sorted([1, 2] * (1 + is_seen))
    assert managed.catalog.rule.refused == []


def heads(managed) -> int:
    return sum(call.method == "HEAD" and call.bucket == managed.bucket for call, _ in managed.aws.history)


@pytest.mark.parametrize(("ago", "asked"), [(timedelta(0), 0), (timedelta(days=2), 1)])
def test_a_load_looks_for_its_own_files_once_they_may_be_gone(managed, ago, asked):
    managed.bind("a", "uploaded", since=datetime.now(UTC) - ago)
    recover(managed.control, managed.open_clients, mine="a1")
    assert (heads(managed), managed.ids()) == (asked, [1, 2])


def test_a_committed_load_is_closed_by_whoever_comes_later(managed):
    """Its files are the table's: they are not looked for."""
    intent = managed.bind("a", "uploaded")
    managed.table.publish(intent, 1)
    managed.catalog.pass_time(UNREFERENCED)
    before = heads(managed)
    state = recover(managed.control, managed.open_clients)
    assert (state.committed, state.given_up, heads(managed)) == (1, 0, before)
    assert managed.ids() == [1, 2]


def test_another_process_publishes_meanwhile(managed, monkeypatch):
    """Between the look for the files and the giving up: the load is the table's, and nothing is taken back."""
    intent = managed.bind("a", "uploaded")
    (key,) = intent.files.list_keys()
    body = managed.aws.objects(managed.bucket)[key]
    managed.catalog.pass_time(UNREFERENCED)

    def publish_first(*_: object) -> None:
        managed.aws.client("s3").put_object(Bucket=managed.bucket, Key=key, Body=body)
        managed.table.publish(intent, 1)

    monkeypatch.setattr(IcebergTables, "require_changeable", publish_first)
    state = recover(managed.control, managed.open_clients)
    assert (state.pending, state.committed, state.given_up, managed.ids()) == (None, 1, 0, [1, 2])


def test_files_of_a_lost_race_stay(managed):
    """Until the service clears them."""
    intent = managed.table.intent("a", ROWS)
    managed.catalog.fail_commits = 1
    managed.table.publish(intent, 1)
    assert (len(strays(managed.aws, managed.table.seen)), managed.catalog.rule.refused) == (2, [])
    managed.catalog.pass_time(UNREFERENCED)
    assert (strays(managed.aws, managed.table.seen), managed.ids()) == (set(), [1, 2])


GONE = [
    # what S3 answers for the table's metadata file; the error
    (None, LoadGoneError),
    ("s3:GetObject", S3AccessDeniedError),
]


@pytest.mark.parametrize(("denied", "error"), GONE)
def test_metadata_that_is_gone_or_denied(managed, denied, error):
    managed.table.publish(managed.table.intent("a", ROWS), 1)
    (snapshot,) = managed.table.seen.snapshots()
    if denied:
        managed.aws.deny(denied, f"arn:aws:s3:::{managed.bucket}/*")
    else:
        managed.aws.client("s3").delete_object(
            Bucket=managed.bucket, Key=snapshot.manifest_list.removeprefix(f"s3://{managed.bucket}/")
        )
    # A process of its own: one that has read a file does not read it again.
    managed.table.clients = Clients(managed.table.clients.access)
    with pytest.raises(error):
        managed.table.publish(managed.table.intent("b", ROWS, committed=1), 2)
    assert managed.catalog.rule.refused == []


def test_snapshots_expire_between_loads(managed):
    """A load is counted in the table's properties, which stay."""
    for number, job in enumerate("abc"):
        managed.table.publish(managed.table.intent(job, ROWS, committed=number), number + 1)
        managed.catalog.pass_time(EXPIRED)
    assert (managed.ids(), len(managed.table.seen.snapshots())) == ([1, 1, 1, 2, 2, 2], 1)
    assert strays(managed.aws, managed.table.seen) == set()


def stage(managed, attempt: Attempt, *, finished: bool = True) -> StagedUpload:
    """One part, uploaded as a task does it."""
    notes = KEYS.uploads(attempt.job_id, attempt.id, "db.t")
    upload = StagedUpload(
        managed.clients.s3, managed.clients.access, f"data/{attempt.id}.parquet", metadata={"lakewriter-load": "x"},
        limits=Limits(), apart=ApartBucket(managed.bucket, notes), write=make_object_writer(managed.clients),
    )  # fmt: skip
    upload.write(b"x")
    if finished:
        upload.finish()
    return upload


FIRST, SECOND = (Attempt("p", "a", name, datetime.now(UTC), timedelta(days=30)) for name in ("a1", "a2"))
NAMES = Layout("data", Template.parse("part-{job_id}-{seq}-{uuid}.parquet")).bind(
    job_id="a", attempt="a1", start=FIRST.started, table="db.t"
)


def begin(managed, attempt: Attempt) -> None:
    record = attempts.make_begin_record(attempt, {"db.t": NAMES})
    managed.control.write_once(KEYS.begin("a", attempt.id), record)
    attempts.register(managed.control, attempt, managed.open_clients)


def test_a_later_attempt_aborts_what_was_noted(managed):
    managed.table.ready("a", ROWS.schema)
    begin(managed, FIRST)
    stage(managed, FIRST)
    assert len(managed.aws.uploads(managed.bucket)) == 1
    begin(managed, SECOND)
    assert managed.aws.uploads(managed.bucket) == []
    assert (managed.control.left, managed.catalog.rule.refused) == ([], [])


def test_an_upload_that_cannot_be_aborted_is_named(managed):
    """In the bucket that it is in."""
    managed.table.ready("a", ROWS.schema)
    begin(managed, FIRST)
    stage(managed, FIRST)
    managed.aws.deny("s3:AbortMultipartUpload")
    begin(managed, SECOND)
    (note,) = managed.control.left
    assert f"s3:AbortMultipartUpload on s3://{managed.bucket}/data/a1.parquet was denied" in note


def test_an_attempt_aborts_what_it_leaves(managed):
    """Of a task that Spark ran twice the driver has no receipt; and one that gives up leaves none."""
    managed.table.ready("a", ROWS.schema)
    begin(managed, FIRST)
    kept, stray = stage(managed, FIRST), stage(managed, FIRST)
    receipts = managed.table.intent("a", ROWS).files.at_hand
    receipts = [receipts[0].model_copy(update={"upload_id": kept._upload_id, "bucket": managed.bucket})]
    attempts.abort_strays(managed.control, NAMES, receipts, FIRST)
    assert [upload_id for _, upload_id in managed.aws.uploads(managed.bucket)] == [kept._upload_id]
    assert stray._upload_id != kept._upload_id
    attempts.give_up(managed.control, FIRST, NAMES, ())
    assert managed.aws.uploads(managed.bucket) == []
    assert managed.catalog.rule.refused == []


def test_an_upload_is_noted_before_it_has_a_part(managed):
    managed.table.ready("a", ROWS.schema)
    upload = stage(managed, FIRST)
    order = [(call.method, call.bucket == managed.bucket) for call, _ in managed.aws.history
             if {"uploads", "partNumber"} & call.query.keys() or "/uploads/" in call.key]  # fmt: skip
    assert order == [("POST", True), ("PUT", False), ("PUT", True)]
    (key,) = (key for key in managed.aws.objects(BUCKET) if "/uploads/" in key)
    note = NotedUpload.model_validate_json(managed.aws.objects(BUCKET)[key])
    assert (note.bucket, note.key, note.upload_id) == (managed.bucket, "data/a1.parquet", upload._upload_id)
