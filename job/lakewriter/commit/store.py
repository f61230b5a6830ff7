"""The few calls a commit is made of, each with every answer it can have.

An answer that says neither yes nor no (a time-out, a 5xx, a 409) is ``Unclear``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from lakewriter.receipt import Receipt


class Unclear(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The call was applied, or it was not."""


class Completion(Enum):
    """What became of one completion."""

    DONE = auto()
    REFUSED = auto()
    GONE = auto()
    CONFLICT = auto()


@dataclass(frozen=True)
class StoredObject:
    """An object: its size in bytes and the load that wrote it, blank when no load of ours did.

    ``checksum`` is the CRC32 of its parts' CRC32s, blank where S3 keeps none or was not asked; ``is_kms`` tells that a
    key of KMS encrypts it, so that its etag says nothing of its content.
    """

    size: int
    load: str
    etag: str
    table: str = ""
    generation_id: int = 0
    checksum: str = ""
    is_kms: bool = False

    def is_of_another(self, pipeline: str) -> bool:
        """Whether another pipeline's load wrote it."""
        return bool(self.load) and not self.load.startswith(f"{pipeline}/")


@dataclass(frozen=True)
class Entry:
    """An object in a listing."""

    key: str
    modified: datetime
    etag: str = ""


@dataclass(frozen=True)
class Upload:
    """An incomplete multipart upload."""

    key: str
    upload_id: str


class Store(Protocol):
    """The store that holds data and control objects."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and etag, or None when there is no such object."""

    def create(self, key: str, body: bytes) -> str | None:
        """The new object's etag, or None when the key is taken; may be ``Unclear``."""

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        """The new etag, or None when the object is not the one with ``etag``; may be ``Unclear``."""

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        """Objects whose keys begin with ``prefix``, in the keys' order."""

    def list_folders(self, prefix: str) -> Iterator[str]:
        """What ``prefix``, which ends with a slash, has folders of: their prefixes, each with its slash."""

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        """The object at exactly this key; with its ``checksum`` where that is asked for."""

    def head(self, key: str) -> StoredObject | None:
        """The object that a listing has shown at this key; None when it is gone since."""

    def complete(self, receipt: Receipt) -> Completion:
        """Make the staged upload an object, unless its key is taken; may be ``Unclear``."""

    def abort(self, key: str, upload_id: str) -> None:
        """Drop an upload; one that is gone is no error."""

    def delete(self, key: str, etag: str | None = None) -> None:
        """Delete an object, with ``etag`` only that very one; one that is gone or another is no error."""

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        """Incomplete uploads of keys that begin with ``prefix``."""
