"""List the files of a source, each with its version, and read only the files of a list."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.file_look import read_plain_options
from lakewriter.source.files.folder_listing import list_stored
from lakewriter.source.session import isolate
from lakewriter.source.spark_failures import SPARK_ERRORS, find_useful_line, make_unreadable_error
from lakewriter.source.storage import PATTERN, find_store, is_data_file, is_hidden, is_remote
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.table_spec import Read

_PATTERN: Final = {*PATTERN, "\\"}
_LISTING_OPTIONS: Final = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter")
"""Spark's options that choose files."""


def list_inputs(
    read: Read, table: str, spark_factory: Callable[[], SparkSession]
) -> tuple[tuple[ListedFile, ...], bool]:
    """List the files of a read, and return True if every reader of the product lists the same files.

    Spark lists them if only Spark can: a pattern or folders in S3, another file system. Raise ``SOURCE_FAILED`` if a
    path does not exist or cannot be listed.
    """
    options = read_plain_options(read)
    is_plain = not any(name in options for name in _LISTING_OPTIONS)
    if is_plain and all(map(is_remote, read.paths)):
        files = _list_objects(read, table)
        if files is not None:
            return tuple(files), True
    is_local = not any("://" in path.removeprefix("file://") for path in read.paths)
    if is_local and not any(name.startswith("modified") for name in options):
        return tuple(_list_local(read, table)), True
    return tuple(_list_by_spark(read, table, options, isolate(spark_factory()))), False


def _list_local(read: Read, table: str) -> Iterator[ListedFile]:
    for file in list_stored(read.paths, read_plain_options(read), table).files:
        yield ListedFile(file.path, file.size, "", int(file.version))


def _list_objects(read: Read, table: str) -> list[ListedFile] | None:
    """Return None if the paths are patterns or hold folders."""
    files: list[ListedFile] = []
    for path in read.paths:
        if _PATTERN & set(path):
            return None
        try:
            store, root = find_store(path)
            entries = store.list_path(root.strip("/")) or []
        except (BotoCoreError, ClientError) as error:
            raise make_unreadable_error(path, error, table) from error
        if any(entry.is_folder and not is_hidden(entry.name) for entry in entries):
            return None
        files += [
            ListedFile(f"s3://{entry.path}", entry.size, entry.version, entry.modified)
            for entry in entries
            if not entry.is_folder and is_data_file(entry.name)
        ]
    return files


def _list_by_spark(read: Read, table: str, options: Mapping[str, str], session: SparkSession) -> Iterator[ListedFile]:
    """Yield the files as Spark lists them for any format, without reading their contents."""
    reader = session.read.format("binaryFile")
    for name in _LISTING_OPTIONS:
        if name in options:
            reader = reader.option(name, options[name])
    try:
        listing = reader.load(list(read.paths))
        rows = listing.select("path", "length", F.unix_micros("modificationTime").alias("at")).collect()
    except SPARK_ERRORS as error:
        raise SourceFailedError(
            f"table {table!r}: the files of {', '.join(read.paths)} cannot be listed: {find_useful_line(str(error))}",
            remedy="Check the path, and that Spark may list it.",
        ) from error
    for row in rows:
        uri = row.path.replace("s3a://", "s3://", 1) if row.path.startswith("s3a://") else row.path
        yield ListedFile(uri.removeprefix("file:"), row.length, "", row.at * 1000)


def restrict(read: Read, lists: Mapping[int, tuple[ListedFile, ...]], samples: Mapping[int, ListedFile]) -> Read:
    """Return the read with the files of ``lists``, by the ``id`` of each read: the read itself or one of its views.

    A read in ``samples`` has the columns of that file, and no row.
    """
    changes: dict[str, object] = {}
    if read.views:
        changes["views"] = {name: restrict(view, lists, samples) for name, view in read.views.items()}
    if id(read) in samples:
        changes |= {"listed": (samples[id(read)],), "is_empty": True}
    elif id(read) in lists:
        changes["listed"] = lists[id(read)]
    return read.model_copy(update=changes)


def list_load_paths(read: Read) -> list[str]:
    """List what Spark is to load: the paths of a read, or its files one by one if some are left out."""
    if read.listed is None or (read.files == "all" and not read.is_empty):
        return list(read.paths)
    # Spark takes these characters for a pattern.
    return [re.sub(r"([\[\]{}*?\\])", r"\\\1", _to_loaded(file.uri, read)) for file in read.listed]


def _to_loaded(uri: str, read: Read) -> str:
    is_s3a = uri.startswith("s3://") and any(path.startswith("s3a://") for path in read.paths)
    return f"s3a{uri.removeprefix('s3')}" if is_s3a else uri


def add_base_path(read: Read, options: dict[str, str]) -> dict[str, str]:
    """Return the reader's options with the folder below which folders ``key=value`` are columns."""
    if read.listed is None or list_load_paths(read) == list(read.paths) or "basepath" in map(str.lower, options):
        return options
    base = find_base_path(read, read.listed)
    return options if base is None else {**options, "basePath": base}


def find_base_path(read: Read, files: Sequence[ListedFile]) -> str | None:
    """Return the folder below which folders ``key=value`` are columns; None if there is no such folder.

    Raise ``SPEC_INVALID`` if they lie below several paths.
    """
    roots = [path.rstrip("/") for path in read.paths]
    if not any("=" in part for file in files for part in _get_folders(file.uri, roots)):
        return None
    if len(roots) > 1:
        raise SpecInvalidError(
            f"'files: new' reads {', '.join(read.paths)}, which have folders 'key=value'; expected one path.",
            remedy="Name the folder that has them all.",
        )
    return None if _PATTERN & set(roots[0]) else roots[0]


def _get_folders(uri: str, roots: Sequence[str]) -> list[str]:
    bare = [root.replace("s3a://", "s3://", 1).removeprefix("file://") for root in roots]
    root = next((candidate for candidate in bare if uri.startswith(f"{candidate}/")), "")
    return uri.removeprefix(root).split("/")[:-1]
