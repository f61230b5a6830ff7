"""List the files of a source by Spark's rules, on local disks and in S3, and pin each one's version."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import ConcurrentLoadError, SourceFailedError, SpecInvalidError
from lakewriter.report import format_count, join_first
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.spark_failures import make_unreadable_error
from lakewriter.source.storage import (
    COPYING,
    PATTERN,
    Entry,
    NotListable,
    Store,
    find_store,
    is_data_file,
    is_hidden,
    is_remote,
    map_in_threads,
)
from lakewriter.spec.table_spec import Read

_MOST_NAMES: Final = 4
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows whose key is null, as Hive and Spark name it."""
_ODD: Final = re.compile(
    r".*(?:~|\.(?:tmp|temp|part|partial|crdownload|bak|old|orig|swp))|thumbs\.db|desktop\.ini", re.IGNORECASE
)
"""Names of files that are seldom data: unfinished downloads, copies of editors, files of a desktop."""


@dataclass
class Listing:
    """The files of a source by their paths; ``missing`` is the error for a path without files."""

    files: list[StoredFile] = field(default_factory=list)
    missing: SourceFailedError | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def folder_keys(self) -> tuple[str, ...]:
        """The keys of the folders ``key=value``."""
        return tuple(key for key, _ in self.files[0].folders) if self.files else ()


def list_stored(paths: Sequence[str], options: Mapping[str, str], table: str) -> Listing:
    """Return the files at the paths, those of a folder by name; ``options`` have names in lower case.

    A folder's files are those directly in it and in its folders ``key=value``; with ``recursiveFileLookup`` all files
    below it. Names that begin with ``_`` or ``.`` are skipped. Raise ``SOURCE_FAILED`` if a path does not exist, or
    names a file that another path has named.
    """
    listing = Listing()
    for path in paths:
        try:
            store, root = find_store(path)
            _add_path(_Walk(listing, store, options, table, path), root)
        except NotListable as error:
            raise SpecInvalidError(
                f"table {table!r}: {path!r} is neither on a local disk nor in S3.",
                remedy="Give a path or an s3:// URI, or let Spark read it: read: {engine: spark}.",
            ) from error
        except (OSError, BotoCoreError, ClientError) as error:
            raise make_unreadable_error(path, error, table) from error
    _require_once(listing, table)
    require_same_keys(listing, table)
    return listing


def keep_listed(read: Read, listing: Listing, table: str) -> Listing:
    """Select the files of the load's list. Raise ``CONCURRENT_LOAD`` if one of them has changed since."""
    if read.listed is None:
        return listing
    files_by_path = {file.path: file for file in listing.files}
    files = []
    for listed in read.listed:
        file = files_by_path.get(listed.uri.removeprefix("s3://"))
        version = listed.etag if file is not None and not file.store.is_local else str(listed.modified)
        # Spark's own listing has neither ETags nor times to the nanosecond.
        is_pinned = bool(listed.etag) or listed.modified % 1000 != 0
        if file is None or file.size != listed.size or (is_pinned and file.version != version):
            raise ConcurrentLoadError(
                f"table {table!r}: {listed.uri} came or changed while the load read its source; nothing of this "
                "attempt was published.",
                remedy="Run the same job id again.",
            )
        files.append(file)
    return replace(listing, files=files)


@dataclass(frozen=True)
class _Walk:
    """One path whose files are added to a listing."""

    listing: Listing
    store: Store
    options: Mapping[str, str]
    table: str
    path: str
    skipped: list[str] = field(default_factory=list)
    """Names of files and folders that are left out, as Spark leaves them out."""
    nested: list[str] = field(default_factory=list)
    """Names of folders whose files are not read."""

    @property
    def is_recursive(self) -> bool:
        return self.options.get("recursivefilelookup", "").lower() == "true"

    def add(self, entry: Entry, folders: tuple[tuple[str, str | None], ...]) -> None:
        self.listing.files.append(StoredFile(entry.path, entry.size, entry.version, self.store, folders))


def _add_path(walk: _Walk, root: str) -> None:
    bare = root.rstrip("/") or root
    there = walk.store.list_path(bare)
    matches = list(_match(walk.store, bare)) if there is None and PATTERN & set(bare) else []
    if there is None and not matches:
        raise _make_absent_error(walk, bare)
    is_file = there is not None and [entry.path for entry in there] == [bare]
    before = len(walk.listing.files)
    if there is not None and is_file:
        walk.add(there[0], ())
    elif there is not None:
        _add_entries(walk, there, ())
    _add_is_match(walk, matches)
    added = walk.listing.files[before:]
    if not added and walk.listing.missing is None:
        walk.listing.missing = _make_nothing_error(walk)
    elif added:
        walk.listing.notes += _list_notes(walk, [] if is_file else added)


def _add_is_match(walk: _Walk, matches: Iterable[Entry]) -> None:
    for entry in matches:
        if entry.is_folder:
            _add_entries(walk, walk.store.list_folder(entry.path) or (), ())
        elif is_hidden(entry.name):
            walk.skipped.append(entry.name)
        else:
            walk.add(entry, ())


def _list_notes(walk: _Walk, added: Sequence[StoredFile]) -> Iterator[str]:
    """Yield what a user may not expect of the files that a path names."""
    path = walk.path
    if walk.nested:
        yield (
            f"{path!r} has folders whose files are not read: {join_first(walk.nested, _MOST_NAMES)}; with "
            "recursiveFileLookup: true they are"
        )
    if copying := [name for name in walk.skipped if name.endswith(COPYING)]:
        yield f"{path!r} has files that are still being copied, which are not read: {join_first(copying, _MOST_NAMES)}"
    if odd := [name for name in (file.path.rpartition("/")[2] for file in added) if _ODD.fullmatch(name)]:
        yield (
            f"{path!r} has files that are read as data, and by their names may be none: "
            f"{join_first(odd, _MOST_NAMES)}; pathGlobFilter leaves them out"
        )


def _add_entries(walk: _Walk, entries: Iterable[Entry], folders: tuple[tuple[str, str | None], ...]) -> None:
    pattern = walk.options.get("pathglobfilter", "*")
    for entry in entries:
        is_read = is_data_file(entry.name) and fnmatch.fnmatchcase(entry.name, pattern)
        is_left_out = not entry.is_folder and not is_read
        if is_left_out or is_hidden(entry.name):
            walk.skipped.append(entry.name)
        elif not entry.is_folder:
            walk.add(entry, folders)
        elif walk.is_recursive:
            _add_entries(walk, walk.store.list_folder(entry.path) or (), ())
        elif (pair := parse_folder(entry.name)) is not None:
            _add_entries(walk, walk.store.list_folder(entry.path) or (), (*folders, pair))
        else:
            walk.nested.append(entry.name)


def parse_folder(name: str) -> tuple[str, str | None] | None:
    """Return the key and value in a folder's name; None for a name without."""
    key, equals, value = name.partition("=")
    return (unquote(key), None if value == _NO_VALUE else unquote(value)) if equals else None


def _match(store: Store, pattern: str) -> Iterator[Entry]:
    """Yield the entries that match a pattern, folder by folder, without repeats."""
    seen = set[str]()
    for text in expand_braces(pattern):
        steps = text.split("/")
        fixed = next((number for number, step in enumerate(steps) if PATTERN & set(step)), len(steps))
        for entry in _match_steps(store, "/".join(steps[:fixed]), steps[fixed:]):
            if entry.path not in seen:
                seen.add(entry.path)
                yield entry


def _match_steps(store: Store, base: str, steps: Sequence[str]) -> Iterator[Entry]:
    if not steps:
        entries = store.list_path(base)
        if entries is not None:
            is_file = [entry.path for entry in entries] == [base]
            yield entries[0] if is_file else Entry(base.rpartition("/")[2], base)
        return
    for entry in store.list_folder(base or "/") or ():
        if not fnmatch.fnmatchcase(entry.name, steps[0].replace("[^", "[!")):
            continue
        if len(steps) == 1:
            yield entry
        elif entry.is_folder:
            yield from _match_steps(store, entry.path, steps[1:])


def expand_braces(text: str) -> list[str]:
    """Return a pattern with ``{a,b}`` as one pattern for each alternative."""
    inner = _BRACES.search(text)
    if inner is None:
        return [text]
    choices = (text[: inner.start()] + choice + text[inner.end() :] for choice in inner[1].split(","))
    return [expanded for choice in choices for expanded in expand_braces(choice)]


def _require_once(listing: Listing, table: str) -> None:
    seen = set[str]()
    for file in listing.files:
        if file.path in seen:
            raise SpecInvalidError(
                f"table {table!r}: read.path names {file.path!r} twice: its rows would be loaded twice.",
                remedy="Leave out one of the paths: the file is there twice, or with its folder or another pattern.",
            )
        seen.add(file.path)


def require_same_keys(listing: Listing, table: str) -> None:
    """Raise ``SOURCE_FAILED`` for files in folders of different keys."""
    for file in listing.files:
        if tuple(key for key, _ in file.folders) != listing.folder_keys:
            raise SourceFailedError(
                f"table {table!r}: {listing.files[0].path!r} and {file.path!r} lie in folders of different keys: "
                f"{', '.join(listing.folder_keys) or 'none'} and {', '.join(dict(file.folders)) or 'none'}.",
                remedy="Name the folders of one kind in read.path, or load them as two tables.",
            )


def _make_absent_error(walk: _Walk, root: str) -> SourceFailedError:
    """Return the error for a path or pattern without any match. Its remedy names what exists instead."""
    if is_remote(walk.path):
        return SourceFailedError(
            f"table {walk.table!r}: there is no object at or below {walk.path!r}.",
            remedy="Check bucket and key; keys whose names begin with _ or . are skipped.",
        )
    what = f"no file matches {walk.path!r}" if PATTERN & set(root) else f"there is no {walk.path!r}"
    return SourceFailedError(f"table {walk.table!r}: {what}.", remedy=find_nearby(Path(root)))


def find_nearby(path: Path) -> str:
    """Return the nearest names in the deepest existing folder of a path, as a sentence."""
    missing, folder = path.name, path.parent
    while not folder.exists() and folder != folder.parent:
        missing, folder = folder.name, folder.parent
    if folder.is_file():
        return f"{str(folder)!r} is a file, not a folder."
    names = [entry.name for entry in sorted(folder.iterdir()) if not is_hidden(entry.name)]
    near = difflib.get_close_matches(missing, names, 1, 0.6)
    if near:
        return f"Did you mean {str(folder / near[0])!r}?"
    return (
        f"The folder {str(folder)!r} has {join_first(names, _MOST_NAMES)}."
        if names
        else f"The folder {str(folder)!r} is empty."
    )


def _make_nothing_error(walk: _Walk) -> SourceFailedError:
    if walk.nested:
        return SourceFailedError(
            f"table {walk.table!r}: {walk.path!r} has no files, only folders: {join_first(walk.nested, _MOST_NAMES)}.",
            remedy=f"Name a folder of them, such as {walk.path.rstrip('/')}/{walk.nested[0]}; or all files below it, "
            "with options: {recursiveFileLookup: true}.",
        )
    if walk.skipped:
        return SourceFailedError(
            f"table {walk.table!r}: {walk.path!r} has only files that are skipped: "
            f"{join_first(walk.skipped, _MOST_NAMES)}.",
            remedy="No file is read whose name begins with _ or ., or that pathGlobFilter does not match.",
        )
    return SourceFailedError(
        f"table {walk.table!r}: the folder {walk.path!r} is empty.", remedy="Name a folder with files."
    )


@dataclass(frozen=True)
class PlannedFile:
    """A file that another listing has named: its path or URI, and the time of its last change, in milliseconds."""

    path: str
    modified: int


def pin_paths(planned: Sequence[PlannedFile], root: str, options: Mapping[str, str], table: str) -> Listing:
    """Return the ``planned`` files, which were listed below ``root``, a path or a pattern.

    Raise ``SOURCE_FAILED`` for a file that no longer exists. A note names changed files. ``options`` have names in
    lower case.
    """
    is_recursive = options.get("recursivefilelookup", "").lower() == "true"
    roots = [] if is_recursive else [pattern.rstrip("/") for pattern in _list_roots(root)]
    pinned = map_in_threads(partial(_pin, roots=roots, table=table), planned)
    listing = Listing([file for file, _ in pinned])
    changed = [file.path for file, is_changed in pinned if is_changed]
    if changed:
        listing.notes.append(
            f"{format_count(len(changed), 'file')} changed between Spark's listing and the batch, such as "
            f"{changed[0]!r}: read as of now, and never again"
        )
    require_same_keys(listing, table)
    return listing


def _list_roots(root: str) -> list[str]:
    """Return the root as files' paths have it, and the patterns that it expands to."""
    bare = find_store(root)[1]
    return list(dict.fromkeys([bare, *expand_braces(bare)]))


def _pin(planned: PlannedFile, roots: Sequence[str], table: str) -> tuple[StoredFile, bool]:
    """Return a file, and True if it has changed since it was planned."""
    path = planned.path
    try:
        store, bare = find_store(path)
        folders = _find_folders(bare, roots)
        entry = store.find(bare)
        if entry is not None:
            is_changed = entry.modified // store.precision != planned.modified * 1_000_000 // store.precision
            return StoredFile(bare, entry.size, entry.version, store, folders), is_changed
    except (OSError, BotoCoreError, ClientError) as error:
        raise make_unreadable_error(path, error, table) from error
    raise SourceFailedError(
        f"table {table!r}: {path!r} is no longer there: it arrived, and went before its batch has read it.",
        remedy="Put it back, and the run goes on; or begin anew without it, with lakewriter reset --backfill.",
    )


def _find_folders(path: str, roots: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the keys and values in the names of the folders between a root and a file."""
    steps = path.split("/")
    for root in roots:
        count = len(root.split("/"))
        if path.startswith(f"{root}/") or _is_match(steps[:count], root.split("/")):
            pairs = [parse_folder(name) for name in steps[count:-1]]
            return tuple(pair for pair in pairs if pair is not None)
    return ()


def _is_match(steps: Sequence[str], patterns: Sequence[str]) -> bool:
    pairs = zip(steps, patterns, strict=False)
    return len(steps) == len(patterns) and all(
        fnmatch.fnmatchcase(step, pattern.replace("[^", "[!")) for step, pattern in pairs
    )
