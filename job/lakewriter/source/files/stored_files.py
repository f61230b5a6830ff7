"""Read the stored files of a source in the versions in which they were listed."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lakewriter.errors import SourceFailedError
from lakewriter.source.storage import BLOCK, Disk, FileChangedError, Store, pin_local

_MAGIC: Final = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"))
_UNREAD: Final = {".deflate": "deflate", ".snappy": "Snappy", ".lz4": "LZ4", ".lzo": "LZO"}
_GZIP_WINDOW: Final = 31
"""zlib's number for a stream with gzip's own header and checksum."""


@dataclass(frozen=True)
class StoredFile:
    """A file; ``path`` is a local path, or ``bucket/key`` in S3.

    ``version`` pins its contents: the ETag in S3, the time of its last change on a local disk. ``folders`` are the keys
    and values in the names of its folders ``key=value``.
    """

    path: str
    size: int
    version: str
    store: Store = Disk()  # noqa: RUF009 - it is frozen
    folders: tuple[tuple[str, str | None], ...] = ()

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``end`` as they are stored, in blocks.

        Raise ``FileChangedError`` or ``ObjectChangedError`` if the file has changed since it was listed.
        """
        yield from self.store.stream(self.path, self.version, start, self.size if end is None else min(end, self.size))
        self.require_unchanged()

    def require_unchanged(self) -> None:
        """Raise ``FileChangedError`` for a local file that has changed since it was listed. S3 compares on each
        request.
        """
        if self.store.is_local and pin_local(Path(self.path)) != (self.size, self.version):
            raise FileChangedError(f"{self.path} has changed since the load listed it")

    def read_head(self, size: int) -> bytes:
        """Return the first ``size`` bytes as they are stored."""
        return b"".join(self.stream(0, size))


@dataclass(frozen=True)
class HeldFile(StoredFile):
    """A part of a file that is held in memory. Any range of the file is this part."""

    content: bytes = b""

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the held bytes."""
        del start, end
        yield self.content

    def require_unchanged(self) -> None:
        """Do nothing: the held bytes do not change."""


def find_magic(head: bytes) -> str | None:
    """Return the compression that first bytes are of, None for others."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def find_compression(file: StoredFile, head: bytes) -> str | None:
    """Return the compression of a file that begins with ``head``, None for a plain one; its content decides.

    Raise ``SOURCE_FAILED`` for a compression that is not read.
    """
    by_content = find_magic(head)
    ending = Path(file.path).suffix.lower()
    if by_content is None and ending in _UNREAD:
        raise SourceFailedError(
            f"{file.path!r} is compressed with {_UNREAD[ending]}, expected gzip, bzip2, zstd, xz or a plain file.",
            remedy="Compress it otherwise, or let Spark read it: read: {engine: spark}.",
        )
    return by_content


def decompress(blocks: Iterator[bytes], compression: str | None) -> Iterator[bytes]:
    """Yield the plain bytes of a compressed stream, its members one after the other.

    Raise ``OSError`` for a stream that breaks off or is damaged.
    """
    if compression is None:
        return blocks
    if compression == "zstd":
        return _decompress_zstd(blocks)
    make, errors = _DECOMPRESSORS[compression]
    return _decompress_members(blocks, make, errors, compression)


_DECOMPRESSORS: Final[dict[str, tuple[Callable[[], Any], tuple[type[Exception], ...]]]] = {
    "gzip": (lambda: zlib.decompressobj(_GZIP_WINDOW), (zlib.error,)),
    "bzip2": (bz2.BZ2Decompressor, (OSError,)),
    "xz": (lzma.LZMADecompressor, (lzma.LZMAError,)),
}


def _decompress_members(
    blocks: Iterator[bytes], make: Callable[[], Any], errors: tuple[type[Exception], ...], name: str
) -> Iterator[bytes]:
    member, begun = make(), False
    try:
        for block in blocks:
            rest = block
            while rest:
                if member.eof:
                    # Zeros behind a member are padding, as gzip and xz write it on tapes and in blocks.
                    rest = rest.lstrip(b"\0")
                    member, begun = make(), False
                    continue
                begun = True
                yield from _decompress_bounded(member, rest)
                rest = member.unused_data if member.eof else b""
    except errors as error:
        raise OSError(f"its {name} data is damaged: {error}") from error
    if begun and not member.eof:
        raise OSError(f"its {name} data breaks off")


def _decompress_bounded(member: Any, data: bytes) -> Iterator[bytes]:
    """Yield the plain bytes of a member's ``data``, at most ``BLOCK`` bytes at a time: some data grows a
    thousandfold.
    """
    while True:
        plain = member.decompress(data, BLOCK)
        if plain:
            yield plain
        # zlib returns the bytes that it has not processed; the other libraries keep them.
        data = getattr(member, "unconsumed_tail", b"")
        if member.eof or not (data or len(plain) == BLOCK):
            return


class _Blocks:
    """A file object for Arrow over blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, memoryview(b"")
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        taken = bytes(self._rest[:size] if size >= 0 else self._rest)
        self._rest = self._rest[len(taken) :]
        return taken

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _decompress_zstd(blocks: Iterator[bytes]) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(_Blocks(blocks), mode="r"), "zstd") as stream:
        while block := stream.read(BLOCK):
            yield block
