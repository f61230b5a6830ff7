"""Look at a source's files before Spark does: are they there, can they be read, and how do they begin."""

import fnmatch
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SourceFailedError
from lakewriter.report import join_first
from lakewriter.source.byte_checks import TEXTS, UNREADABLE, find_codec
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.files.folder_listing import expand_braces, find_nearby, list_stored
from lakewriter.source.files.judge import make_empty_error
from lakewriter.source.files.source import has_reader
from lakewriter.source.packing import SourceFile
from lakewriter.source.storage import NotListable, Store, is_hidden, list_files
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read

MOST_HEADS: Final = 20
"""Files whose first bytes are looked at."""
_HEAD_BYTES: Final = 64 * 1024
_THREADS: Final = 16
_MOST_NAMES: Final = 4
_PATTERN: Final = frozenset("*?[]{}")
_REMOTE: Final = ("s3://", "s3a://")


@dataclass(frozen=True)
class Head:
    """The first bytes of a file, decompressed where its name says how; ``is_whole`` where there are no more."""

    path: str
    data: bytes
    is_whole: bool


@dataclass(frozen=True)
class FileLook:
    """The files of a source, None where only Spark can list them, and how some of them begin."""

    files: tuple[SourceFile, ...] | None
    heads: tuple[Head, ...] = ()
    missing: SourceFailedError | None = None
    """Why there is nothing to read, where that is no failure since the columns are declared."""

    @property
    def bytes(self) -> int | None:
        """The size of all files, as they are stored."""
        return None if self.files is None else sum(file.length for file in self.files)


def look_at_files(read: Read, table: str) -> FileLook:
    """List the files of one source; ``SOURCE_FAILED`` where a load could read none of them.

    How they begin is read of those that Spark reads: the product's own readers tell themselves what is wrong.
    """
    if has_reader(read):
        return _list_texts(read, table)
    listed = _list_source(read, table)
    if listed is None:
        return FileLook(None)
    store, files, missing = listed
    filled = [file for file in files if file.length]
    if files and not filled:
        missing = make_empty_error([file.path for file in files], table)
    if missing is not None and not filled:
        if read.columns is None:
            raise missing
        return FileLook(tuple(files), missing=missing)
    is_text = str(read.format).lower() in TEXTS
    chosen = [file for file in filled if not (is_text and file.path.endswith(UNREADABLE))][:MOST_HEADS]
    with ThreadPoolExecutor(_THREADS) as pool:
        heads = tuple(pool.map(lambda file: _read_head(store, file.path, table, is_text), chosen))
    return FileLook(tuple(files), heads)


def _list_texts(read: Read, table: str) -> FileLook:
    """List files as the reader of their format does."""
    listing = list_stored(read.paths, read_plain_options(read), table)
    files, has_rows = (
        tuple(SourceFile(file.path, file.size) for file in listing.files),
        any(f.size for f in listing.files),
    )
    missing = listing.missing if has_rows or not files else make_empty_error([file.path for file in files], table)
    if missing is not None and not has_rows and read.columns is None:
        raise missing
    return FileLook(files, missing=None if has_rows else missing)


_Listed = tuple[Store, list[SourceFile], SourceFailedError | None]
"""The store and files of a source, and the error where a path of it has none."""


def _list_source(read: Read, table: str) -> _Listed | None:
    """None where only Spark can list the files."""
    if all(path.startswith(_REMOTE) for path in read.paths):
        return _list_remote(read, table)
    if any("://" in path.removeprefix("file://") for path in read.paths):
        return None
    listed = [_list_local(path, read, table) for path in read.paths]
    errors = [error for _, error in listed if error is not None]
    return Store(), [file for files, _ in listed for file in files], errors[0] if errors else None


def _list_remote(read: Read, table: str) -> _Listed | None:
    try:
        store, files = list_files(read.paths)
    except NotListable:
        return None
    except (OSError, BotoCoreError, ClientError) as error:
        raise make_unreadable_error(", ".join(read.paths), error, table) from error
    if files:
        return store, files, None
    absent = SourceFailedError(
        f"table {table!r}: there is no object at or below {', '.join(map(repr, read.paths))}.",
        remedy="Check bucket and key; keys whose names begin with _ or . are skipped.",
    )
    return store, [], absent


def list_local_files(read: Read, table: str) -> list[str]:
    """List the data files of local paths; ``SOURCE_FAILED`` for a path that is not there."""
    return [file.path for path in read.paths for file in _list_local(path, read, table)[0]]


def _list_local(path: str, read: Read, table: str) -> tuple[list[SourceFile], SourceFailedError | None]:
    """The data files at a local path, in the order of their names; the error says why there are none."""
    bare = path.removeprefix("file://").removeprefix("file:")
    matches = [Path(bare)] if Path(bare).exists() else []
    if _PATTERN & set(bare):
        matches = sorted({match for text in expand_braces(bare) for match in Path("/").glob(text.lstrip("/"))})
    if not matches:
        raise _make_absent_error(path, bare, table)
    files, skipped, nested = list[Path](), list[str](), list[str]()
    for match in matches:
        if match.is_dir():
            _scan_folder(match, read_plain_options(read), files, skipped, nested)
        elif is_hidden(match.name) and _PATTERN & set(bare):
            skipped.append(match.name)
        else:
            files.append(match)
    error = None if files else _make_nothing_error(path, skipped, nested, table)
    return [SourceFile(str(file), _read_size(file, table)) for file in files], error


def _read_size(file: Path, table: str) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise make_unreadable_error(str(file), error, table) from error


def read_plain_options(read: Read) -> dict[str, str]:
    """The options by their names in lower case, as Spark compares them, without those that are secrets."""
    return {name.lower(): value for name, value in read.options.items() if not isinstance(value, SecretText)}


def _scan_folder(
    folder: Path, options: dict[str, str], files: list[Path], skipped: list[str], nested: list[str]
) -> None:
    """Sort a folder's entries as Spark does: data files, also of partitions' folders, what is skipped, and folders."""
    pattern = options.get("pathglobfilter", "*")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise make_unreadable_error(str(folder), error) from error
    for entry in entries:
        if is_hidden(entry.name) or (entry.is_file() and not fnmatch.fnmatch(entry.name, pattern)):
            skipped.append(entry.name)
        elif not entry.is_dir():
            files.append(entry)
        elif "=" in entry.name or options.get("recursivefilelookup", "").lower() == "true":
            _scan_folder(entry, options, files, skipped, nested)
        else:
            nested.append(entry.name)


def _make_absent_error(path: str, bare: str, table: str) -> SourceFailedError:
    """The error for a path or pattern without any match: what there is instead is its remedy."""
    what = f"no file matches {path!r}" if _PATTERN & set(bare) else f"there is no {path!r}"
    return SourceFailedError(f"table {table!r}: {what}.", remedy=find_nearby(Path(bare)))


def _make_nothing_error(path: str, skipped: list[str], nested: list[str], table: str) -> SourceFailedError:
    if nested:
        return SourceFailedError(
            f"table {table!r}: {path!r} has no files, only folders: {join_first(nested, _MOST_NAMES)}.",
            remedy=f"Name a folder of them, such as {path.rstrip('/')}/{nested[0]}; or all files below it, with "
            "options: {recursiveFileLookup: true}.",
        )
    if skipped:
        return SourceFailedError(
            f"table {table!r}: {path!r} has only files that are skipped: {join_first(skipped, _MOST_NAMES)}.",
            remedy="No file is read whose name begins with _ or ., or that pathGlobFilter does not match.",
        )
    return SourceFailedError(f"table {table!r}: the folder {path!r} is empty.", remedy="Name a folder with files.")


def _read_head(store: Store, path: str, table: str, is_text: bool) -> Head:
    codec = find_codec(path) if is_text else None
    try:
        with store.open().open_input_stream(path, compression=codec) as stream:
            data = stream.read(_HEAD_BYTES)
            # The end of a compressed file that was cut off shows only where more is asked for.
            return Head(path, data, len(data) < _HEAD_BYTES and not stream.read(1))
    except PermissionError as error:
        raise SourceFailedError(
            f"table {table!r}: {path!r} may not be read: permission denied.",
            remedy="Let the user that runs the load read the file.",
        ) from error
    except (OSError, pa.ArrowException, BotoCoreError, ClientError) as error:
        if codec is None:
            raise make_unreadable_error(path, error, table) from error
        raise SourceFailedError(
            f"table {table!r}: {path!r} is not whole {codec} data, which its name says it is: {error}",
            remedy="Rename the file if it is not compressed; otherwise write it again.",
        ) from error
