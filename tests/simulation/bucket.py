"""One bucket as S3 keeps it, with its conditional writes, and the client through which a process calls it."""

import base64
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from itertools import islice
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.simulation.stores import AWS, Store
from tests.simulation.weather import Network, refused

METHODS: Final = {
    "GetObject": "GET", "HeadObject": "HEAD", "ListObjectsV2": "GET", "ListMultipartUploads": "GET",
    "PutObject": "PUT", "UploadPart": "PUT", "CreateMultipartUpload": "POST", "CompleteMultipartUpload": "POST",
    "AbortMultipartUpload": "DELETE", "DeleteObject": "DELETE", "DeleteObjects": "POST",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """An object that is there; ``upload_id`` is that of the upload it was."""

    body: bytes
    etag: str
    modified: datetime
    metadata: Mapping[str, str]
    upload_id: str = ""

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.body)


@dataclass
class Upload:
    """A multipart upload that is not completed."""

    key: str
    metadata: Mapping[str, str]
    began: int
    parts: dict[int, tuple[str, bytes]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """One object written (``after``) or deleted (``None``), and what was there before."""

    at: datetime
    key: str
    before: Stored | None
    after: Stored | None


class Bucket:
    """Those who ``watch`` are told of every change, the moment it is made; ``watch_abort`` of an upload and who
    aborts it. ``page`` is how many keys a listing gives at once."""

    def __init__(self, clock: Callable[[], datetime], page: int, store: Store = AWS) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self.watch: list[Callable[[Change], None]] = []
        self.watch_abort: Callable[[str, Upload, str], None] = lambda *_: None
        self.page, self.store = page, store
        self.made = 0
        self.clock = clock

    def put(self, key: str, body: bytes, metadata: Mapping[str, str], upload_id: str = "", etag: str = "") -> Stored:
        """The object, whatever was there before."""
        stored = Stored(
            body,
            etag or f'"{hashlib.md5(body).hexdigest()}"',
            self.clock().replace(microsecond=0),
            metadata,
            upload_id,
        )
        before = self.objects.get(key)
        self.objects[key] = stored
        self._tell(Change(self.clock(), key, before, stored))
        return stored

    def delete(self, key: str) -> None:
        """Nothing at the key any more."""
        before = self.objects.pop(key, None)
        if before is not None:
            self._tell(Change(self.clock(), key, before, None))

    def _tell(self, change: Change) -> None:
        for told in self.watch:
            told(change)

    def list_keys(self, prefix: str, after: str) -> Iterator[str]:
        """The keys that begin with ``prefix`` and come after another one, in their order."""
        rank = self.store.sort_key
        last = rank(after)
        return iter(sorted((key for key in self.objects if key.startswith(prefix) and rank(key) > last), key=rank))

    def begin(self, key: str, metadata: Mapping[str, str]) -> str:
        """A new upload's id."""
        self.made += 1
        name = f"upload-{self.made:04d}"
        self.uploads[name] = Upload(key, metadata, self.made)
        return name


class S3:
    """A process's client; ``requests`` counts what it sends, ``note`` takes the ``Date`` of each answer. Only what the
    product calls is there."""

    def __init__(self, bucket: Bucket, network: Network, requests: Counter[str], note: Callable[[str], None]) -> None:
        self._bucket, self._network, self._requests, self._note = bucket, network, requests, note

    def _call(self, operation: str, what: str, apply: Callable[[], Any]) -> Any:
        try:
            answer = self._network.call(operation, what, apply, self._count)
        except ClientError:
            self._note(self._read_date())
            raise
        self._note(self._read_date())
        return answer

    def _read_date(self) -> str:
        """The store's own time, whatever the caller's clock says."""
        return format_datetime(self._bucket.clock().replace(microsecond=0), usegmt=True)

    def _missing(self, hidden: str, told: str) -> tuple[int, str]:
        status = self._bucket.store.missing
        return status, hidden if status == 403 else told

    def _count(self, operation: str) -> None:
        self._requests[METHODS[operation]] += 1

    def get_object(self, *, Bucket: str, Key: str, Range: str = "") -> Any:  # noqa: N803
        """A refusal for what is not there."""

        def apply() -> Any:
            stored = self._bucket.objects.get(Key)
            if stored is None:
                raise refused("GetObject", *self._missing("AccessDenied", "NoSuchKey"))
            # From a place on, up to another one, or so many of the last ones.
            first, _, last = Range.removeprefix("bytes=").rpartition("-")
            body = stored.body if not Range else stored.body[-int(last) :] if not first else stored.body[int(first) :]
            body = body[: int(last) - int(first) + 1] if first and last else body
            answer = _describe(stored) | {"Body": io.BytesIO(body), "ContentLength": len(body)}
            return answer | ({"ContentRange": f"bytes */{len(stored.body)}"} if Range else {})

        return self._call("GetObject", Key, apply)

    def head_object(self, *, Bucket: str, Key: str, **_: Any) -> Any:  # noqa: N803
        """As ``get_object``, without the content."""

        def apply() -> Any:
            stored = self._bucket.objects.get(Key)
            if stored is None:
                raise refused("HeadObject", *self._missing("403", "404"))
            return _describe(stored)

        return self._call("HeadObject", Key, apply)

    def put_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        Body: bytes,  # noqa: N803
        IfNoneMatch: str = "",  # noqa: N803
        IfMatch: str = "",  # noqa: N803
        Metadata: Mapping[str, str] | None = None,  # noqa: N803
        **_: Any,
    ) -> Any:
        """Conditions as S3 has them."""

        def apply() -> Any:
            there = self._bucket.objects.get(Key)
            if IfNoneMatch and there is not None:
                raise refused("PutObject", 412, "PreconditionFailed")
            if IfMatch and there is None:
                raise refused("PutObject", *self._bucket.store.unmatched)
            if IfMatch and there is not None and there.etag != IfMatch:
                raise refused("PutObject", 412, "PreconditionFailed")
            return {"ETag": self._bucket.put(Key, bytes(Body), dict(Metadata or {})).etag}

        return self._call("PutObject", Key, apply)

    def delete_object(self, *, Bucket: str, Key: str, IfMatch: str = "") -> Any:  # noqa: N803
        """Success for what is gone already."""

        def apply() -> Any:
            there = self._bucket.objects.get(Key)
            if IfMatch and there is not None and there.etag != IfMatch:
                raise refused("DeleteObject", 412, "PreconditionFailed")
            if IfMatch and there is None and (answer := self._bucket.store.undeleted) is not None:
                raise refused("DeleteObject", *answer)
            self._bucket.delete(Key)
            return {}

        return self._call("DeleteObject", Key, apply)

    def delete_objects(self, *, Bucket: str, Delete: Any) -> Any:  # noqa: N803
        """Success for what is gone already; quiet about what it deleted."""

        def apply() -> Any:
            for wanted in Delete["Objects"]:
                self._bucket.delete(wanted["Key"])
            return {}

        return self._call("DeleteObjects", Delete["Objects"][0]["Key"], apply)

    def list_objects_v2(
        self,
        *,
        Bucket: str,  # noqa: N803
        Prefix: str = "",  # noqa: N803
        MaxKeys: int = 1000,  # noqa: N803
        StartAfter: str = "",  # noqa: N803
        Delimiter: str = "",  # noqa: N803
        **_: Any,
    ) -> Any:
        """One page; smaller ones than S3's, so that much can happen between two."""

        def apply() -> Any:
            most = min(MaxKeys, self._bucket.page)
            keys = self._bucket.list_keys(Prefix, StartAfter)
            if Delimiter:
                within = {key.removeprefix(Prefix).partition(Delimiter) for key in keys}
                folders = sorted({f"{Prefix}{name}{Delimiter}" for name, found, _ in within if found})
                # More of them than there is room for on a page are more pipelines than there are.
                return {"CommonPrefixes": [{"Prefix": name} for name in folders], "IsTruncated": False}
            shown = [(key, self._bucket.objects[key]) for key in islice(keys, most)]
            contents = [
                {"Key": key, "ETag": own.etag, "LastModified": own.modified, "Size": own.size} for key, own in shown
            ]
            return (
                {"Contents": contents, "IsTruncated": next(keys, None) is not None}
                if contents
                else {"IsTruncated": False}
            )

        return self._call("ListObjectsV2", Prefix, apply)

    def list_multipart_uploads(self, *, Bucket: str, Prefix: str = "", after: int = 0) -> Any:  # noqa: N803
        """One page, in the order in which they were begun."""

        def apply() -> Any:
            found = [
                (own.began, {"Key": own.key, "UploadId": name})
                for name, own in self._bucket.uploads.items()
                if own.key.startswith(Prefix) and own.began > after
            ]
            page = sorted(found, key=lambda each: each[0])[: self._bucket.page]
            more = len(found) > len(page)
            return {"Uploads": [entry for _, entry in page], "IsTruncated": more, "last": page[-1][0] if page else 0}

        return self._call("ListMultipartUploads", Prefix, apply)

    def create_multipart_upload(self, *, Bucket: str, Key: str, Metadata: Mapping[str, str], **_: Any) -> Any:  # noqa: N803
        """An upload that nobody sees."""
        return self._call(
            "CreateMultipartUpload",
            Key,
            lambda: {"Bucket": Bucket, "Key": Key, "UploadId": self._bucket.begin(Key, dict(Metadata))},
        )

    def upload_part(self, *, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: bytes, **_: Any) -> Any:  # noqa: N803
        """A part of it, replaced when it is sent again."""

        def apply() -> Any:
            upload = self._bucket.uploads.get(UploadId)
            if upload is None or upload.key != Key:
                raise refused("UploadPart", 404, "NoSuchUpload")
            etag = f'"{hashlib.md5(Body).hexdigest()}"'
            upload.parts[PartNumber] = (etag, bytes(Body))
            return {"ETag": etag, "ChecksumCRC32": _checksum(Body)}

        return self._call("UploadPart", f"{Key} {UploadId}", apply)

    def complete_multipart_upload(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        UploadId: str,  # noqa: N803
        MultipartUpload: Mapping[str, Any],  # noqa: N803
        IfNoneMatch: str = "",  # noqa: N803
    ) -> Any:
        """The object, unless its key is taken. The same call again finds the key taken, or no upload."""

        def apply() -> Any:
            upload, there = self._bucket.uploads.get(UploadId), self._bucket.objects.get(Key)
            if upload is None and there is not None and self._bucket.store.repeats:
                return {"Bucket": Bucket, "Key": Key, "ETag": there.etag}
            if IfNoneMatch and there is not None:
                raise refused("CompleteMultipartUpload", 412, "PreconditionFailed")
            if upload is None or upload.key != Key:
                raise refused("CompleteMultipartUpload", 404, "NoSuchUpload")
            named = {part["PartNumber"]: part["ETag"] for part in MultipartUpload["Parts"]}
            if named != {number: etag for number, (etag, _) in upload.parts.items()}:
                raise refused("CompleteMultipartUpload", 400, "InvalidPart")
            body = b"".join(upload.parts[number][1] for number in sorted(named))
            del self._bucket.uploads[UploadId]
            digests = b"".join(bytes.fromhex(named[number].strip('"')) for number in sorted(named))
            etag = f'"{hashlib.md5(digests).hexdigest()}-{len(named)}"'
            stored = self._bucket.put(Key, body, upload.metadata, UploadId, etag)
            return {"Bucket": Bucket, "Key": Key, "ETag": stored.etag}

        return self._call("CompleteMultipartUpload", f"{Key} {UploadId}", apply)

    def abort_multipart_upload(self, *, Bucket: str, Key: str, UploadId: str) -> Any:  # noqa: N803
        """NoSuchUpload for one that is gone."""
        # Of the process that calls; when the call comes late it may be another's turn.
        pipeline = self._network.caller.partition("#")[0]

        def apply() -> Any:
            upload = self._bucket.uploads.get(UploadId)
            if upload is None or upload.key != Key:
                if (answer := self._bucket.store.unaborted) is None:
                    return {}
                raise refused("AbortMultipartUpload", *answer)
            self._bucket.watch_abort(UploadId, upload, pipeline)
            del self._bucket.uploads[UploadId]
            return {}

        return self._call("AbortMultipartUpload", f"{Key} {UploadId}", apply)

    def get_paginator(self, operation: str) -> "Paginator":
        """Of the two listings."""
        return Paginator(self, operation)


class Paginator:
    """Pages that are asked for one by one."""

    def __init__(self, client: S3, operation: str) -> None:
        self._client, self._operation = client, operation

    def paginate(self, *, PaginationConfig: Mapping[str, int] | None = None, **arguments: Any) -> Iterator[Any]:  # noqa: N803
        """Each page is a call."""
        if self._operation == "list_multipart_uploads":
            return self._uploads(arguments)
        return self._objects(arguments, (PaginationConfig or {}).get("MaxItems"))

    def _objects(self, arguments: Mapping[str, Any], most: int | None) -> Iterator[Any]:
        after, left = "", most
        while True:
            page = self._client.list_objects_v2(**arguments, MaxKeys=1000 if left is None else left, StartAfter=after)
            yield page
            found = page.get("Contents", [])
            left = None if left is None else left - len(found)
            if not page["IsTruncated"] or left == 0:
                return
            after = found[-1]["Key"]

    def _uploads(self, arguments: Mapping[str, Any]) -> Iterator[Any]:
        after = 0
        while True:
            page = self._client.list_multipart_uploads(**arguments, after=after)
            yield page
            if not page["IsTruncated"]:
                return
            after = page["last"]


def _describe(stored: Stored) -> dict[str, Any]:
    return {
        "ContentLength": len(stored.body),
        "ETag": stored.etag,
        "Metadata": dict(stored.metadata),
        "LastModified": stored.modified,
    }


def _checksum(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body).digest()[:4]).decode()
