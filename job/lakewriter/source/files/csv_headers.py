"""Match the columns of CSV files whose headers may differ: by exact name, by name without case and blanks, or by
position.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from lakewriter.errors import LakeError, SchemaIncompatibleError, SpecInvalidError
from lakewriter.report import format_count, join_first
from lakewriter.spec.table_spec import Read, TableSpec

Header = tuple[str, ...]
Positions = tuple[int, ...]
"""The index of each column's field in a file, -1 if the file lacks it."""

SEPARATORS: Final = (";", "\t", "|", ",")
_MOST_NOTES = 20
_MOST_NAMES = 4
_BY_POSITION: Final = re.compile(r"_c(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class Columns:
    """The names of all columns, their positions in the files of each header, and notes on differences."""

    names: tuple[str, ...]
    positions: Mapping[Header, Positions]
    notes: tuple[str, ...] = ()


def find_separator(read: Read, names: Sequence[str]) -> str | None:
    """Find the character that a CSV file's header has between names, if the header was read as one column."""
    if len(names) != 1 or read.kind.name != "csv":
        return None
    return next((character for character in SEPARATORS if character in names[0]), None)


def make_separator_remedy(separator: str) -> str:
    """Say what separates the columns."""
    return f"Give the character between its values: read: {{options: {{sep: {json.dumps(separator)}}}}}."


def require_separated(table: TableSpec, names: Sequence[str]) -> None:
    """Raise ``SPEC_INVALID`` if all columns were read as one; one that the file names is meant."""
    separator = find_separator(table.read, names)
    if separator is None or table.read.columns or names[0].lower() in map(str.lower, (*table.columns, *table.names)):
        return
    raise SpecInvalidError(
        f"table {table.id!r}: the source has one column, {names[0]!r}, with {separator!r} in its name.",
        remedy=f"{make_separator_remedy(separator)} If it is one column, name it: columns: "
        f"{{{json.dumps(names[0])}: string}}.",
    )


def match_headers(
    table: str, headers: Mapping[Header, Sequence[str]], declared: Sequence[str] | None, earlier: Sequence[str] = ()
) -> Columns:
    """Return the columns of files by their headers. Raise ``SCHEMA_INCOMPATIBLE`` if headers differ and their names
    cannot identify the columns.

    Args:
        table: The table's name, for messages.
        headers: The paths of the files of each header, in the order of the files.
        declared: The names that the table declares for all columns.
        earlier: The names that columns without one have had in earlier loads.
    """
    if len(headers) == 1:
        ((header, paths),) = headers.items()
        if declared is None:
            return name_header(header, paths[0], earlier)
        return _match_one(table, header, paths[0], declared)
    _require_names(table, headers, declared)
    twins = {key for header in headers for key, count in Counter(map(_fold, header)).items() if count > 1}
    columns: dict[str, str] = {}
    for names in headers if declared is None else [declared]:
        for name in names:
            columns.setdefault(_make_key(name, twins), name)
    positions = {header: _find_positions(columns, [_make_key(name, twins) for name in header]) for header in headers}
    return Columns(tuple(columns.values()), positions, _note_absent(list(columns.values()), headers, positions))


def _match_one(table: str, header: Header, path: str, declared: Sequence[str]) -> Columns:
    """Return the declared columns of files that all have one header."""
    positions = tuple(range(len(header)))
    if len(declared) != len(header):
        raise SchemaIncompatibleError(
            f"table {table!r}: read.columns has {format_count(len(declared), 'column')}, and the header of {path!r} "
            f"has {len(header)}: {join_first(header, _MOST_NAMES)}.",
            remedy="Give read.columns a name and a type for each column of the file.",
        )
    folded, wanted = [_fold(name) for name in header], [_fold(name) for name in declared]
    if folded == wanted or len(set(folded)) < len(folded) or set(folded) != set(wanted):
        note = f"read.columns names the columns of {path!r} by their positions: its header has {', '.join(header)}"
        return Columns(tuple(declared), {header: positions}, () if folded == wanted else (note,))
    return Columns(tuple(declared), {header: _find_positions(wanted, folded)})


def name_columns(header: Header, earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of a header. A column without a name gets the first of the names that such columns had
    ``earlier`` and none before it has now, else its position.
    """
    had = _list_names_left(header, earlier)
    taken, waiting = set(had), iter(had)
    names = []
    for position, name in enumerate(header):
        if not name:
            # By the order among themselves: a column that comes in front of them moves their positions.
            free = (other for number in count(position) if (other := f"_c{number}") not in taken)
            name = next(waiting, None) or next(free)
            taken.add(name)
        names.append(name)
    return tuple(names)


def list_nameless(sources: Sequence[str]) -> tuple[str, ...]:
    """Return those of a table's source columns that files have without a name; none if all are, as in files without
    headers, whose columns have positions.
    """
    names = tuple(name for name in sources if _BY_POSITION.fullmatch(name))
    return () if len(names) == len(sources) else names


def _list_names_left(header: Header, earlier: Sequence[str]) -> list[str]:
    """Return the earlier names that no column of the header is called."""
    here = Counter(header)
    left = []
    for name in earlier:
        if here[name]:
            here[name] -= 1
        else:
            left.append(name)
    return left


def name_header(header: Header, path: str, earlier: Sequence[str]) -> Columns:
    """Return the columns of files with one header under its names."""
    names = name_columns(header, earlier)
    return Columns(names, {header: tuple(range(len(header)))}, tuple(_note_blanks(header, names, path, earlier)))


def _note_blanks(header: Header, names: Sequence[str], path: str, earlier: Sequence[str]) -> Iterator[str]:
    """Yield a note for each column without a name that gets one which another column has, or an earlier load gave."""
    others = {_fold(name) for name in header}
    had = _list_names_left(header, earlier)
    for position, name in enumerate(names):
        if header[position]:
            continue
        if name in others:
            yield (
                f"column {position + 1} of {path!r} has no name and gets {name!r}, which another column is called: the "
                "second of them is numbered"
            )
        elif name != f"_c{position}":
            why = f"stays {name!r}, as earlier loads called it"
            if name not in had:
                why = f"gets {name!r}: earlier loads called another one {f'_c{position}'!r}"
            yield f"column {position + 1} of {path!r} has no name and {why}"
    blanks = header.count("")
    if had and blanks not in (0, len(had)):
        yield (
            f"{format_count(blanks, 'column')} of {path!r} without a name, {len(had)} in earlier loads: they are "
            "matched in their order"
        )


def _find_positions(columns: Iterable[str], keys: Sequence[str]) -> Positions:
    positions = {key: position for position, key in reversed(list(enumerate(keys)))}
    return tuple(positions.get(key, -1) for key in columns)


def _fold(name: str) -> str:
    return name.strip().lower()


def _make_key(name: str, twins: set[str]) -> str:
    """Return the key of a column: its exact name if a file has two that differ by case or blanks alone, else the folded
    one.
    """
    return name if _fold(name) in twins else _fold(name)


def _require_names(table: str, headers: Mapping[Header, Sequence[str]], declared: Sequence[str] | None) -> None:
    first = next(iter(headers))
    declared_names = None if declared is None else {_fold(name) for name in declared}
    for header, paths in headers.items():
        strange = [name for name in header if declared_names is not None and _fold(name) not in declared_names]
        why = (
            "has names that are blank or occur twice" if len(set(header)) < len(header) or not all(map(_fold, header))
            else f"has {strange[0]!r}, which read.columns does not have" if strange
            else ""
        )  # fmt: skip
        if why:
            raise make_headers_error(table, headers[first][0], first, paths[0], header, why)


def make_headers_error(table: str, first_path: str, first: Header, path: str, header: Header, why: str) -> LakeError:
    """Make the error for files whose headers differ."""
    return SchemaIncompatibleError(
        f"table {table!r}: the headers of its CSV files differ: {first_path!r} begins with {', '.join(first)}, "
        f"{path!r} with {', '.join(header)}; and {path!r} {why}.",
        remedy="Load the files as two tables, or read each as a view of an sql: read. With the option "
        "enforceSchema: true they are read by position, whatever their headers say.",
    )


def _note_absent(
    names: Sequence[str], headers: Mapping[Header, Sequence[str]], positions: Mapping[Header, Positions]
) -> tuple[str, ...]:
    total = sum(map(len, headers.values()))
    # A header's hash takes all of its names.
    files = [(positions[header], paths) for header, paths in headers.items()]
    notes = []
    for index, name in enumerate(names):
        without = [path for at, paths in files if at[index] < 0 for path in paths]
        if without:
            notes.append(
                f"column {name!r} is not in {len(without)} of {total} files, such as {without[0]!r}: null in their rows"
            )
    more = len(notes) - _MOST_NOTES
    return tuple(notes if more <= 0 else [*notes[:_MOST_NOTES], f"{more} more columns differ between files"])
