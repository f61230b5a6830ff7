"""What the job does with objects, tried on objects of the probe's own."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lakewriter import aws
from lakewriter.doctor.probe import Finding, Probe, explained, status_behind
from lakewriter.errors import LakeError, RequesterPaysError, S3AccessDeniedError, SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys, join_key

_ANY_REFUSAL: Final = (aws.ClientError, aws.BotoCoreError, LakeError)
_BODY: Final = b"lakewriter check\n"
_PAYABLE: Final = {"list_objects_v2", "put_object"}
_NOT_UNDERSTOOD: Final = {400, 501}
_WRONG_ETAG: Final = '"00000000000000000000000000000000"'


class ObjectProbes:
    """Probes under ``{control prefix}/check/{mark}``; ``mark`` keeps two doctors apart.

    ``roots`` are folders that tables lie in apart from the control prefix.
    """

    def __init__(self, clients: aws.Clients, keys: ControlKeys, mark: str, roots: Sequence[str] = ()) -> None:
        self._clients = clients
        self._roots = roots
        self._mark = mark
        self._access = clients.access
        self._root = keys.root
        self._plain = f"{keys.root}/check/{mark}"
        self._staged = f"{self._plain}-staged"
        self._keys: set[str] = set()
        self._uploads: dict[str, str] = {}
        self._encryption = ""
        self._conditional = True

    def probes(self) -> list[Probe]:
        """The last one also clears up."""
        return [
            Probe("requester pays", self.requester_pays, ("bucket",)),
            Probe("list", self.listing, ("bucket", "requester pays")),
            Probe("put", self.put, ("bucket", "requester pays")),
            Probe("conditional write", self.conditional_write, ("put",)),
            Probe("read", self.read, ("put",)),
            Probe("multipart upload", self.multipart, ("put",)),
            Probe("conditional completion", self.conditional_completion, ("multipart upload",)),
            *([Probe("table paths", self.table_paths, ("multipart upload",))] if self._roots else []),
            Probe("list uploads", self.list_uploads, ("bucket", "requester pays")),
            Probe("abort upload", self.abort, ("multipart upload",)),
            Probe("delete", self.delete, ("bucket", "requester pays")),
        ]

    def requester_pays(self) -> Iterator[Finding]:
        """Told apart from a denial by offering to pay."""
        try:
            self._list(self._root)
        except S3AccessDeniedError as error:
            message = f"cannot be told from a denial: {error.message}"
            yield Finding("requester pays", "skipped", message, "Settle 'list' first.")
        else:
            yield Finding("requester pays", "ok", "the bucket does not make its requesters pay.")

    def listing(self) -> Iterator[Finding]:
        """The prefix as a directory, and one exact key: the two ways in which the job lists."""
        prefixes = [f"{join_key(prefix)}/" if prefix else "" for prefix in self._roots or (self._access.prefix,)]
        for wanted in (*prefixes, self._plain):
            self._list(wanted)
        places = ", ".join(repr(prefix or "the whole bucket") for prefix in prefixes)
        yield Finding("list", "ok", f"keys under {places} can be listed.")

    def put(self) -> Iterator[Finding]:
        """Conditionally, as the job writes; plainly where the store refuses the condition itself."""
        try:
            answer = self._put(IfNoneMatch="*")
        except LakeError as error:
            if status_behind(error) not in _NOT_UNDERSTOOD:
                raise
            self._conditional = False
            answer = self._put()
        kind, key = answer.get("ServerSideEncryption"), answer.get("SSEKMSKeyId")
        self._encryption = f"encrypted by {kind}{f' with key {key}' if key else ''}" if kind else "as they are"
        yield Finding("put", "ok", f"objects can be created under {self._root!r}.")

    def conditional_write(self) -> Iterator[Finding]:
        """``If-None-Match`` on a key that is taken and ``If-Match`` with a wrong etag must both be refused."""
        requests = {
            "If-None-Match: *": lambda: self._put(IfNoneMatch="*"),
            "If-Match": lambda: self._put(IfMatch=_WRONG_ETAG),
        }
        ignored = [name for name, request in requests.items() if not self._refused(request)]
        yield self._enforced("conditional write", " and ".join(ignored), "PutObject")

    def read(self) -> Iterator[Finding]:
        """With KMS encryption this needs kms:Decrypt, as do multipart uploads."""
        answer = self._ask("GetObject", "get_object", self._plain, Key=self._plain)
        if answer["Body"].read() != _BODY:
            raise S3AccessDeniedError(
                f"s3://{self._access.bucket}/{self._plain} does not read as it was written.",
                remedy="Look for a proxy or a store that changes objects between here and the bucket.",
            )
        yield Finding("read", "ok", f"objects read as they were written; they are stored {self._encryption}.")

    def multipart(self) -> Iterator[Finding]:
        """One upload created, filled and completed on a condition."""
        parts = self._stage("first")
        self._complete("first", parts, {"IfNoneMatch": "*"} if self._conditional else {})
        yield Finding("multipart upload", "ok", "uploads can be created, filled and completed.")

    def conditional_completion(self) -> Iterator[Finding]:
        """The second upload to a key that is now taken must not complete."""
        parts = self._stage("second")
        refused = self._refused(lambda: self._complete("second", parts, {"IfNoneMatch": "*"}))
        yield self._enforced("conditional completion", "" if refused else "If-None-Match: *", "CompleteMultipartUpload")

    def table_paths(self) -> Iterator[Finding]:
        """An upload begun and aborted in each table's folder: no object comes of it."""
        for root in self._roots:
            key = join_key(root, f"{CONTROL_DIRECTORY}_check_{self._mark}")
            upload = self._ask("PutObject", "create_multipart_upload", key, Key=key)["UploadId"]
            self._ask("AbortMultipartUpload", "abort_multipart_upload", key, Key=key, UploadId=upload)
        places = ", ".join(repr(f"{root}/") for root in self._roots)
        yield Finding("table paths", "ok", f"uploads can be begun and aborted under {places}.")

    def list_uploads(self) -> Iterator[Finding]:
        """What clearing up after a killed attempt begins with."""
        self._ask("ListBucketMultipartUploads", "list_multipart_uploads", self._root, Prefix=self._root, MaxUploads=1)
        yield Finding("list uploads", "ok", "incomplete uploads can be listed.")

    def abort(self) -> Iterator[Finding]:
        """Of an upload with a part in it, and of every upload that the probes left."""
        self._stage("third")
        for name, upload in list(self._uploads.items()):
            self._ask("AbortMultipartUpload", "abort_multipart_upload", self._staged, Key=self._staged, UploadId=upload)
            del self._uploads[name]
        yield Finding("abort upload", "ok", "uploads can be aborted.")

    def delete(self) -> Iterator[Finding]:
        """Of every object that the probes made, or might have made."""
        for key in sorted(self._keys or {self._plain}):
            self._ask("DeleteObject", "delete_object", key, Key=key)
            self._keys.discard(key)
        yield Finding("delete", "ok", "objects can be deleted; the probes' own are gone.")

    def clear_up(self) -> None:
        """Whatever an interrupted probe left, as far as S3 lets it go; its own probe has told of a refusal."""
        payer = {} if self._access.endpoint else {"RequestPayer": "requester"}
        for upload in self._uploads.values():
            with contextlib.suppress(*_ANY_REFUSAL):
                named = {"Bucket": self._access.bucket, "Key": self._staged, "UploadId": upload}
                self._clients.s3.abort_multipart_upload(**named, **payer)
        for key in self._keys:
            with contextlib.suppress(*_ANY_REFUSAL):
                self._clients.s3.delete_object(Bucket=self._access.bucket, Key=key, **payer)

    def _list(self, prefix: str) -> None:
        self._ask("ListBucket", "list_objects_v2", prefix, Prefix=prefix, MaxKeys=1)

    def _put(self, **condition: str) -> Any:
        self._keys.add(self._plain)
        checksum = {"ChecksumAlgorithm": self._access.checksum_algorithm} if self._access.checksum_algorithm else {}
        return self._ask("PutObject", "put_object", self._plain, Key=self._plain, Body=_BODY, **checksum, **condition)

    def _refused(self, request: Callable[[], Any]) -> bool:
        """Whether the condition was looked at: 409 is the answer while another conditional write is under way."""
        if not self._conditional:
            return False
        try:
            request()
        except LakeError as error:
            status = status_behind(error)
            if status not in {409, 412, *_NOT_UNDERSTOOD}:
                raise
            return status not in _NOT_UNDERSTOOD
        return False

    def _stage(self, name: str) -> dict[str, Any]:
        algorithm = self._access.checksum_algorithm
        checksum = {"ChecksumAlgorithm": algorithm} if algorithm else {}
        create = {"Key": self._staged, **checksum}
        upload = self._ask("PutObject", "create_multipart_upload", self._staged, **create)["UploadId"]
        self._uploads[name] = upload
        part = self._ask("PutObject", "upload_part", self._staged, **create, UploadId=upload, PartNumber=1, Body=_BODY)
        kept = {f"Checksum{algorithm}": part[f"Checksum{algorithm}"]} if algorithm else {}
        return {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], **kept}]}

    def _complete(self, name: str, parts: dict[str, Any], condition: dict[str, str]) -> None:
        self._keys.add(self._staged)
        named = {"Key": self._staged, "UploadId": self._uploads[name], "MultipartUpload": parts}
        self._ask("PutObject", "complete_multipart_upload", self._staged, **named, **condition)
        del self._uploads[name]

    def _enforced(self, probe: str, ignored: str, operation: str) -> Finding:
        if not ignored:
            return Finding(probe, "ok", f"the store enforces conditions on {operation}.")
        message = f"the store does not enforce {ignored} on {operation}: two loads could overwrite each other's work."
        if self._access.single_writer:
            remedy = "Keep the promise of single_writer: never run two loads of this pipeline at a time."
            return Finding(probe, "warning", message, remedy)
        remedy = "Use a store with conditional writes, or set single_writer: true and run one load at a time."
        return Finding(probe, "failed", message, remedy, SpecInvalidError.code)

    def _ask(self, action: str, operation: str, key: str, **params: Any) -> Any:
        method = getattr(self._clients.s3, operation)
        doing = f"s3:{action} on s3://{self._access.bucket}/{key}"
        try:
            return method(Bucket=self._access.bucket, **params)
        except (aws.ClientError, aws.BotoCoreError) as error:
            failure = explained(error, doing, self._access)
            denied = isinstance(error, aws.ClientError) and aws.status_of(error) == 403
            if not denied or operation not in _PAYABLE or self._access.endpoint:
                raise failure from error
            with contextlib.suppress(aws.ClientError, aws.BotoCoreError):
                method(Bucket=self._access.bucket, RequestPayer="requester", **params)
                failure = RequesterPaysError(
                    f"bucket {self._access.bucket!r} is Requester Pays: {doing} works only for whoever offers to pay.",
                    remedy="Switch Requester Pays off in the bucket's properties, or use another bucket.",
                )
            raise failure from error
