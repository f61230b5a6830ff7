"""Read files in continuous runs: Spark's source lists them and bounds a batch, the product's readers read them."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakewriter.errors import NoAnswerError, SchemaIncompatibleError, SourceFailedError
from lakewriter.source.file_frames import pack_rows
from lakewriter.source.file_splits import make_spread
from lakewriter.source.files.csv_headers import list_nameless
from lakewriter.source.files.file_source import OpenedFiles, open_files
from lakewriter.source.files.folder_listing import Listing, PlannedFile, list_stored, pin_paths
from lakewriter.source.files.spark_options import take_options
from lakewriter.source.session import isolate
from lakewriter.source.spark_failures import Origin
from lakewriter.source.storage import to_path
from lakewriter.spec.table_spec import Read, TableSpec

_NAMES: Final = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""The columns of Spark's source of whole files; the contents are never read."""
MOST_LEARNT: Final = 1000
"""The files whose columns a run learns when it begins: the last ones by name."""
_LOG_FILE: Final = re.compile(r"(\d+)(\.compact)?")


class Log(Protocol):
    """A checkpoint."""

    def read(self, name: str) -> bytes:
        """Read a file of the checkpoint."""

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder of the checkpoint."""


def open_path_stream(session: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """Open the stream of the files' paths.

    Its checkpoint equals that of a stream which reads the same files in another format.
    """
    reader = session.readStream.format("binaryFile").schema(_NAMES).options(**options)
    return reader.load(path).select("path")


def list_planned(log: Log, number: int) -> list[PlannedFile]:
    """Return the files that Spark has planned for a batch, from its source's log.

    A batch of offsets names the last entry of that log. The log gets one entry each time that files arrive.
    """
    end = _read_entry(log.read(f"offsets/{number}"))
    start = _read_entry(log.read(f"offsets/{number - 1}")) if number else -1
    names = log.list_names("sources/0")
    return [file for entry in range(start + 1, end + 1) for file in _read_log(log, names, entry)]


def _read_entry(offsets: bytes) -> int:
    """Return the last entry of the source's log that a file of the offset log names."""
    return int(json.loads(offsets.decode().splitlines()[-1])["logOffset"])


def _read_log(log: Log, names: list[str], entry: int) -> Iterator[PlannedFile]:
    """Yield the files of an entry, which may be part of a later, compacted one."""
    entries = [(int(match[1]), bool(match[2]), name) for name in names if (match := _LOG_FILE.fullmatch(name))]
    having = [candidate for candidate in entries if candidate[0] == entry or (candidate[1] and candidate[0] > entry)]
    if not having:
        raise NoAnswerError(
            f"the checkpoint has no entry {entry} in sources/0.", remedy="Restore the checkpoint whole."
        )
    for line in log.read(f"sources/0/{min(having)[2]}").decode().splitlines()[1:]:
        file = json.loads(line)
        if file["batchId"] == entry:
            yield PlannedFile(to_path(file["path"]), int(file["timestamp"]))


@dataclass
class FileStream:
    """The files of one table's stream. ``earlier`` are the columns of the files that exist when the stream begins."""

    spark: SparkSession
    table: TableSpec
    options: Mapping[str, str]
    origin: Origin
    earlier: pa.Schema | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        read = self.table.read
        taken = take_options(read.kind.name, self.options, self.table.id)
        # Reading raises the files' errors later. A folder may be empty, or not exist yet.
        with suppress(SchemaIncompatibleError, SourceFailedError):
            self._learn_columns(list_stored(read.paths, taken.given, self.table.id))

    def _learn_columns(self, listing: Listing) -> None:
        files = [file for file in listing.files if file.size][-MOST_LEARNT:]
        if files and self.table.read.columns is None:
            self.earlier = self._open(Listing(files)).source.columns

    def open_batch(self, log: Log, number: int, learnt: Read | None = None) -> OpenedFiles:
        """Look at the files of a batch, and pin their present versions; ``learnt`` has what the batches before have
        learnt of their columns.
        """
        read = self.table.read
        options = {name.lower(): value for name, value in self.options.items()}
        planned = list_planned(log, number)
        listing = pin_paths(planned, read.paths[0], options, self.table.id)
        filled = [file for file in listing.files if file.size]
        if read.kind.has_lines and (filled or self.earlier is not None):
            listing.files = filled
        return self._open(listing, learnt)

    def _open(self, listing: Listing, learnt: Read | None = None) -> OpenedFiles:
        spread, read = make_spread(lambda: self.spark, self.origin), self.table.read
        seen = list_nameless(self.earlier.names) if self.earlier is not None else ()
        nameless = (learnt.nameless if learnt is not None else ()) or read.nameless or seen
        types = read.learnt if learnt is None else learnt.learnt
        read = read.model_copy(update={"nameless": nameless, "learnt": types})
        return open_files(
            self.table, read, self.options, spread, aside=self.table.marks_rows, given=listing, earlier=self.earlier
        )

    def make_frame(self, opened: OpenedFiles) -> DataFrame:
        """Return the rows of opened files as a DataFrame."""
        session = isolate(self.spark)
        return pack_rows(session, opened, make_spread(lambda: session, self.origin)).make_frame()
