"""What the embedded AWS is asked of overlapping, dying and forgetful loads, asked of servers that are not Amazon's.

Tests of other folders are collected here once more, on fixtures that lead to a server. None needs Spark: sources are
messages and Parquet files, and tasks run in the process. Iceberg tables stay with the embedded AWS, since what they
are asked for, such as a load that was rolled back, is up to a catalog.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import reuse_clients
from lakewriter.commit.retention import sweep
from lakewriter.naming import LOAD_METADATA
from lakewriter.receipt import Receipt
from lakewriter.spec.access import Access
from tests.commit import test_attempt
from tests.commit.edits import Edit
from tests.faults.process import KILLED
from tests.faults.test_recoverers import cases, overtaken
from tests.interop.conftest import RealSyncLake
from tests.interop.servers import BUCKET, RealS3
from tests.load import test_overlapping_loads as overlapping
from tests.load import test_shared_paths as shared
from tests.load import test_streams_and_loads as turns
from tests.load import test_sync_ends as ends
from tests.load.lakes import completes
from tests.load.syncs import TWO_FILES, bulky, catalog, read, record, state, stream
from tests.operate import test_rebuild as rebuild
from tests.support.call import Call
from tests.support.local_tasks import local_session
from tests.support.server import StrictAws

SERVERS = ["seaweedfs", pytest.param("versitygw", marks=pytest.mark.exhaustive)]
pytestmark = pytest.mark.parametrize("server", SERVERS, indirect=True)

USERS = "public.users"


@pytest.fixture
def aws(aws: StrictAws, server: RealS3, monkeypatch: pytest.MonkeyPatch) -> RealS3:
    """The server, which those calls go to, too, that name no endpoint."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    return server


@pytest.fixture
def bucket(aws: RealS3) -> str:
    """The server's."""
    return BUCKET


@pytest.fixture
def lake_in(tmp_path: Path, aws: RealS3) -> Callable[[str], RealSyncLake]:
    """A pipeline in a folder of its own, which reads two files in two tasks."""

    def made(name: str) -> RealSyncLake:
        (tmp_path / name).mkdir(exist_ok=True)
        # It answers what a lake asks of it.
        return RealSyncLake(tmp_path / name, cast(StrictAws, aws), local_session(2))

    return made


@pytest.fixture
def lake(lake_in: Callable[[str], RealSyncLake]) -> RealSyncLake:
    """A pipeline."""
    return lake_in("p")


@pytest.fixture
def syncs(lake: RealSyncLake) -> RealSyncLake:
    """The same under its other name."""
    return lake


@pytest.fixture
def turning(tmp_path: Path, aws: RealS3, monkeypatch: pytest.MonkeyPatch) -> turns.Table:
    """A table of loads and batches without rows."""
    return turns.Table(tmp_path, monkeypatch, aws.url)


@pytest.fixture
def table(tmp_path: Path, aws: RealS3, monkeypatch: pytest.MonkeyPatch) -> rebuild.Table:
    """A table of loads of which it is said what they leave."""
    return rebuild.Table(tmp_path, monkeypatch, aws.url)


pipelines = shared.pipelines


def at_night(test: Callable[..., None]) -> Any:
    """The same test, which only scripts/nightly runs here."""

    @wraps(test)
    def same(*arguments: Any, **fixtures: Any) -> None:
        test(*arguments, **fixtures)

    marks = [*getattr(test, "pytestmark", ()), pytest.mark.exhaustive]
    same.__dict__["pytestmark"] = marks
    return same


test_connectors_of_two_syncs_at_once = at_night(overlapping.test_connectors_of_two_syncs_at_once)
test_messages_with_a_state_twice_at_once = overlapping.test_messages_with_a_state_twice_at_once
test_full_refreshes_of_messages_at_once = overlapping.test_full_refreshes_of_messages_at_once

test_a_source_that_dies_replaces_nothing = ends.test_files
test_a_connector_that_dies_replaces_nothing = at_night(ends.test_connectors)

test_loads_and_batches_take_turns = at_night(turns.test_turns)


def test_a_stream_after_a_load_does_not_load_it_again(turning: turns.Table) -> None:
    steps = ("load", "batch 0", "adopt", "batch 0", "batch 1")
    assert [turning.do(step) for step in steps] == [None, "CHECKPOINT_LOST", None, None, None]


def test_a_load_that_registers_after_anothers_commit_is_later(lake: RealSyncLake) -> None:
    pq.write_table(pa.table({"user_id": [1]}), lake.folder / "users.parquet")
    users = {"table": "users", "schema": "public", "read": {"format": "parquet", "path": "users.parquet"}}
    lake.write(overlapping.PARQUET, tables=[users])
    progress, ran = overlapping.before_registering(lambda: lake.load("b").status)
    assert (lake.load("a", progress=progress).status, ran[1]) == ("done", "done")
    heads = {key: lake.aws.client("s3").head_object(Bucket=BUCKET, Key=key)["Metadata"] for key in lake.data()}
    jobs = {head[LOAD_METADATA].split("/")[1]: read(key, lake.data()[key]) for key, head in heads.items()}
    assert jobs["b"][0]["_airbyte_extracted_at"] < jobs["a"][0]["_airbyte_extracted_at"]


test_the_state_as_it_was = rebuild.test_the_state_as_it_was
test_a_pending_load_of_a_lost_state = at_night(rebuild.test_a_pending_load)
test_a_state_that_says_nothing_is_replaced = at_night(rebuild.test_a_state_that_says_nothing_is_replaced)
test_commands_stop_at_a_lost_state = at_night(rebuild.test_commands_stop_at_a_lost_state)

test_a_pending_load_whose_intent_is_gone = at_night(rebuild.test_a_pending_load_whose_intent_is_gone)


def test_the_sweep_keeps_a_pending_intent_of_another_table(table: rebuild.Table) -> None:
    table.load("a")
    table.load("b", dies="settle")
    keep = timedelta(days=30)
    other = Control(S3Store(table.clients), table.control.keys, "public.others")
    other.state.move(Edit(committed=1))
    assert sweep(other, datetime.now(UTC) + 2 * keep, keep) > 0
    assert table.load("c") is None
    assert table.control.state.read().committed == 3


def messages_in_two_files(lake: RealSyncLake) -> None:
    lake.messages(*(record("users", bulky(number)) for number in range(5)), name="1.jsonl")
    lake.messages(*(record("users", bulky(number)) for number in range(5, 10)), state("users", 9), name="2.jsonl")
    source = {"messages": ["1.jsonl", "2.jsonl"], "catalog": catalog(stream("users"))}
    lake.write(overlapping.PARQUET, source=source, limits=TWO_FILES)


FORWARD = ["complete", "complete", "uploaded", "report", "closed"]
BACKWARD = ["abort", "abort", "delete", "reason", "withdrawn"]


@pytest.mark.parametrize(("number", "applied"), cases(FORWARD, 2))
def test_two_recoverers_publish_one_load(
    lake: RealSyncLake, monkeypatch: pytest.MonkeyPatch, number: int, applied: bool
) -> None:
    messages_in_two_files(lake)
    assert lake.killed("a", completes) == KILLED
    overtaken(lake, USERS, monkeypatch, number, applied)
    assert (overlapping.ids(lake), lake.aws.uploads(BUCKET)) == (list(range(10)), [])
    assert lake.load("a").tables[0].status == "already_done"


@pytest.mark.parametrize(("number", "applied"), cases(BACKWARD, 2))
def test_two_recoverers_withdraw_one_load(
    lake: RealSyncLake, monkeypatch: pytest.MonkeyPatch, number: int, applied: bool
) -> None:
    messages_in_two_files(lake)
    assert lake.killed("a", completes, after=1) == KILLED
    ((key, _),) = lake.aws.uploads(BUCKET)
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    assert lake.killed("a", aborts) == KILLED
    overtaken(lake, USERS, monkeypatch, number, applied)
    assert (lake.data(), lake.aws.uploads(BUCKET)) == ({key: b"a stranger's"}, [])
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert (lake.load("a").status, overlapping.ids(lake)) == ("done", list(range(10)))


def aborts(call: Call) -> bool:
    """AbortMultipartUpload."""
    return call.method == "DELETE" and "uploadId" in call.query


class OnServer:
    """The place of rivals that is the server's bucket."""

    def __init__(self, url: str) -> None:
        self._clients = Clients(Access(bucket=BUCKET, region="us-east-1", endpoint=url))
        self.open_clients = reuse_clients(self._clients)

    def store(self) -> S3Store:
        return S3Store(self._clients)

    def stage(self, key: str, load: str) -> Receipt:
        where = {"Bucket": BUCKET, "Key": key}
        upload = self._clients.s3.create_multipart_upload(**where, Metadata={"lakewriter-load": load})["UploadId"]
        part = self._clients.s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"x")
        return test_attempt.a_receipt(key, upload, part["ETag"]).model_copy(update={"bucket": BUCKET})

    @property
    def staged(self) -> list[str]:
        return [upload.key for upload in self.store().list_uploads("")]

    @property
    def data(self) -> list[str]:
        return [entry.key for entry in self.store().list_entries("s/")]


@pytest.fixture
def rivals(aws: RealS3) -> test_attempt.Rivals:
    """Two attempts at one table."""
    return test_attempt.Rivals(OnServer(aws.url))


test_an_attempt_whose_job_another_has_finished_leaves_nothing_staged = (
    test_attempt.test_an_attempt_whose_job_another_has_finished_leaves_nothing_staged
)
test_an_overtaken_attempt_leaves_what_the_other_has_staged_alone = (
    test_attempt.test_an_overtaken_attempt_leaves_what_the_other_has_staged_alone
)
test_an_attempt_that_is_bound_gives_nothing_up = test_attempt.test_an_attempt_that_is_bound_gives_nothing_up

test_two_pipelines_in_one_directory = at_night(shared.test_two_pipelines)
test_objects_of_another_pipeline_are_never_retired = shared.test_objects_of_another_pipeline_are_never_retired
test_directory_is_handed_over = shared.test_directory_is_handed_over
