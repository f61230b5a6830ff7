"""Try every object operation of a load on objects that only the probe uses."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lakewriter import aws
from lakewriter.doctor.probe import Finding, Probe, explain_failure, find_cause_status
from lakewriter.errors import LakeError, RequesterPaysError, S3AccessDeniedError, SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys, join_key

_ANY_REFUSAL: Final = (aws.ClientError, aws.BotoCoreError, LakeError)
_BODY: Final = b"lakewriter check\n"
_PAYABLE: Final = {"list_objects_v2", "put_object"}
_NOT_UNDERSTOOD: Final = {400, 501}
_ALGORITHMS: Final = ("AES256", "aws:kms")
"""Values of the header x-amz-server-side-encryption, which loads do not send: a bucket encrypts without it."""
_WRONG_ETAG: Final = '"00000000000000000000000000000000"'


class ObjectProbes:
    """Probes under ``{control prefix}/check/{mark}``; ``mark`` separates two checks that run at the same time.

    ``roots`` are folders of tables outside the control prefix.
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

    def list_probes(self) -> list[Probe]:
        """List the probes; the last one also deletes what the others wrote."""
        return [
            Probe("requester pays", self.check_requester_pays, ("bucket",)),
            Probe("list", self.check_list, ("bucket", "requester pays")),
            Probe("put", self.check_put, ("bucket", "requester pays")),
            Probe("conditional write", self.check_conditional_write, ("put",)),
            Probe("read", self.check_read, ("put",)),
            Probe("multipart upload", self.check_multipart, ("put",)),
            Probe("conditional completion", self.check_conditional_completion, ("multipart upload",)),
            *([Probe("table paths", self.check_table_paths, ("multipart upload",))] if self._roots else []),
            Probe("list uploads", self.check_list_uploads, ("bucket", "requester pays")),
            Probe("abort upload", self.check_abort, ("multipart upload",)),
            Probe("delete", self.check_delete, ("bucket", "requester pays")),
        ]

    def check_requester_pays(self) -> Iterator[Finding]:
        """Check that the bucket is not Requester Pays: a 403 that offering to pay cures is reported as such."""
        try:
            self._list(self._root)
        except S3AccessDeniedError as error:
            message = f"cannot be told apart from a denial: {error.message}"
            yield Finding("requester pays", "skipped", message, "Settle 'list' first.")
        else:
            yield Finding("requester pays", "ok", "the bucket does not make its requesters pay.")

    def check_list(self) -> Iterator[Finding]:
        """List a prefix as a folder, and one exact key, as loads do."""
        prefixes = [f"{join_key(prefix)}/" if prefix else "" for prefix in self._roots or (self._access.prefix,)]
        for prefix in (*prefixes, self._plain):
            self._list(prefix)
        listed = ", ".join(repr(prefix or "the whole bucket") for prefix in prefixes)
        yield Finding("list", "ok", f"keys under {listed} can be listed.")

    def check_put(self) -> Iterator[Finding]:
        """Put an object with If-None-Match, as loads do; without it if the store does not implement conditions."""
        try:
            answer = self._put(IfNoneMatch="*")
        except LakeError as error:
            if find_cause_status(error) not in _NOT_UNDERSTOOD:
                raise (self._explain_header(error) or error) from error.__cause__
            self._conditional = False
            answer = self._put()
        kind, key = answer.get("ServerSideEncryption"), answer.get("SSEKMSKeyId")
        self._encryption = f"encrypted by {kind}{f' with key {key}' if key else ''}" if kind else "as they are"
        yield Finding("put", "ok", f"objects can be created under {self._root!r}.")

    def check_conditional_write(self) -> Iterator[Finding]:
        """Check that ``If-None-Match`` on an existing key and ``If-Match`` with a wrong etag are both refused."""
        requests = {
            "If-None-Match: *": lambda: self._put(IfNoneMatch="*"),
            "If-Match": lambda: self._put(IfMatch=_WRONG_ETAG),
        }
        ignored = [name for name, request in requests.items() if not self._try_condition(request)]
        yield self._report_condition("conditional write", " and ".join(ignored), "PutObject")

    def check_read(self) -> Iterator[Finding]:
        """Read the object; with KMS encryption this needs kms:Decrypt, as multipart uploads do."""
        answer = self._call_s3("GetObject", "get_object", self._plain, Key=self._plain)
        if answer["Body"].read() != _BODY:
            raise S3AccessDeniedError(
                f"s3://{self._access.bucket}/{self._plain} does not read as it was written.",
                remedy="Look for a proxy or a store that changes objects between here and the bucket.",
            )
        yield Finding("read", "ok", f"objects read as they were written; they are stored {self._encryption}.")

    def check_multipart(self) -> Iterator[Finding]:
        """Create, fill and complete a multipart upload with If-None-Match."""
        parts = self._stage("first")
        self._complete("first", parts, {"IfNoneMatch": "*"} if self._conditional else {})
        yield Finding("multipart upload", "ok", "uploads can be created, filled and completed.")

    def check_conditional_completion(self) -> Iterator[Finding]:
        """Check that a second upload to the same key does not complete."""
        parts = self._stage("second")
        refused = self._try_condition(lambda: self._complete("second", parts, {"IfNoneMatch": "*"}))
        yield self._report_condition(
            "conditional completion", "" if refused else "If-None-Match: *", "CompleteMultipartUpload"
        )

    def check_table_paths(self) -> Iterator[Finding]:
        """Create and abort an upload in each table's folder, which creates no object."""
        for root in self._roots:
            key = join_key(root, f"{CONTROL_DIRECTORY}_check_{self._mark}")
            upload = self._call_s3("PutObject", "create_multipart_upload", key, Key=key)["UploadId"]
            self._call_s3("AbortMultipartUpload", "abort_multipart_upload", key, Key=key, UploadId=upload)
        folders = ", ".join(repr(f"{root}/") for root in self._roots)
        yield Finding("table paths", "ok", f"uploads can be created and aborted under {folders}.")

    def check_list_uploads(self) -> Iterator[Finding]:
        """List incomplete uploads, as the next load does to clean up after a killed attempt."""
        self._call_s3(
            "ListBucketMultipartUploads", "list_multipart_uploads", self._root, Prefix=self._root, MaxUploads=1
        )
        yield Finding("list uploads", "ok", "incomplete uploads can be listed.")

    def check_abort(self) -> Iterator[Finding]:
        """Abort an upload that has a part, and every upload that the probes left."""
        self._stage("third")
        for name, upload in list(self._uploads.items()):
            self._call_s3(
                "AbortMultipartUpload", "abort_multipart_upload", self._staged, Key=self._staged, UploadId=upload
            )
            del self._uploads[name]
        yield Finding("abort upload", "ok", "uploads can be aborted.")

    def check_delete(self) -> Iterator[Finding]:
        """Delete every object that the probes created, or may have created."""
        for key in sorted(self._keys or {self._plain}):
            self._call_s3("DeleteObject", "delete_object", key, Key=key)
            self._keys.discard(key)
        yield Finding("delete", "ok", "objects can be deleted; the probes' own are gone.")

    def clear_up(self) -> None:
        """Delete what an interrupted probe left; errors are ignored, since the probes have reported them."""
        payer = {} if self._access.endpoint else {"RequestPayer": "requester"}
        for upload in self._uploads.values():
            with contextlib.suppress(*_ANY_REFUSAL):
                named = {"Bucket": self._access.bucket, "Key": self._staged, "UploadId": upload}
                self._clients.s3.abort_multipart_upload(**named, **payer)
        for key in self._keys:
            with contextlib.suppress(*_ANY_REFUSAL):
                self._clients.s3.delete_object(Bucket=self._access.bucket, Key=key, **payer)

    def _list(self, prefix: str) -> None:
        self._call_s3("ListBucket", "list_objects_v2", prefix, Prefix=prefix, MaxKeys=1)

    def _put(self, **condition: str) -> Any:
        self._keys.add(self._plain)
        checksum = {"ChecksumAlgorithm": self._access.checksum_algorithm} if self._access.checksum_algorithm else {}
        return self._call_s3(
            "PutObject", "put_object", self._plain, Key=self._plain, Body=_BODY, **checksum, **condition
        )

    def _explain_header(self, denied: LakeError) -> S3AccessDeniedError | None:
        """Explain a denial that a header of encryption cures; None for any other error."""
        for algorithm in _ALGORITHMS if isinstance(denied, S3AccessDeniedError) else ():
            with contextlib.suppress(LakeError):
                self._put(IfNoneMatch="*", ServerSideEncryption=algorithm)
                return S3AccessDeniedError(
                    f"{denied.message} With the header 'x-amz-server-side-encryption: {algorithm}' it is allowed: the "
                    "bucket's policy demands this header, and loads do not send it.",
                    remedy="Let the policy deny only a header with another value: beside its condition, require "
                    '"Null": {"s3:x-amz-server-side-encryption": "false"}. Objects without the header get the default '
                    "encryption of the bucket, which must be the one that the policy wants.",
                )
        return None

    def _try_condition(self, request: Callable[[], Any]) -> bool:
        """Send a request whose condition does not hold; True if S3 refuses it: by 412, or 409 during another write."""
        if not self._conditional:
            return False
        try:
            request()
        except LakeError as error:
            status = find_cause_status(error)
            if status not in {409, 412, *_NOT_UNDERSTOOD}:
                raise
            return status not in _NOT_UNDERSTOOD
        return False

    def _stage(self, name: str) -> dict[str, Any]:
        algorithm = self._access.checksum_algorithm
        checksum = {"ChecksumAlgorithm": algorithm} if algorithm else {}
        create = {"Key": self._staged, **checksum}
        upload = self._call_s3("PutObject", "create_multipart_upload", self._staged, **create)["UploadId"]
        self._uploads[name] = upload
        part = self._call_s3(
            "PutObject", "upload_part", self._staged, **create, UploadId=upload, PartNumber=1, Body=_BODY
        )
        sums = {f"Checksum{algorithm}": part[f"Checksum{algorithm}"]} if algorithm else {}
        return {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], **sums}]}

    def _complete(self, name: str, parts: dict[str, Any], condition: dict[str, str]) -> None:
        self._keys.add(self._staged)
        named = {"Key": self._staged, "UploadId": self._uploads[name], "MultipartUpload": parts}
        self._call_s3("PutObject", "complete_multipart_upload", self._staged, **named, **condition)
        del self._uploads[name]

    def _report_condition(self, probe: str, ignored: str, operation: str) -> Finding:
        if not ignored:
            return Finding(probe, "ok", f"the store enforces conditions on {operation}.")
        message = f"the store does not enforce {ignored} on {operation}: two loads could overwrite each other's work."
        if self._access.single_writer:
            remedy = "Keep the promise of single_writer: never run two loads of this pipeline at a time."
            return Finding(probe, "warning", message, remedy)
        remedy = "Use a store with conditional writes, or set single_writer: true and run one load at a time."
        return Finding(probe, "failed", message, remedy, SpecInvalidError.code)

    def _call_s3(self, action: str, operation: str, key: str, **params: Any) -> Any:
        method = getattr(self._clients.s3, operation)
        doing = f"s3:{action} on s3://{self._access.bucket}/{key}"
        try:
            return method(Bucket=self._access.bucket, **params)
        except (aws.ClientError, aws.BotoCoreError) as error:
            failure = explain_failure(error, doing, self._access)
            denied = isinstance(error, aws.ClientError) and aws.read_status(error) == 403
            if not denied or operation not in _PAYABLE or self._access.endpoint:
                raise failure from error
            with contextlib.suppress(aws.ClientError, aws.BotoCoreError):
                method(Bucket=self._access.bucket, RequestPayer="requester", **params)
                failure = RequesterPaysError(
                    f"bucket {self._access.bucket!r} is Requester Pays: {doing} works only for callers that pay.",
                    remedy="Switch Requester Pays off in the bucket's properties, or use another bucket.",
                )
            raise failure from error
