"""Check files of text before Spark reads them. Bytes that are not text fail the load: Spark would replace them."""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from pyspark.sql import SparkSession

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.report import format_count
from lakewriter.source.file_look import read_plain_options
from lakewriter.source.files.columnar import name_file
from lakewriter.source.files.stored_files import StoredFile, decompress
from lakewriter.source.storage import NotListable, find_store, map_in_threads, to_path
from lakewriter.spec.table_spec import Read

_CODECS: Final = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
"""Codecs by the file names' endings, by which Spark recognises them."""
_UNREAD: Final = (".deflate", ".snappy", ".lz4")
"""Endings of files that Spark decompresses and this process does not."""
_MOST_TASKS: Final = 200


@dataclass(frozen=True)
class _Finding:
    path: str
    offset: int
    what: str


@dataclass(frozen=True)
class ByteCheck:
    """The files to check, and the charset in which Spark decodes them."""

    files: tuple[StoredFile, ...]
    encoding: str

    def require(self, spark: SparkSession, table: str) -> None:
        """Raise ``VALUE_UNREPRESENTABLE`` with the first bytes that are not text. One task checks one file."""
        if not self.files:
            return
        files = spark.sparkContext.parallelize(self.files, min(len(self.files), _MOST_TASKS))
        findings = [fault for fault in files.map(partial(_find_fault, self.encoding)).collect() if fault is not None]
        if findings:
            first = min(findings, key=lambda finding: finding.path)
            raise ValueUnrepresentableError(
                f"table {table!r}: {first.path!r}, offset {first.offset}: {first.what}; Spark would read another "
                "value.",
                remedy="Correct the file, or name the encoding that it is written in among its options.",
            )


def plan_byte_check(uris: Iterable[str], read: Read) -> tuple[ByteCheck | None, tuple[str, ...]]:
    """Return the check of files that Spark has listed, and notes on files that cannot be checked."""
    options = read_plain_options(read)
    encoding = options.get("encoding") or options.get("charset") or "utf-8"
    try:
        encoding = codecs.lookup(encoding).name
    except LookupError:
        return None, (f"bytes are not looked at: Python does not know the encoding {encoding!r}",)
    paths = sorted(map(to_path, uris))
    files_by_path = dict(zip(paths, map_in_threads(_pin, paths), strict=True))
    unseen = [path for path, file in files_by_path.items() if file is None]
    notes: tuple[str, ...] = ()
    if unseen:
        notes = (f"bytes of {format_count(len(unseen), 'file')} are not looked at, such as {unseen[0]!r}",)
    return ByteCheck(tuple(file for file in files_by_path.values() if file is not None), encoding), notes


def _pin(uri: str) -> StoredFile | None:
    """Return the version of a file; None if this process cannot open or decompress it, though Spark may."""
    if uri.endswith(_UNREAD):
        return None
    try:
        store, path = find_store(uri)
        entry = store.find(path)
        return None if entry is None else StoredFile(path, entry.size, entry.version, store)
    except (NotListable, OSError, BotoCoreError, ClientError):
        return None


def _find_fault(encoding: str, file: StoredFile) -> _Finding | None:
    """Return the first bytes of a file that do not fit its encoding."""
    compression = next((name for end, name in _CODECS.items() if file.path.endswith(end)), None)
    decoder, offset = codecs.getincrementaldecoder(encoding)("strict"), 0
    with name_file(file):
        for block in chain(decompress(file.stream(), compression), [b""]):
            held = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                wrong = error.object[error.start : max(error.end, error.start + 1)][:4]
                shown = " ".join(f"0x{byte:02x}" for byte in wrong)
                what = f"byte {shown} is not {'UTF-8' if encoding == 'utf-8' else encoding} ({error.reason})"
                return _Finding(file.path, offset - held + error.start, what)
            offset += len(block)
    return None
