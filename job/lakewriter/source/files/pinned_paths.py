"""Pin the files that another listing has named: their present sizes, versions, and folders ``key=value``."""

import fnmatch
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SourceFailedError
from lakewriter.report import format_count
from lakewriter.source.files.folder_listing import Listing, expand_braces, parse_folder, require_same_keys
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.spark_failures import make_unreadable_error
from lakewriter.source.storage import find_store

_THREADS: Final = 16


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
    with ThreadPoolExecutor(_THREADS) as pool:
        pinned = list(pool.map(partial(_pin, roots=roots, table=table), planned))
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
        if path.startswith(f"{root}/") or _matches(steps[:count], root.split("/")):
            pairs = [parse_folder(name) for name in steps[count:-1]]
            return tuple(pair for pair in pairs if pair is not None)
    return ()


def _matches(steps: Sequence[str], patterns: Sequence[str]) -> bool:
    pairs = zip(steps, patterns, strict=False)
    return len(steps) == len(patterns) and all(
        fnmatch.fnmatchcase(step, pattern.replace("[^", "[!")) for step, pattern in pairs
    )
