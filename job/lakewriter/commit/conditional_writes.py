"""Call S3 for commits: conditional writes (If-None-Match, If-Match), completion of uploads, listings, deletions.

No object counts as missing because of a 404 or 403: with a policy for one prefix S3 answers 403 for a key that is not
there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from lakewriter import aws
from lakewriter.commit.store import Completion, Entry, StoredObject, Unclear, Upload
from lakewriter.errors import LakeError
from lakewriter.naming import GENERATION_METADATA, LOAD_METADATA, TABLE_METADATA
from lakewriter.receipt import Receipt

_MOST_DELETED: Final = 1000
"""Objects that one DeleteObjects takes."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class S3Store:
    """The ``Store`` on S3. Writes are conditional unless the destination sets ``single_writer``.

    ``data_clients`` list and abort uploads, where ``clients`` have credentials of a catalog, which allow
    neither.
    """

    def __init__(self, clients: aws.Clients, data_clients: aws.Clients | None = None) -> None:
        self._clients = clients
        self._data_clients = data_clients or clients
        self._bucket = clients.access.bucket
        self.abilities = clients.abilities
        self._conditional = not clients.access.single_writer
        self._paginators: dict[str, Any] = {}

    def read_time(self) -> datetime | None:
        """See ``TellsTime``: by the ``Date`` header of the last answer."""
        return self._clients.clock.read()

    def get(self, key: str) -> tuple[bytes, str] | None:
        """See ``Store``. After a 403 or 404 the key is listed: absent if the listing lacks it, else asked once more,
        since the object may have been created in between. A bucket that lists nothing answers 404."""
        return self._get(key, again=True)

    def _get(self, key: str, *, again: bool) -> tuple[bytes, str] | None:
        try:
            return aws.read_object(self._clients.s3, Bucket=self._bucket, Key=key)
        except aws.ClientError as error:
            if self._may_be_gone(error):
                if not self._is_listed(key):
                    return None
                if again:
                    return self._get(key, again=False)
            raise self._explain(error, "GetObject", key) from error
        except aws.BotoCoreError as error:
            raise self._explain(error, "GetObject", key) from error

    def create(self, key: str, body: bytes) -> str | None:
        """See ``Store``: PutObject with ``If-None-Match: *``."""
        # Rule state-if-none-match
        return self._put(key, body, {"IfNoneMatch": "*"})

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        """See ``Store``: PutObject with ``If-Match``."""
        # Rule state-if-match
        return self._put(key, body, {"IfMatch": etag})

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        """See ``Store``: ListObjectsV2, a thousand keys a page."""
        arguments = {"Bucket": self._bucket, "Prefix": prefix}
        pages = {"PageSize": min(limit or 1000, 1000)} | ({"MaxItems": limit} if limit else {})
        listing = self._paginate(self._clients, "list_objects_v2", **arguments, PaginationConfig=pages)
        for page in self._read_pages("ListBucket", prefix, listing):
            for entry in page.get("Contents", ()):
                yield Entry(entry["Key"], entry["LastModified"], entry["ETag"], entry["Size"])

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See ``Store``: ListObjectsV2 with a delimiter."""
        listing = self._paginate(self._clients, "list_objects_v2", Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        for page in self._read_pages("ListBucket", prefix, listing):
            yield from (entry["Prefix"] for entry in page.get("CommonPrefixes", ()))

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        """See ``Store``: HEAD, and where that is refused a listing of the exact key."""
        return self._head(key, checksum=checksum)

    def head(self, key: str) -> StoredObject | None:
        """See ``Store``: HEAD alone."""
        return self._head(key)

    def _head(self, key: str, *, again: bool = True, checksum: bool = False) -> StoredObject | None:
        """Call HEAD; None where it is refused and a listing no longer has the key, since another process may delete
        the object after it was listed. A refusal counts only when it is repeated, as in ``get``."""
        asked = {"ChecksumMode": "ENABLED"} if checksum else {}
        try:
            return parse_object(self._clients.s3.head_object(Bucket=self._bucket, Key=key, **asked))
        except aws.ClientError as error:
            if self._may_be_gone(error):
                if not self._is_listed(key):
                    return None
                if again:
                    return self._head(key, again=False, checksum=checksum)
            raise self._explain(error, "GetObject", key) from error
        except aws.BotoCoreError as error:
            raise self._explain(error, "GetObject", key) from error

    def complete(self, receipt: Receipt) -> Completion:
        """See ``Store``: CompleteMultipartUpload with ``If-None-Match: *``. A 200 of a custom endpoint is only a claim.

        The parts' checksums are sent again, as S3 requires for uploads that have them.
        """
        name = f"Checksum{receipt.checksum_algorithm}"
        parts = [
            {"PartNumber": part.number, "ETag": part.etag} | ({name: part.checksum} if part.checksum else {})
            for part in receipt.parts
        ]
        # Rule completion-if-none-match
        condition = {"IfNoneMatch": "*"} if self._conditional else {}
        try:
            self._clients.s3.complete_multipart_upload(
                Bucket=self._bucket,
                Key=receipt.key,
                UploadId=receipt.upload_id,
                MultipartUpload={"Parts": parts},
                **condition,
            )
        except (aws.ClientError, aws.BotoCoreError) as error:
            return self._read_refusal(error, receipt.key)
        # versitygw, for one, answers 200 for any upload that is gone if its key is taken.
        return Completion.CLAIMED if self._clients.access.endpoint else Completion.DONE

    def abort(self, key: str, upload_id: str, bucket: str = "") -> None:
        """See ``Store``: AbortMultipartUpload; NoSuchUpload counts as done."""
        where = {"Bucket": bucket or self._bucket, "Key": key, "UploadId": upload_id}
        self._ask(
            "AbortMultipartUpload",
            key,
            lambda: self._data_clients.s3.abort_multipart_upload(**where),
            accept=("NoSuchUpload",),
            bucket=bucket,
        )

    def delete(self, key: str, etag: str | None = None) -> None:
        """See ``Store``: DeleteObject, with ``If-Match`` for an etag; 412 counts as done.

        S3 may answer a conditional deletion of an object that is gone with 403, 404 or 409, so the key is listed then.
        """
        if not self.abilities.deletes:
            return
        condition = {"IfMatch": etag} if etag and self._conditional else {}
        try:
            self._clients.s3.delete_object(Bucket=self._bucket, Key=key, **condition)
        except aws.ClientError as error:
            if aws.read_status(error) == 412 or aws.read_error_code(error) == "NoSuchKey":
                return
            may_be_gone = aws.read_status(error) in (403, 404, 409) and aws.read_error_code(error) != "NoSuchBucket"
            if may_be_gone and not self._is_listed(key):
                return
            raise self._explain(error, "DeleteObject", key) from error
        except aws.BotoCoreError as error:
            raise self._explain(error, "DeleteObject", key) from error

    def delete_all(self, keys: Sequence[str]) -> None:
        """See ``Store``: DeleteObjects, a thousand keys at a time. DeleteObject then deletes the rest, or says why it
        cannot."""
        if not self.abilities.deletes:
            return
        for start in range(0, len(keys), _MOST_DELETED):
            batch = keys[start : start + _MOST_DELETED]
            wanted: Any = {"Objects": [{"Key": key} for key in batch], "Quiet": True}
            try:
                answer = self._clients.s3.delete_objects(Bucket=self._bucket, Delete=wanted)
                left = [error["Key"] for error in answer.get("Errors", ())]
            except (aws.ClientError, aws.BotoCoreError):
                # Some stores have no such call.
                left = list(batch)
            for key in left:
                self.delete(key)

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        """See ``Store``: ListMultipartUploads."""
        listing = self._paginate(self._data_clients, "list_multipart_uploads", Bucket=self._bucket, Prefix=prefix)
        for page in self._read_pages("ListBucketMultipartUploads", prefix, listing):
            for entry in page.get("Uploads", ()):
                yield Upload(entry["Key"], entry["UploadId"])

    def _may_be_gone(self, error: aws.ClientError) -> bool:
        """Return whether a refusal may mean that there is no such object: a listing says whether it does."""
        statuses = (403, 404) if self.abilities.lists_objects else (404,)
        return aws.read_status(error) in statuses and aws.read_error_code(error) != "NoSuchBucket"

    def _is_listed(self, key: str) -> bool:
        return self.abilities.lists_objects and any(entry.key == key for entry in self.list_entries(key, limit=1))

    def _put(self, key: str, body: bytes, condition: dict[str, str]) -> str | None:
        arguments: dict[str, Any] = {"Bucket": self._bucket, "Key": key, "Body": body}
        arguments |= {"ContentType": "application/json"} | (condition if self._conditional else {})
        if self._clients.access.checksum_algorithm:
            arguments["ChecksumAlgorithm"] = self._clients.access.checksum_algorithm
        try:
            answer = self._clients.s3.put_object(**arguments)
        except aws.ClientError as error:
            gone = aws.read_error_code(error) == "NoSuchKey" and "IfMatch" in condition
            if aws.read_status(error) == 412 or gone:
                return None
            raise self._make_error(error, self._describe_call("PutObject", key)) from error
        except aws.BotoCoreError as error:
            raise self._make_error(error, self._describe_call("PutObject", key)) from error
        return str(answer["ETag"])

    def _read_refusal(self, error: Exception, key: str) -> Completion:
        if isinstance(error, aws.ClientError):
            if aws.read_status(error) == 412:
                return Completion.REFUSED
            if aws.read_error_code(error) == "NoSuchUpload":
                return Completion.GONE
            if aws.read_status(error) == 409:
                return Completion.CONFLICT
        raise self._make_error(error, self._describe_call("PutObject", key)) from error

    def _make_error(self, error: Any, doing: str) -> Exception:
        explained = aws.explain(error, doing=doing, access=self._clients.access)
        conflict = isinstance(error, aws.ClientError) and aws.read_status(error) == 409
        return Unclear(str(explained)) if explained.transient or conflict else explained

    def _ask(
        self, action: str, key: str, call: Callable[[], Any], accept: tuple[str, ...] = (), bucket: str = ""
    ) -> Any:
        try:
            return call()
        except aws.ClientError as error:
            if aws.read_error_code(error) in accept:
                return None
            raise self._explain(error, action, key, bucket) from error
        except aws.BotoCoreError as error:
            raise self._explain(error, action, key, bucket) from error

    def _paginate(self, clients: aws.Clients, operation: str, **arguments: Any) -> Any:
        # botocore builds a class and its documentation for every paginator, so each is kept.
        if operation not in self._paginators:
            self._paginators[operation] = clients.s3.get_paginator(operation)
        return self._paginators[operation].paginate(**arguments)

    def _read_pages(self, action: str, key: str, pages: Any) -> Iterator[Any]:
        turn = iter(pages)
        while (page := self._ask(action, key, lambda: next(turn, None))) is not None:
            yield page

    def _explain(
        self, error: aws.BotoCoreError | aws.ClientError, action: str, key: str, bucket: str = ""
    ) -> LakeError:
        access = self._clients.access.model_copy(update={"bucket": bucket or self._bucket})
        return aws.explain(error, doing=self._describe_call(action, key, bucket), access=access)

    def _describe_call(self, action: str, key: str, bucket: str = "") -> str:
        return f"s3:{action} on s3://{bucket or self._bucket}/{key}"


def _read_composite_checksum(answer: Any) -> str:
    """Return the CRC32 of the parts' CRC32s from a HEAD answer; blank where S3 has none, or one of the whole object."""
    value, _, parts = answer.get("ChecksumCRC32", "").partition("-")
    return value if parts or answer.get("ChecksumType") == "COMPOSITE" else ""


def parse_object(answer: Any) -> StoredObject:
    """Return the object that an answer of HEAD, or of GET for a range, describes."""
    # Header names have no case: some stores and copying tools give them back in capitals.
    metadata = {name.lower(): str(value) for name, value in answer["Metadata"].items()}
    generation = metadata.get(GENERATION_METADATA, "")
    return StoredObject(
        int(answer["ContentRange"].rpartition("/")[2]) if "ContentRange" in answer else answer["ContentLength"],
        metadata.get(LOAD_METADATA, ""),
        answer["ETag"],
        metadata.get(TABLE_METADATA, ""),
        int(generation) if _NUMBER.fullmatch(generation) else 0,
        _read_composite_checksum(answer),
        answer.get("ServerSideEncryption", "").startswith("aws:kms"),
    )
