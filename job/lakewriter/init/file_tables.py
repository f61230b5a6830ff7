"""Find the tables that files hold: a file, or a folder of equal files."""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from lakewriter import aws
from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.init.samples import COMPRESSED, Head, read_head
from lakewriter.source.storage import NotListable, find_store, is_hidden, is_remote
from lakewriter.source.task_sizes import SourceFile

_THREADS: Final = 16
_MOST_FILES: Final = 200
"""At most so many files of a folder are compared by their beginnings, evenly spread."""
_ALIKE: Final = 0.7
"""Columns in common of all that two files have: as many make them one table."""
_ALIKE_BY_NAME: Final = 0.5
"""The same for files whose names begin alike."""
_PARTITION: Final = re.compile(r"[^=/]+=[^/]*")
_PART: Final = re.compile(r"(part|data|file|run|batch|chunk|split)?[-_.]?[0-9a-f-]*", re.IGNORECASE)
_DATED: Final = re.compile(r"[-_. ]*\d[\d\-_.T: ]*Z?$")
_JOINT: Final = re.compile(r"[-_. ]*")
"""This is between a name and its date."""
_DATE: Final = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?P<joint>[-_.]?)(?:0[1-9]|1[0-2])((?P=joint)(?:0[1-9]|[12]\d|3[01]))?(\d{4}|\d{6})?(?!\d)"
)
"""A month or a day in the name of a file or folder, perhaps with a time behind it."""
_TIME_KEYS: Final = frozenset(("year", "month", "day", "hour", "date", "dt", "ds"))


@dataclass(frozen=True)
class FileTable:
    """Files of one table; ``paths`` are what ``spark.read`` is given, ``problems`` are files that were passed over.

    ``growth`` says why more files are expected beside these; it is blank where nothing shows that.
    """

    name: str
    paths: tuple[str, ...]
    files: tuple[SourceFile, ...]
    head: Head
    growth: str = ""
    problems: tuple[str, ...] = ()


def find_tables(path: str) -> list[FileTable]:
    """Find the tables in a file or a folder, folders inside it included; ``SOURCE_FAILED`` where there is none."""
    bare = path.rstrip("/") or path
    tables, problems = _find_below(bare)
    if not tables:
        said = f"{problems[0]}" if problems else f"there is no file in {path!r} that can be a table."
        raise SourceFailedError(said, remedy="Give files of CSV, JSON, Parquet, ORC or Avro, or a folder of them.")
    return [replace(table, problems=() if number else tuple(problems)) for number, table in enumerate(tables)]


def _find_below(path: str) -> tuple[list[FileTable], list[str]]:
    files, folders = list_folder(path)
    if folders and all(_PARTITION.fullmatch(_get_base(folder)) for folder in folders):
        leaves = [file for folder in folders for file in _list_leaves(folder)]
        heads, problems = _read_heads(leaves)
        first = next(iter(heads.values()), None)
        growth = _explain_folders(folders)
        whole = [FileTable(_name_table(_get_base(path)), (path,), tuple(leaves), first, growth)] if first else []
        return whole, problems
    tables, problems = _group_files(path, files)
    for folder in folders:
        inner, more = _find_below(folder)
        tables += inner
        problems += more
    return tables, problems


def list_folder(path: str) -> tuple[list[SourceFile], list[str]]:
    """List the files and folders directly in ``path``, each in the order of names; a file is its own only content."""
    try:
        store, root = find_store(path)
        entries = store.list_path(root.rstrip("/") or root)
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise SourceFailedError(
            f"{path} cannot be listed: {error}.", remedy="Check the bucket's name and this machine's AWS credentials."
        ) from error
    except NotListable:
        entries = None
    if entries is None and not is_remote(path):
        raise SourceFailedError(f"there is no file or folder {path!r}.", remedy="Give a path that exists.")
    if entries is not None and [entry.path for entry in entries] == [root]:
        return [SourceFile(path, entries[0].size)], []
    shown = [entry for entry in entries or () if not is_hidden(entry.name)]
    if not shown and is_remote(path):
        raise SourceFailedError(f"nothing lies under {path}.", remedy="Give a prefix that has objects.")
    # The path stays as it is given.
    bare = path.rstrip("/")
    files = [SourceFile(f"{bare}/{entry.name}", entry.size) for entry in shown if not entry.is_folder]
    return files, [f"{bare}/{entry.name}" for entry in shown if entry.is_folder]


def _list_leaves(folder: str) -> Iterator[SourceFile]:
    files, folders = list_folder(folder)
    yield from files
    for inner in folders:
        yield from _list_leaves(inner)


def _group_files(folder: str, files: Sequence[SourceFile]) -> tuple[list[FileTable], list[str]]:
    heads, problems = _read_heads(files)
    groups: list[list[SourceFile]] = []
    for file in files:
        if file in heads:
            group = next((group for group in groups if _is_alike(heads, group[0], file)), None)
            if group is None:
                groups.append([file])
            else:
                group.append(file)
    if len(groups) == 1 and files[0].path != folder and not problems and len(heads) == len(files):
        (group,) = groups
        if len(group) > 1 or _PART.fullmatch(_get_stem(group[0].path)):
            name = _name_dated(group) or _name_table(_get_base(folder))
            return [FileTable(name, (folder,), tuple(group), heads[group[0]], _explain_files(group))], problems
    is_named = bool(files) and files[0].path == folder
    return [_make_table(group, heads[group[0]], files, is_named=is_named) for group in groups], problems


def _make_table(group: Sequence[SourceFile], head: Head, files: Sequence[SourceFile], *, is_named: bool) -> FileTable:
    """Make the table of files that are alike; ``is_named`` is True for a file that the user has named by itself."""
    paths = [file.path for file in group]
    folder = _name_table(_get_base(paths[0].rpartition("/")[0]))
    growth = "" if is_named else _explain_files(group)
    pattern = None
    if len(paths) > 1 or growth:
        pattern = _find_pattern(paths, [file.path for file in files if file not in group])
    chosen = (pattern,) if pattern is not None else tuple(paths)
    if len(paths) == 1:
        name = _strip_date(_get_stem(paths[0])) or folder
    else:
        name = _name_dated(group) or _strip_date(_get_base(_find_common_start(paths))) or folder
    # A list of files takes no other.
    return FileTable(name, chosen, tuple(group), head, growth if pattern is not None else "")


def _explain_files(group: Sequence[SourceFile]) -> str:
    """Say why a folder will have more files like these; blank where their names do not show it."""
    stems = [_get_stem(file.path) for file in group]
    if all(_DATE.search(stem) for stem in stems):
        return "the name has a date" if len(stems) == 1 else "their names have dates"
    return "their names are numbered" if len(stems) > 1 and _name_dated(group) else ""


def _explain_folders(folders: Sequence[str]) -> str:
    """Say why more partitions will come; blank where the keys are no times."""
    parts = [_get_base(folder).partition("=") for folder in folders]
    is_dated = all(key.lower() in _TIME_KEYS or _DATE.search(value) for key, _, value in parts)
    return "its folders are dates" if is_dated else ""


def _find_pattern(paths: Sequence[str], others: Sequence[str]) -> str | None:
    """Find a pattern that takes these files, none of the others, and tomorrow's file."""
    ends = {path.rpartition("/")[2].partition(".")[2] for path in paths}
    start = _find_common_start(paths) if paths[1:] else paths[0].removesuffix(f".{next(iter(ends))}")
    if len(ends) != 1 or set(start) & set("*?[]{}"):
        return None
    folder, _, base = start.rpartition("/")
    before = f"{folder}/{base[: len(base) - len(match.group())] if (match := _DATED.search(base)) else base}"
    joint = _JOINT.match(paths[0][len(before) :])
    dated = f"{before}{joint.group() if joint else ''}[0-9]*.{next(iter(ends))}"
    for pattern in (dated, f"{start}*.{next(iter(ends))}"):
        taken = {path for path in (*paths, *others) if PurePosixPath(path).match(pattern)}
        if taken == set(paths):
            return pattern
    return None


def _name_dated(group: Sequence[SourceFile]) -> str:
    """Name the table of files whose names differ in a date or number alone; blank for other files."""
    names = {_strip_date(_get_stem(file.path)) for file in group}
    name = names.pop()
    return "" if names or _PART.fullmatch(_get_stem(group[0].path)) else name


def _read_heads(files: Sequence[SourceFile]) -> tuple[dict[SourceFile, Head], list[str]]:
    """Return the beginnings of the files, and why others have none."""
    if len(files) > _MOST_FILES:
        step = len(files) / _MOST_FILES
        looked = [files[int(number * step)] for number in range(_MOST_FILES)]
    else:
        looked = list(files)

    def read(file: SourceFile) -> Head | LakeError:
        try:
            return read_head(file)
        except LakeError as error:
            return error

    with ThreadPoolExecutor(_THREADS) as pool:
        heads = dict(zip(looked, pool.map(read, looked), strict=True))
    problems = [head.message for head in heads.values() if isinstance(head, LakeError)]
    readable = {file: head for file, head in heads.items() if isinstance(head, Head)}
    if len(files) > len(looked) and readable:
        first = next(iter(readable))
        if all(_is_alike(readable, first, file) for file in readable):
            readable = {file: readable.get(file, readable[first]) for file in files}
        else:
            problems.append(
                f"{len(files):,} files lie in one folder and are not alike: give folders, one for each table"
            )
    return readable, problems


def _is_alike(heads: dict[SourceFile, Head], one: SourceFile, other: SourceFile) -> bool:
    first, second = heads[one], heads[other]
    if first.format != second.format or (first.csv and second.csv and first.csv.separator != second.csv.separator):
        return False
    names, others = {name.lower() for name in first.names}, {name.lower() for name in second.names}
    if not names and not others:
        return True
    stems = _find_common_start([_get_stem(one.path).lower(), _get_stem(other.path).lower()])
    least = _ALIKE_BY_NAME if len(stems.rstrip("0123456789-_. ")) > 2 else _ALIKE
    return len(names & others) >= least * len(names | others)


def _find_common_start(texts: Sequence[str]) -> str:
    # By characters, not by folders: names such as orders_1 and orders_2 begin alike.
    return os.path.commonprefix(texts)  # noqa: RUF071


def _get_base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _get_stem(path: str) -> str:
    base = _get_base(path)
    for ending in COMPRESSED:
        base = base.removesuffix(ending)
    return base.rpartition(".")[0] or base


def _name_table(text: str) -> str:
    """Return a table's name from that of a file or folder, without the date or number that such a name ends with."""
    return _strip_date(text) or text or "table"


def _strip_date(text: str) -> str:
    return _DATED.sub("", text).strip("-_. ")
