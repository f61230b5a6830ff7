"""Read objects in S3 as files, by range requests."""

import gzip
import io
from typing import IO, Any, Final, cast

from lakewriter import aws
from lakewriter.spec.specification import MIB

READ_BYTES: Final = 4 * MIB
"""Bytes of a range request."""
_GZIP: Final = b"\x1f\x8b"


class S3File(io.RawIOBase):
    """A file in S3, read by range requests."""

    def __init__(self, bucket: str, key: str, clients: aws.Clients) -> None:
        super().__init__()
        self.name = f"s3://{bucket}/{key}"
        self._where, self._clients = {"Bucket": bucket, "Key": key}, clients
        self._place = 0
        self._size: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    @property
    def size(self) -> int:
        """In bytes."""
        if self._size is None:
            answer = self._ask(lambda: self._clients.s3.head_object(**self._where))
            self._size = int(answer["ContentLength"])
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = self.size if whence == io.SEEK_END else self._place if whence == io.SEEK_CUR else 0
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self.size - self._place))
        if not wanted:
            return 0
        asked = f"bytes={self._place}-{self._place + wanted - 1}"
        body, _ = self._ask(lambda: aws.read_object(self._clients.s3, **self._where, Range=asked))
        buffer[: len(body)] = body
        self._place += len(body)
        return len(body)

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except (aws.ClientError, aws.BotoCoreError) as error:
            raise aws.explain(error, doing=f"s3:GetObject on {self.name}", access=self._clients.access) from error


def open_text(file: "io.BufferedReader[Any]") -> IO[str]:
    """Return the text of a file, unpacked if it is a gzip file."""
    packed = file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
    return io.TextIOWrapper(cast(Any, gzip.open(file) if packed else file), "utf-8", newline="")
