"""Estimate the size of the files that a stream's messages fill: by its loads, and by the format before the first."""

from typing import Final

from lakewriter.spec.encodings import AvroEncoding, FileEncoding, ParquetEncoding
from lakewriter.spec.specification import Limits

_FULL: Final = 0.95
"""The part of the target size that is planned: if files grow a little larger than expected, no small one remains."""
_WORTH: Final = 8
"""Another task is started if its file gets at least the target size divided by this."""
_ENOUGH: Final = 1024 * 1024
"""The bytes of messages that are enough to estimate from."""
_PLAIN, _COMPRESSED = 1.2, 0.2


class FileSizes:
    """The expected sizes of one stream's files."""

    def __init__(self, encoding: FileEncoding, limits: Limits) -> None:
        self._target = limits.target_file_bytes
        self._ratio = _guess(encoding)

    def learn(self, taken: int, written: int) -> None:
        """Update the estimate by the messages of a load and the bytes that it wrote."""
        if taken >= _ENOUGH and written:
            self._ratio = written / taken

    def bytes_for(self, files: int) -> int:
        """Return the bytes of messages that fill ``files`` files."""
        return max(int(_FULL * files * self._target / self._ratio), 1)

    def count_tasks(self, taken: int, slots: int) -> int:
        """Return how many tasks share the messages: one per full file, or one per slot if a smaller file is
        worth it.
        """
        files = -(-taken // self.bytes_for(1))
        return max(files, min(slots, taken // self.bytes_for_another_task), 1)

    @property
    def bytes_for_another_task(self) -> int:
        """The bytes of messages with which another task writes a file that is not too small."""
        return max(int(self._target / _WORTH / self._ratio), 1)


def _guess(encoding: FileEncoding) -> float:
    if isinstance(encoding, ParquetEncoding):
        is_plain = encoding.codec == "uncompressed"
    elif isinstance(encoding, AvroEncoding):
        is_plain = encoding.codec == "null"
    else:
        is_plain = not encoding.gzip
    return _PLAIN if is_plain else _COMPRESSED
