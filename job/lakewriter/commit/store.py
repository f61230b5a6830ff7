"""Define the calls that a commit makes on its store, each with every answer it can have.

An answer that says neither success nor failure (a time-out, a 5xx, a 409) is ``Unclear``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol, runtime_checkable

from lakewriter.receipt import Receipt
from lakewriter.spec.catalogs import Abilities


class Unclear(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The call was applied, or it was not."""


class Completion(Enum):
    """The answer to the completion of an upload: done, refused as the key is taken, upload gone, or a conflict.

    ``CLAIMED`` is the success of a store that may also report success where the upload is gone and another's object has
    the key.
    """

    DONE = auto()
    CLAIMED = auto()
    REFUSED = auto()
    GONE = auto()
    CONFLICT = auto()


@dataclass(frozen=True)
class StoredObject:
    """An object as HEAD shows it: its size in bytes, and the load that wrote it, blank if no load of Lakewriter did.

    ``checksum`` is the CRC32 of its parts' CRC32s, blank where S3 has none or was not asked. ``is_kms`` is true for an
    object that KMS encrypts, whose etag says nothing of its content.
    """

    size: int
    load: str
    etag: str
    table: str = ""
    generation_id: int = 0
    checksum: str = ""
    is_kms: bool = False

    def is_of_another(self, pipeline: str) -> bool:
        """Return whether another pipeline's load wrote it."""
        return bool(self.load) and not self.load.startswith(f"{pipeline}/")


@dataclass(frozen=True)
class Entry:
    """An object in a listing."""

    key: str
    modified: datetime
    etag: str = ""
    size: int = 0


@dataclass(frozen=True)
class Upload:
    """An incomplete multipart upload; ``bucket`` is blank for the bucket of the store that it is asked of."""

    key: str
    upload_id: str
    bucket: str = ""


class Store(Protocol):
    """The store that holds data and control objects."""

    @property
    def abilities(self) -> Abilities:
        """Return what the store does. One that does not delete leaves objects alone that it is to delete."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return content and etag, None where there is no such object."""

    def create(self, key: str, body: bytes) -> str | None:
        """Create an object; return its etag, None where the key is taken; may raise ``Unclear``."""

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the object that has ``etag``; return the new etag, None where it has another; may raise
        ``Unclear``."""

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        """Yield the objects whose keys begin with ``prefix``, in the order of the keys, at most ``limit``."""

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the prefixes of the folders directly under ``prefix``; all of these end with a slash."""

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        """Return the object at exactly this key, None where there is none; ``checksum`` asks for its checksum."""

    def head(self, key: str) -> StoredObject | None:
        """Return the object at a key that a listing has shown; None where it is gone since."""

    def complete(self, receipt: Receipt) -> Completion:
        """Complete the staged upload into an object, unless its key is taken; may raise ``Unclear``."""

    def abort(self, key: str, upload_id: str, bucket: str = "") -> None:
        """Abort an upload, in another ``bucket`` that the store's credentials reach; one that is gone is no error."""

    def delete(self, key: str, etag: str | None = None) -> None:
        """Delete an object, with ``etag`` only if it has it; an object that is gone or another is no error."""

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete objects, in as few requests as the store takes; those that are gone are no error."""

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        """Yield the incomplete uploads whose keys begin with ``prefix``."""


@runtime_checkable
class TellsTime(Protocol):
    """A store that gives the time. Its clock is that of the times in its listings."""

    def read_time(self) -> datetime | None:
        """Return the time by the store's clock, to the second; None where no answer of the store had one."""
