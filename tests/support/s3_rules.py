"""What S3 does and moto does not."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from moto.s3.models import FakeKey, s3_backends

from tests.support.call import Answer, Call

Proceed = Callable[[Call], Answer]

_UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")
_UPLOAD = re.compile(rb"<Upload>.*?</Upload>", re.DOTALL)
_INITIATED = re.compile(rb"<Initiated>[^<]*</Initiated>")


def moto_bucket(name: str) -> Any | None:
    """moto's own bucket, whichever account has it."""
    if name not in s3_backends.bucket_accounts:
        return None
    partition, account = s3_backends.bucket_accounts[name]
    return s3_backends[account][partition].buckets.get(name)


def hide_missing(call: Call, proceed: Proceed) -> Answer:
    """A missing object is 403 to whoever may list a prefix only.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_RequestSyntax (Permissions)
    """
    if call.action != "s3:GetObject" or (bucket := moto_bucket(call.bucket)) is None:
        return proceed(call)
    if not isinstance(bucket.keys.get(call.key), FakeKey):
        # moto takes longer to say so.
        return call.denied()
    answer = proceed(call)
    return call.denied() if answer.status == 404 else answer


def keep_regions(call: Call, proceed: Proceed) -> Answer:
    """A request signed for another region than the bucket's is redirected, and the bucket's region is named."""
    bucket = moto_bucket(call.bucket) if call.service == "s3" and call.action != "s3:CreateBucket" else None
    if bucket is None:
        return proceed(call)
    if call.region and call.region != bucket.region_name:
        message = "The bucket you are attempting to access must be addressed using the specified endpoint."
        answer = call.error(301, "PermanentRedirect", message)
    else:
        answer = proceed(call)
    return answer if call.key else answer.with_header("x-amz-bucket-region", bucket.region_name)


def finish_gone_uploads(call: Call, proceed: Proceed) -> Answer:
    """An upload that is completed or aborted is NoSuchUpload; a conditional completion sees the key first.

    moto fails with a KeyError, and takes a completion repeated with a condition for the first one.
    """
    bucket = moto_bucket(call.bucket)
    upload = call.query.get("uploadId")
    if bucket is None or upload is None or upload in bucket.multiparts or call.method not in {"PUT", "POST"}:
        return proceed(call)
    there = bucket.keys.get(call.key)
    if call.method == "POST" and there is not None:
        if call.headers.get("if-none-match") == "*":
            return call.error(
                412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"
            )
        if there.multipart and there.multipart.id == upload:
            return proceed(call)
    return call.error(404, "NoSuchUpload", "The specified upload does not exist.")


def ignore_conditions(call: Call, proceed: Proceed) -> Answer:
    """A store that knows no conditional writes takes them for plain ones."""
    if call.service == "s3" and call.method in {"PUT", "POST"}:
        kept = {name: value for name, value in call.headers.items() if name not in {"if-none-match", "if-match"}}
        return proceed(replace(call, headers=kept))
    return proceed(call)


class UploadTimes:
    """When each upload was created; moto says 2010 of all."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.started: dict[str, datetime] = {}

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        """Watch uploads being created, correct the listing of them."""
        answer = proceed(call)
        if call.method == "POST" and "uploads" in call.query and (found := _UPLOAD_ID.search(answer.body)):
            self.started[found[1].decode()] = self.clock()
        if call.action == "s3:ListBucketMultipartUploads" and answer.status == 200:
            return answer.with_body(_UPLOAD.sub(self._dated, answer.body))
        return answer

    def _dated(self, upload: re.Match[bytes]) -> bytes:
        found = _UPLOAD_ID.search(upload[0])
        started = self.started.get(found[1].decode()) if found else None
        if started is None:
            return upload[0]
        text = started.strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
        return _INITIATED.sub(b"<Initiated>" + text + b"</Initiated>", upload[0])


class RequesterPays:
    """Buckets that answer only those who say that they pay."""

    def __init__(self) -> None:
        self.buckets: set[str] = set()

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        """Refuse a request that does not say who pays."""
        if call.bucket in self.buckets and call.headers.get("x-amz-request-payer") != "requester":
            return call.denied()
        return proceed(call)
