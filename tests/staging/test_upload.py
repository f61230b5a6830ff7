"""Uploads against the embedded AWS, and against a client object where its calls have to be watched."""

import threading
import time
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.errors import BucketNotFoundError, LakeError, S3AccessDeniedError, SpecInvalidError, StagedLostError
from lakewriter.spec.access import Access
from lakewriter.spec.specification import MIB, Limits
from lakewriter.staging.upload import MAX_PARTS, StagedUpload
from tests.staging.plans import ACCESS
from tests.support.server import StrictAws

KEY = "lake/file"
METADATA = {"lakewriter-load": "crm/j1/a1"}
FIVE = Limits(part_bytes=5 * MIB)


class WatchedClient:
    """Counts what is in flight; a part takes a moment, and part ``fails`` fails."""

    def __init__(self, *, fails: int = 0, seconds: float = 0.01) -> None:
        self.fails = fails
        self.seconds = seconds
        self.lock = threading.Lock()
        self.upload: StagedUpload | None = None
        self.active = self.most_active = self.most_held = self.sent = 0
        self.bodies: dict[int, bytes] = {}
        self.aborted: list[str] = []

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        """The upload ``u1``."""
        return {"UploadId": "u1"}

    def upload_part(self, **call: Any) -> dict[str, str]:
        """Takes its time."""
        assert self.upload is not None
        with self.lock:
            self.active += 1
            self.most_active = max(self.most_active, self.active)
            self.most_held = max(self.most_held, self.upload.tell() - self.sent)
        time.sleep(self.seconds)
        with self.lock:
            self.active -= 1
            self.sent += len(call["Body"])
            self.bodies[call["PartNumber"]] = call["Body"]
        if call["PartNumber"] == self.fails:
            raise OSError("the wire is cut")
        return {"ETag": f"e{call['PartNumber']}"}

    def abort_multipart_upload(self, **call: Any) -> None:
        """Remembers the id."""
        self.aborted.append(call["UploadId"])


def _staged(client: Any, limits: Limits, access: Access = ACCESS) -> StagedUpload:
    return StagedUpload(client, access, KEY, metadata=METADATA, limits=limits)


def _watched(limits: Limits, **settings: Any) -> tuple[WatchedClient, StagedUpload]:
    client = WatchedClient(**settings)
    client.upload = _staged(client, limits)
    return client, client.upload


def _write_parts(upload: StagedUpload, count: int) -> None:
    for _ in range(count):
        upload.write(b"x" * 10)


@pytest.mark.parametrize("piece", [1000, 8192, 4 * MIB, 12 * MIB])
def test_finish_leaves_the_upload_incomplete_until_completed(aws: StrictAws, bucket: str, piece: int) -> None:
    data = bytes(range(256)) * (12 * MIB // 256) + b"end"
    upload = _staged(Clients(ACCESS).s3, FIVE)
    for start in range(0, len(data), piece):
        upload.write(data[start : start + piece])
    upload_id, parts, size, *_ = upload.finish()
    assert (aws.objects(bucket), aws.uploads(bucket), size) == ({}, [(KEY, upload_id)], len(data))

    s3 = aws.client("s3")
    listed = s3.list_parts(Bucket=bucket, Key=KEY, UploadId=upload_id)["Parts"]
    assert [(p["PartNumber"], p["Size"]) for p in listed] == [(1, 5 * MIB), (2, 5 * MIB), (3, 2 * MIB + 3)]
    given = [{"PartNumber": p.number, "ETag": p.etag, "ChecksumCRC32": p.checksum} for p in parts]
    s3.complete_multipart_upload(Bucket=bucket, Key=KEY, UploadId=upload_id, MultipartUpload={"Parts": given})
    assert aws.objects(bucket) == {KEY: data}
    assert s3.head_object(Bucket=bucket, Key=KEY)["Metadata"] == METADATA


@pytest.mark.parametrize(("endpoint", "sums"), [(None, ["CRC32"] * 2), ("the server's", [None] * 2)])
def test_checksums_only_where_the_store_is_aws(
    aws: StrictAws, bucket: str, endpoint: str | None, sums: list[str | None]
) -> None:
    access = Access(bucket=bucket, region="us-east-1", endpoint=aws.url if endpoint else None)
    upload = _staged(Clients(access).s3, FIVE, access)
    upload.write(b"data")
    parts = upload.finish().parts
    # The CRC32 of b"data", big endian, in base64 (zlib.crc32 gives 0xADF3F363).
    assert [part.checksum for part in parts] == ["rfPzYw==" if sums[0] else None]
    calls = [call for call, _ in aws.history if call.bucket == bucket]
    assert [
        call.headers.get("x-amz-checksum-algorithm") or call.headers.get("x-amz-sdk-checksum-algorithm")
        for call in calls
    ] == sums


def test_write_equal_parts() -> None:
    client, upload = _watched(Limits(part_bytes=10))
    for length in (3, 25, 0, 1, 11, 2):
        upload.write(b"x" * length)
    upload_id, parts, size, *_ = upload.finish()
    assert [len(client.bodies[number]) for number in sorted(client.bodies)] == [10, 10, 10, 10, 2]
    assert all(type(body) is bytes for body in client.bodies.values())
    assert (upload_id, [(p.number, p.etag) for p in parts], size) == ("u1", [(n, f"e{n}") for n in range(1, 6)], 42)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_write_waits_for_room(parallelism: int) -> None:
    client, upload = _watched(Limits(part_bytes=1000, upload_parallelism=parallelism))
    for _ in range(200):
        upload.write(b"x" * 100)
    upload.finish()
    assert client.most_active == parallelism
    # In flight, and one being filled or waiting for room.
    assert client.most_held <= (parallelism + 1) * 1000


def test_write_too_many_parts() -> None:
    _, upload = _watched(Limits(part_bytes=1, upload_parallelism=4), seconds=0)
    upload.write(b"x" * MAX_PARTS)
    with pytest.raises(SpecInvalidError, match=r"s3://acme-lake/lake/file would need more than 10000 parts of 1 bytes"):
        upload.write(b"x")
    upload.abandon(ValueError())


def test_a_failed_part_is_raised_as_it_is() -> None:
    client, upload = _watched(Limits(part_bytes=10, upload_parallelism=2), fails=2)
    with pytest.raises(OSError, match="the wire is cut") as caught:
        _write_parts(upload, 20)
    upload.abandon(caught.value)
    assert (client.aborted, len(client.bodies) < 20) == (["u1"], True)


def test_a_failed_part_is_explained(aws: StrictAws, bucket: str) -> None:
    aws.fail(lambda call: call.query.get("partNumber") == "1", status=403, code="AccessDenied", message="KMS says no")
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(b"x")
    with pytest.raises(S3AccessDeniedError) as caught:
        upload.finish()
    assert caught.value.message == "s3:PutObject on s3://acme-lake/lake/file was denied (AccessDenied: KMS says no)."
    upload.abandon(caught.value)
    assert aws.uploads(bucket) == []


def test_an_upload_that_somebody_aborted(aws: StrictAws, bucket: str) -> None:
    """As another attempt at the same load does."""
    s3 = aws.client("s3")
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(bytes(5 * MIB))
    upload_id = s3.list_multipart_uploads(Bucket=bucket)["Uploads"][0]["UploadId"]
    while not s3.list_parts(Bucket=bucket, Key=KEY, UploadId=upload_id).get("Parts"):
        time.sleep(0.01)
    s3.abort_multipart_upload(Bucket=bucket, Key=KEY, UploadId=upload_id)
    upload.write(bytes(5 * MIB))
    with pytest.raises(StagedLostError, match="another attempt at this load") as raised:
        upload.finish()
    assert (raised.value.exit_code, raised.value.transient) == (75, True)


def test_no_bucket(aws: StrictAws) -> None:
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(b"x")
    with pytest.raises(BucketNotFoundError) as caught:
        upload.finish()
    upload.abandon(caught.value)
    assert [action for action, _, _ in aws.calls] == ["s3:PutObject"]


def test_abandon_after_finish(aws: StrictAws, bucket: str) -> None:
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(b"x")
    upload.finish()
    cause = ValueError("another file failed")
    upload.abandon(cause)
    upload.abandon(cause)
    assert (aws.uploads(bucket), getattr(cause, "__notes__", [])) == ([], [])


def test_abandon_before_the_first_part(aws: StrictAws, bucket: str) -> None:
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(b"x")
    upload.abandon(ValueError())
    assert aws.calls == []


def test_abandon_that_fails_is_a_note(aws: StrictAws, bucket: str) -> None:
    aws.deny("s3:AbortMultipartUpload")
    upload = _staged(Clients(ACCESS).s3, FIVE)
    upload.write(b"x")
    upload.finish()
    cause = LakeError.__subclasses__()[0]("first")
    upload.abandon(cause)
    assert "of s3://acme-lake/lake/file was not aborted (AccessDenied:" in cause.__notes__[0]
