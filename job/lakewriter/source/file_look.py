"""Look at a source's files before a load: whether they exist, and whether files that Spark reads begin as their format
does.
"""

from dataclasses import dataclass
from typing import Final

from lakewriter.errors import SourceFailedError
from lakewriter.source.files.columnar import name_file
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.files.folder_listing import list_stored
from lakewriter.source.files.format_detection import find_other_format, make_empty_error
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import is_remote
from lakewriter.source.task_sizes import SourceFile
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import Read

_MOST_HEADS: Final = 20
"""The number of files whose first bytes are looked at."""
_HEAD_BYTES: Final = 4096


@dataclass(frozen=True)
class FileLook:
    """The files of a source; None if only Spark can list them."""

    files: tuple[SourceFile, ...] | None
    missing: SourceFailedError | None = None
    """The reason why there is nothing to read, if that is no failure because the columns are declared."""

    @property
    def bytes(self) -> int | None:
        """The size of all files, as they are stored."""
        return None if self.files is None else sum(file.length for file in self.files)


def look_at_files(read: Read, table: str, *, reads_rows: bool = True) -> FileLook:
    """List the files of one source. Raise ``SOURCE_FAILED`` if a load could read none of them.

    Only files that Spark reads are checked by their first bytes: the product's readers raise such errors themselves.
    Without ``reads_rows`` one byte of one file shows that files may be read.
    """
    if any("://" in path.removeprefix("file://") and not is_remote(path) for path in read.paths):
        return FileLook(None)
    paths = read.paths if has_reader(read) else tuple(dict.fromkeys(read.paths))
    listing = list_stored(paths, read_plain_options(read), table)
    filled = [file for file in listing.files if file.size]
    files = tuple(SourceFile(file.path, file.size) for file in listing.files)
    missing = listing.missing if filled or not files else make_empty_error([file.path for file in files], table)
    if missing is not None and not filled and read.columns is None:
        raise missing
    if not reads_rows:
        for file in filled[:1]:
            with name_file(file):
                file.read_head(1)
        return FileLook(files, missing=None if filled else missing)
    for file in () if has_reader(read) else filled[:_MOST_HEADS]:
        _require_format(file, read, table)
    return FileLook(files, missing=None if filled else missing)


def _require_format(file: StoredFile, read: Read, table: str) -> None:
    with name_file(file):
        start = file.read_head(_HEAD_BYTES)
    error = find_other_format(start, file.path, read.kind, table)
    if error is not None:
        raise error


def read_plain_options(read: Read) -> dict[str, str]:
    """Return the options by their names in lower case, as Spark compares them, without those that are secrets."""
    return {name.lower(): value for name, value in read.options.items() if not isinstance(value, SecretText)}
