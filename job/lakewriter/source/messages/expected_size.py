"""How large files become of a stream's messages: by what its loads wrote, and by the format before the first."""

from typing import Final

from lakewriter.spec.specification import Encoding, FileEncoding, Limits
from lakewriter.spec.stream import AvroEncoding

_FULL: Final = 0.95
"""Of the target size: files that come a little larger than expected are not to leave a small one behind."""
_WORTH: Final = 8
"""Another task is worth a file of a part of the target size, one by so much."""
_ENOUGH: Final = 1024 * 1024
"""Bytes of messages that tell what more of them become."""
_PLAIN, _COMPRESSED = 1.2, 0.2


class FileSizes:
    """Sizes of one stream's files."""

    def __init__(self, encoding: FileEncoding, limits: Limits) -> None:
        self._target = limits.target_file_bytes
        self._ratio = _guess(encoding)

    def learn(self, taken: int, written: int) -> None:
        """What became of messages."""
        if taken >= _ENOUGH and written:
            self._ratio = written / taken

    def bytes_for(self, files: int) -> int:
        """The messages that fill so many files."""
        return max(int(_FULL * files * self._target / self._ratio), 1)

    def count_tasks(self, taken: int, slots: int) -> int:
        """How many tasks are to share messages: as many as files are full, or as there are slots where files of a
        part of the target size are worth it."""
        files = -(-taken // self.bytes_for(1))
        return max(files, min(slots, taken // self.bytes_for_another_task), 1)

    @property
    def bytes_for_another_task(self) -> int:
        """The messages of which one task more makes a file that is not too small."""
        return max(int(self._target / _WORTH / self._ratio), 1)


def _guess(encoding: FileEncoding) -> float:
    if isinstance(encoding, Encoding):
        is_plain = encoding.codec == "uncompressed"
    elif isinstance(encoding, AvroEncoding):
        is_plain = encoding.codec == "null"
    else:
        is_plain = not encoding.gzip
    return _PLAIN if is_plain else _COMPRESSED
