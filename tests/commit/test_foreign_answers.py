"""A 200 that is not S3's or Glue's own says neither yes nor no, whatever call of a commit it answers."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.glue import GlueTables
from lakewriter.commit.store import Unclear
from lakewriter.commit.uploads import complete_all
from lakewriter.errors import CommitUnknownError, NoAnswerError
from lakewriter.receipt import Part, Receipt
from lakewriter.records.actions import GlueAction
from lakewriter.spec.access import Access
from lakewriter.spec.specification import Limits
from lakewriter.staging.upload import StagedUpload
from tests.commit.intents import intent
from tests.support.call import Answer

PAGE = b"<html><body><p>Please sign in</p></body></html>"
ACCESS = Access(bucket="acme-lake", region="us-east-1")


@pytest.fixture
def clients(aws, bucket, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    # These calls are the tests' own, not those of a load.
    monkeypatch.setattr(aws, "observers", [])
    return Clients(ACCESS)


def answer(aws, match, times=1000):
    """The next calls that match are answered 200 with a page, and are not applied."""
    left = [times]

    def rule(call, proceed):
        if not left[0] or not match(call):
            return proceed(call)
        left[0] -= 1
        return Answer(200, (("Content-Type", "text/html"),)).with_body(PAGE)

    aws.interceptors.append(rule)


def receipt(key: str, upload_id: str, etag: str, size: int) -> Receipt:
    return Receipt(
        bucket="acme-lake",
        key=key,
        upload_id=upload_id,
        parts=(Part(1, etag),),
        checksum_algorithm=None,
        size=size,
        rows=10,
        partition=0,
        seq=0,
        first_index=1,
        engine="none",
        row_groups=1,
        requests={},
    )


RECEIPT = receipt("k", "u", '"e"', 1)
STORE = [
    # the call, what it ends in
    (lambda store: store.create("k", b"x"), Unclear),
    (lambda store: store.replace("k", b"x", '"e"'), Unclear),
    (lambda store: store.complete(RECEIPT), Unclear),
    (lambda store: store.get("k"), NoAnswerError),
    (lambda store: store.find("k"), NoAnswerError),
    (lambda store: store.head("k"), NoAnswerError),
    (lambda store: list(store.list_entries("")), NoAnswerError),
    (lambda store: list(store.list_uploads("")), NoAnswerError),
    (lambda store: store.abort("k", "u"), NoAnswerError),
    (lambda store: store.delete("k"), NoAnswerError),
]


@pytest.mark.parametrize(("call", "ends"), STORE)
def test_store(aws, clients, call, ends):
    answer(aws, lambda _: True)
    with pytest.raises(ends):
        call(S3Store(clients))


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_staging(aws, clients, method):
    """POST begins the upload, PUT brings the part."""
    answer(aws, lambda call: call.method == method)
    upload = StagedUpload(clients.s3, ACCESS, "k", metadata={}, limits=Limits())
    upload.write(b"x")
    with pytest.raises(NoAnswerError):
        upload.finish()


@pytest.mark.parametrize("times", [1, 9, 1000])
def test_completion(aws, clients, times):
    """Three files of ten rows; the completion of one is answered by something else, of all in the end or not."""
    own = Attempt("p", "a", "a1", datetime.now(UTC), timedelta(days=30))
    receipts = []
    for number in range(3):
        key = f"part-{number}"
        upload = StagedUpload(clients.s3, ACCESS, key, metadata={"lakewriter-load": own.load}, limits=Limits())
        upload.write(b"rows")
        upload_id, parts, size, *_ = upload.finish()
        staged = receipt(key, upload_id, parts[0].etag, size)
        receipts.append(staged)
    answer(aws, lambda call: call.key == "part-1" and "uploadId" in call.query, times)
    load = intent(own, tuple(receipts), access=ACCESS)
    if times < 1000:
        assert complete_all(S3Store(clients), load, lambda _: None) is None
        assert sorted(aws.objects("acme-lake")) == ["part-0", "part-1", "part-2"]
    else:
        with pytest.raises(CommitUnknownError, match="part-1: its completion had no clear answer for 30 s"):
            complete_all(S3Store(clients), load, lambda _: None)


GLUE = GlueAction(
    database="d",
    database_location="s3://acme-lake/d",
    table="t",
    location="s3://acme-lake/d/t",
    columns=(("id", "int"),),
    partition_key="p",
    partition="1",
    partition_location="s3://acme-lake/d/t/1",
)


@pytest.mark.parametrize(
    "operation", ["GetDatabase", "CreateDatabase", "GetTable", "CreateTable", "GetPartition", "BatchCreatePartition"]
)
def test_glue(aws, clients, operation):
    own = Attempt("p", "a", "a1", datetime.now(UTC), timedelta(days=30))
    load = intent(own, catalog=GLUE, access=ACCESS)
    tables = GlueTables(clients)
    answer(aws, lambda call: call.action == f"glue:{operation}")
    with pytest.raises(NoAnswerError):
        tables.publish(load, 1)
    aws.interceptors.clear()
    tables.publish(load, 1)
    tables.read_back(load)
