"""Read objects in S3 as files, by range requests."""

import gzip
import io
from collections.abc import Callable
from typing import IO, Any, Final, TypeVar, cast

from botocore.exceptions import BotoCoreError, ClientError

from lakewriter.aws.answers import explain
from lakewriter.aws.clients import Clients, read_object
from lakewriter.spec.specification import MIB

READ_BYTES: Final = 4 * MIB
"""Bytes of a range request."""
_GZIP: Final = b"\x1f\x8b"

T = TypeVar("T")


def write_range(start: int, end: int) -> str:
    """Write the header of a request for the bytes from ``start`` to before ``end``."""
    return f"bytes={start}-{end - 1}"


class ObjectFile(io.RawIOBase):
    """An object as a file. Each read calls ``fetch`` with the first byte that it asks for, and the one behind the last.

    ``find_size`` returns the object's bytes; it is called when they are first needed.
    """

    def __init__(self, name: str, fetch: Callable[[int, int], bytes], find_size: Callable[[], int]) -> None:
        super().__init__()
        self.name = name
        self._fetch, self._find_size = fetch, find_size
        self._position = 0
        self._size: int | None = None

    def readable(self) -> bool:
        """See ``RawIOBase``."""
        return True

    def seekable(self) -> bool:
        """See ``RawIOBase``."""
        return True

    def tell(self) -> int:
        """See ``RawIOBase``."""
        return self._position

    @property
    def size(self) -> int:
        """The bytes of the object."""
        if self._size is None:
            self._size = self._find_size()
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See ``RawIOBase``."""
        start = self.size if whence == io.SEEK_END else self._position if whence == io.SEEK_CUR else 0
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """See ``RawIOBase``."""
        body = self._read_up_to(len(buffer))
        buffer[: len(body)] = body
        return len(body)

    def read(self, size: int = -1) -> bytes:
        """See ``RawIOBase``, which would ask for the rest of a file by 8 KiB at a time."""
        return self._read_up_to(self.size if size < 0 else size)

    def _read_up_to(self, count: int) -> bytes:
        wanted = min(count, self.size - self._position)
        if wanted <= 0:
            return b""
        body = self._fetch(self._position, self._position + wanted)
        self._position += len(body)
        return body


def open_object(bucket: str, key: str, clients: Clients) -> ObjectFile:
    """Open an object; errors of S3 are raised as errors a user can act on."""
    where, name = {"Bucket": bucket, "Key": key}, f"s3://{bucket}/{key}"

    def call(ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (ClientError, BotoCoreError) as error:
            raise explain(error, doing=f"s3:GetObject on {name}", access=clients.access) from error

    return ObjectFile(
        name,
        lambda start, end: call(lambda: read_object(clients.s3, **where, Range=write_range(start, end))[0]),
        lambda: call(lambda: int(clients.s3.head_object(**where)["ContentLength"])),
    )


def open_text(file: "io.BufferedReader[Any]") -> IO[str]:
    """Return the text of a file, unpacked if it is a gzip file."""
    packed = file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
    return io.TextIOWrapper(cast(Any, gzip.open(file) if packed else file), "utf-8", newline="")
