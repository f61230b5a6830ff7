"""The headers of CSV files: Spark takes the first file's and reads the others by position, whatever theirs say."""

import csv
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.byte_checks import UNREADABLE, find_codec
from lakewriter.source.storage import NotListable, find_store, to_path

Header = tuple[str, ...]

_THREADS: Final = 16
_FIRST_BYTES: Final = 64 * 1024
"""As much of a file as holds most headers: the driver reads it of every file."""
_MOST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Headers:
    """Files by their header, where there is more than one; a note where it cannot be told."""

    groups: Mapping[Header, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def read_headers(uris: Sequence[str], options: Mapping[str, str]) -> Headers:
    """The headers of files that Spark reads with ``options``; none where it is told to go by position."""
    given = {name.lower(): value for name, value in options.items()}
    by_position = given.get("header", "false").lower() != "true" or given.get("enforceschema", "").lower() == "true"
    if by_position or len(uris) < 2:
        return Headers({})
    groups: dict[Header, list[str]] = {}
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            paths = sorted(map(to_path, uris))
            for path, header in zip(paths, pool.map(lambda path: _read_header(path, given), paths), strict=True):
                if header:
                    groups.setdefault(header, []).append(path)
    except (NotListable, OSError, LookupError, pa.ArrowException, BotoCoreError, ClientError) as error:
        return Headers({}, (f"the files' headers are not compared, and read by position: {error}",))
    return Headers({header: tuple(files) for header, files in groups.items()} if len(groups) > 1 else {})


def _read_header(path: str, options: Mapping[str, str]) -> Header:
    """The names in a file's first row that is neither blank nor a comment."""
    if path.endswith(UNREADABLE):
        raise NotListable(f"{path!r} is compressed in a way that only Spark knows")
    store, place = find_store(path)
    with store.open().open_input_stream(place, compression=find_codec(place)) as stream:
        data = stream.read(_FIRST_BYTES)
        header, is_whole = _parse_first_row(path, data, options)
        if not is_whole and len(data) == _FIRST_BYTES:
            header, _ = _parse_first_row(path, data + stream.read(_MOST_BYTES - _FIRST_BYTES), options)
    return header


def _parse_first_row(path: str, data: bytes, options: Mapping[str, str]) -> tuple[Header, bool]:
    """The header in a file's first bytes, and whether another row follows, so that all of it is there."""
    # The block may end in the middle of a character, far behind the header.
    text = data.decode(options.get("encoding") or options.get("charset") or "utf-8", errors="ignore")
    lines = io.StringIO(text.removeprefix("\ufeff"), newline=None)
    comment, separator = options.get("comment", ""), options.get("sep") or options.get("delimiter") or ","
    rows = (line for line in lines if line.strip() and not (comment and line.lstrip().startswith(comment)))
    quote = options.get("quote", '"')
    separator = "\t" if separator == "\\t" else separator
    if len(separator) != 1 or len(quote) > 1:
        return (next(rows, "").rstrip("\n"),), next(rows, None) is not None
    reader = csv.reader(
        rows, delimiter=separator, quotechar=quote or None, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    )
    try:
        return tuple(name.strip() for name in next(reader, [])), next(rows, None) is not None
    except csv.Error as error:
        raise NotListable(f"the header of {path!r} cannot be read ({error})") from error


def require_names(table: str, headers: Headers, declared: StructType | None) -> None:
    """``SCHEMA_INCOMPATIBLE`` where columns cannot go by the names of headers that differ."""
    first = next(iter(headers.groups))
    known = None if declared is None else {field.name.lower() for field in declared}
    for header, files in headers.groups.items():
        names = [name.lower() for name in header]
        why = "has names that are blank or occur twice" if len(set(names)) < len(names) or "" in names else ""
        if known is not None and (strange := [name for name in header if name.lower() not in known]):
            why = f"has {strange[0]!r}, which read.columns does not have"
        if any("=" in part for part in files[0].split("/")[:-1]):
            why = "lies in a folder of a partition"
        if why:
            other = headers.groups[first][0]
            raise SchemaIncompatibleError(
                f"table {table!r}: the headers of its CSV files differ: {other!r} begins with {', '.join(first)}, "
                f"{files[0]!r} with {', '.join(header)}; and {files[0]!r} {why}.",
                remedy="Load the files as two tables, or read each as a view of an sql: read. With the option "
                "enforceSchema: true they are read by position, whatever their headers say.",
            )


def select_header_columns(header: Header, schema: StructType) -> StructType:
    """The columns of ``schema`` that a file has, in the order and with the names of its header."""
    fields = {field.name.lower(): field for field in schema}
    return StructType([StructField(name, fields[name.lower()].dataType) for name in header])
