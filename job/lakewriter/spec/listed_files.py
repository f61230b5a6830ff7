"""Files of a source as a listing has them: by these a load knows which files earlier loads have read."""

from dataclasses import dataclass
from typing import Final, Literal

Repetition = Literal["fail", "warn", "allow"]
"""What happens where a load would append rows of files that an earlier load has read."""

_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file: its URI or local path, its size in bytes, its ETag where it lies in S3, and when it was last changed,
    in nanoseconds since 1970."""

    uri: str
    size: int
    etag: str
    modified: int

    def has_contents_of(self, other: "ListedFile") -> bool:
        """Return True where nothing tells the contents of two listings of one file apart."""
        if self.size != other.size:
            # Rule files-contents
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        return self._is_of_the_time_of(other)

    def is_untouched_since(self, other: "ListedFile") -> bool:
        """Return True where the file was not written since another listing, not even with the same contents."""
        return self.has_contents_of(other) and self._is_of_the_time_of(other)

    def _is_of_the_time_of(self, other: "ListedFile") -> bool:
        if self.modified % _MILLISECOND and other.modified % _MILLISECOND:
            return self.modified == other.modified
        # Some listings have times in milliseconds.
        return self.modified // _MILLISECOND == other.modified // _MILLISECOND
