"""Upload one object in parts and leave the upload incomplete: nobody sees the object before its commit completes it."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any, Final, NoReturn

from lakewriter.aws import BotoCoreError, ClientError, explain, read_error_code
from lakewriter.errors import SpecInvalidError, StagedLostError
from lakewriter.receipt import NotedUpload, Part, Uploaded
from lakewriter.receipts.parts import Write
from lakewriter.spec.access import Access
from lakewriter.spec.specification import Limits

MAX_PARTS: Final = 10_000


@dataclass(frozen=True)
class ApartBucket:
    """A bucket of files beside the destination's, which lists no uploads and keeps no metadata: each upload is noted
    under the prefix ``notes`` in the destination's bucket."""

    name: str
    notes: str


class StagedUpload:
    """A multipart upload that starts with its first full part and ends in ``finish`` or ``abandon``.

    All parts except the last have exactly ``limits.part_bytes``, since some stores demand it. At most
    ``limits.upload_parallelism`` parts are in memory besides the one being filled: ``write`` waits for room. An upload
    to a bucket ``apart`` is noted by ``write`` before it has a part.
    """

    def __init__(
        self, client: Any, access: Access, key: str, *, metadata: Mapping[str, str], limits: Limits,
        apart: ApartBucket | None = None, write: Write | None = None,
    ) -> None:  # fmt: skip
        self._client = client
        self._access = access
        self._apart, self._write_note = apart, write
        self._target = {"Bucket": apart.name if apart else access.bucket, "Key": key}
        self._metadata = {} if apart else dict(metadata)
        self._limits = limits
        self._upload_id: str | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._size = 0
        self._room = BoundedSemaphore(limits.upload_parallelism)
        self._pool = ThreadPoolExecutor(limits.upload_parallelism, thread_name_prefix="upload")
        self._parts: list[Future[Part]] = []
        self._failures: list[BaseException] = []

    def write(self, data: bytes) -> int:
        """Take all of ``data``; raise the error of the first part that failed."""
        self._raise_failure()
        rest = memoryview(data)
        while self._held + len(rest) >= self._limits.part_bytes:
            room = self._limits.part_bytes - self._held
            self._hold(bytes(rest[:room]))
            rest = rest[room:]
            self._send()
        self._hold(data if len(rest) == len(data) else bytes(rest))
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes taken so far."""
        return self._size

    def finish(self) -> Uploaded:
        """Wait for every part; return what was uploaded, its parts in order. The upload stays incomplete."""
        if self._held or not self._parts:
            self._send()
        self._pool.shutdown(wait=True)
        self._raise_failure()
        parts = tuple(part.result() for part in self._parts)
        target = self._target["Bucket"], self._target["Key"], self._access.checksum_algorithm
        return Uploaded(str(self._upload_id), parts, self._size, *target)

    def abandon(self, cause: BaseException) -> None:
        """Abort the upload, finished or not; an error of doing so becomes a note on ``cause``."""
        self._pieces.clear()
        # A part that arrives after the abort would not be deleted.
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._upload_id is None:
            return
        try:
            self._client.abort_multipart_upload(**self._target, UploadId=self._upload_id)
        except Exception as error:  # noqa: BLE001 - must not hide the cause
            if not (isinstance(error, ClientError) and read_error_code(error) == "NoSuchUpload"):
                cause.add_note(
                    f"The upload {self._upload_id!r} of {self._uri} was not aborted ({type(error).__name__}: {error}); "
                    "it is invisible, and the bucket's lifecycle rule for incomplete uploads removes it."
                )

    @property
    def _uri(self) -> str:
        return f"s3://{self._target['Bucket']}/{self._target['Key']}"

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._held += len(piece)
            self._size += len(piece)

    def _send(self) -> None:
        number = len(self._parts) + 1
        if number > MAX_PARTS:
            raise SpecInvalidError(
                f"{self._uri} would need more than {MAX_PARTS} parts of {self._limits.part_bytes} bytes.",
                remedy="Lower limits.target_file_mb.",
            )
        if self._upload_id is None:
            self._upload_id = self._create()
            self._note()
        body = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        self._room.acquire()
        part = self._pool.submit(self._put, number, body)
        part.add_done_callback(self._finish_part)
        self._parts.append(part)

    def _create(self) -> str:
        try:
            answer = self._client.create_multipart_upload(**self._target, Metadata=self._metadata, **self._checksum)
        except (BotoCoreError, ClientError) as error:
            self._fail(error)
        return str(answer["UploadId"])

    def _note(self) -> None:
        """Write the upload down where a later attempt finds it: one that has no part yet takes no room."""
        if self._apart is None or self._write_note is None:
            return
        note = NotedUpload(bucket=self._apart.name, key=self._target["Key"], upload_id=str(self._upload_id))
        name = hashlib.sha256(note.upload_id.encode()).hexdigest()[:32]
        self._write_note(f"{self._apart.notes}{name}.json", note.model_dump_json().encode())

    def _put(self, number: int, body: bytes) -> Part:
        try:
            answer = self._client.upload_part(
                **self._target, UploadId=self._upload_id, PartNumber=number, Body=body, **self._checksum
            )
        except ClientError as error:
            if read_error_code(error) != "NoSuchUpload":
                raise
            raise StagedLostError(
                f"the upload of {self._uri} was aborted before it had all its parts, by another attempt at this load "
                "or by the bucket's lifecycle rule.",
                remedy="Run the same job id again.",
            ) from error
        checksum = answer.get(f"Checksum{self._access.checksum_algorithm}")
        return Part(number, str(answer["ETag"]), checksum)

    @property
    def _checksum(self) -> dict[str, str]:
        algorithm = self._access.checksum_algorithm
        return {"ChecksumAlgorithm": algorithm} if algorithm else {}

    def _finish_part(self, part: "Future[Part]") -> None:
        error = None if part.cancelled() else part.exception()
        if error is not None:
            self._failures.append(error)
        self._room.release()

    def _raise_failure(self) -> None:
        if self._failures:
            self._fail(self._failures[0])

    def _fail(self, error: BaseException) -> NoReturn:
        if isinstance(error, BotoCoreError | ClientError):
            raise explain(error, doing=f"s3:PutObject on {self._uri}", access=self._access) from error
        raise error
