"""Draft a lake.yaml from what there is: files, a vendor's configuration, a catalog, a database."""

import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.yaml_text import write_flow
from lakewriter.dialects.descriptions import describe
from lakewriter.dialects.registry import BY_TYPE
from lakewriter.errors import SpecInvalidError
from lakewriter.init.proposals import CheckProposal
from lakewriter.init.spellings import Spelling, write_statement
from lakewriter.source.storage import is_remote
from lakewriter.spec.table_spec import Mode

WIDTH: Final = 112
_INDENT: Final = "  "


@dataclass(frozen=True)
class Line:
    """A key at ``depth``; its value in one line, or None for a mapping below it. ``is_item`` begins an item of a list,
    ``is_off`` puts the whole line into a comment."""

    depth: int
    key: str
    value: Any = None
    comment: str = ""
    is_item: bool = False
    is_off: bool = False
    is_mapping: bool = False

    def write(self) -> list[str]:
        """Return the line, or the comment above it and the line."""
        start = _INDENT * (self.depth - self.is_item) + ("- " if self.is_item else "")
        text = f"{start}{self.key}:" + ("" if self.is_mapping else f" {write_flow(self.value)}")
        if self.is_off:
            text = f"{_INDENT * (self.depth - self.is_item)}# {text.strip()}"
        return _add_comment(text, self.comment, self.depth)


SCHEMA_FILE: Final = "lake.schema.json"
NO_BUCKET: Final = "change-me"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_-]+")
_LONGEST_NAME: Final = 63
_VIEW: Final = "files"
_REPEATS: Final = (
    "its files repeat each other's rows, and files: new would append them again. A cursor, or in Iceberg mode: merge, "
    "takes each row once"
)


@dataclass(frozen=True)
class TableDraft:
    """One entry of ``tables``. ``seen`` says what was looked at.

    ``key``, ``cursor`` and ``columns`` come with their evidence; what is not certain is commented out.
    """

    name: str
    read: Mapping[str, Any]
    seen: str
    schema: str = ""
    key: tuple[tuple[str, ...], str, bool] = ((), "", False)
    cursor: tuple[str, str, bool] | None = None
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """Reasons why columns of text that look like more stay what they are."""
    spellings: tuple[Spelling, ...] = ()
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Maps columns that are read as another type to the source's type and that one."""
    names: Mapping[str, Any] | None = None
    """The keys that name it, where they are not the dialect's for ``name`` and ``schema``."""
    expect: tuple[CheckProposal, ...] = ()
    lag: str | None = None
    """A row may be committed so late with a value below the cursor."""
    growth: str = ""
    """Says why the source's folder will have more files; blank if nothing shows that."""
    repeats: str = ""
    """Says by which key the source's files repeat each other's rows."""
    is_small: bool = False
    """True if each load may read the whole source."""
    is_off: bool = False
    """True if the whole entry is commented out."""

    def choose_way(self, kind: str) -> "Way":
        """Choose what a second load does, for a destination of the type ``kind``."""
        if self.growth and not self.repeats:
            return Way.NEW_FILES
        if self.cursor is not None and self.cursor[2]:
            return Way.NEW_ROWS
        mode = BY_TYPE[kind].replaces
        # A mode that replaces file by file deletes what lies there: a person chooses it.
        is_replaced = mode is not None and mode.replaces_at_once and self.is_small and not self.repeats
        return Way.REFRESH if is_replaced else Way.APPEND


class Way(StrEnum):
    """What each load of a table does, as ``init`` prints it."""

    NEW_ROWS = "rows above the cursor"
    NEW_FILES = "new files"
    REFRESH = "replaces the table"
    APPEND = "appends all rows again"


@dataclass(frozen=True)
class Draft:
    """A whole file. ``destination`` are its keys, ``source`` is in place of ``tables`` for messages."""

    pipeline: str
    destination: Mapping[str, Any]
    tables: tuple[TableDraft, ...] = ()
    source: Mapping[str, tuple[Any, str]] | None = None
    comments: Mapping[str, str] = field(default_factory=dict)
    """Replaces the descriptions of keys of ``destination``."""
    notes: tuple[str, ...] = ()
    checkpoint: str = ""
    """Where a continuous run remembers what it has read; blank for a pipeline that need not run so."""

    @property
    def kind(self) -> str:
        """The destination's type."""
        return str(self.destination["type"])


def make_destination(kind: str, bucket: str | None, region: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the keys of a new destination, and comments on what its user has still to put in."""
    if kind not in BY_TYPE:
        raise SpecInvalidError(f"--type {kind!r} is no destination; expected one of: {', '.join(BY_TYPE)}.")
    keys = BY_TYPE[kind].first_keys(kind, bucket or NO_BUCKET, region)
    bucket_key = next(key for key, value in keys.items() if NO_BUCKET in str(value)) if bucket is None else None
    return keys, {bucket_key: "put your own bucket here; --local needs none"} if bucket_key else {}


def name_pipeline(text: str) -> str:
    """Return a pipeline's name from a folder's, a file's or a database's."""
    name = _NOT_IN_NAMES.sub("-", text.lower()).strip("-_")[:_LONGEST_NAME].rstrip("-_")
    return name or "lake"


def make_relative(path: str, folder: Path) -> str:
    """Return ``path`` as a lake.yaml in ``folder`` names it: relative where it lies near, else whole."""
    if is_remote(path):
        return path
    whole = os.path.abspath(path)  # noqa: PTH100 - a pattern is no path that can be resolved
    relative = os.path.relpath(whole, folder.resolve())
    return whole if relative.startswith(os.path.join("..", "..")) else relative  # noqa: PTH118


def write_draft(draft: Draft, command: str) -> str:
    """Write the file's text; ``command`` is what drafted it."""
    appended = _note_appended(draft)
    lines: list[Line | str] = [
        f"# yaml-language-server: $schema={SCHEMA_FILE}",
        *_write_comment(f"Drafted by: {command}"),
        *[text for note in (*filter(None, [appended]), *draft.notes) for text in _write_comment(f"NOTE: {note}")],
        Line(0, "pipeline", draft.pipeline, describe(draft.kind, "pipeline")),
        "",
        Line(0, "destination", is_mapping=True),
        *[Line(1, key, value, _comment_on(draft, key)) for key, value in draft.destination.items()],
        "",
    ]
    if draft.checkpoint:
        why = "where run --continuous remembers what it has read; on EMR an s3:// path"
        lines += [Line(0, "checkpoint", draft.checkpoint, why), ""]
    if draft.source is not None:
        lines += _write_mapping("source", draft.source, 0)
    if draft.tables:
        lines.append(Line(0, "tables", is_mapping=True))
        for number, table in enumerate(draft.tables):
            lines += _write_table(draft.kind, table, is_first=number == 0)
    return "\n".join(_write_lines(lines)).rstrip("\n") + "\n"


def _comment_on(draft: Draft, key: str) -> str:
    if key == "type":
        others = [kind for kind in BY_TYPE if kind != draft.kind]
        return f"whose layout; or {', '.join(others)}"
    return draft.comments.get(key) or _describe(draft.kind, f"destination.{key}")


def _describe(kind: str, path: str) -> str:
    try:
        return describe(kind, path)
    except LookupError:
        return ""


def _write_table(kind: str, table: TableDraft, *, is_first: bool) -> list[Line | str]:
    """Return a table's lines, a blank one before all but the first."""
    names = table.names or BY_TYPE[kind].first_table_keys(table.name, table.schema)
    lines: list[Line | str] = [] if is_first else [""]
    for number, (key, value) in enumerate(names.items()):
        lines.append(Line(2, key, value, table.seen if number == 0 else "", is_item=number == 0))
    lines += [text for note in table.notes for text in _write_comment(f"NOTE: {note}", 2)]
    if table.repeats:
        lines += _write_comment(f"NOTE: {_REPEATS}: {table.repeats}", 2)
    way = table.choose_way(kind)
    lines += [_write_read(table, way), *_write_sql(table, way)]
    lines += [Line(2, key, value) for key, value in table.more.items()]
    lines += _write_key(table)
    lines += _write_cursor(table, way)
    lines += _write_mode(table, kind, way)
    lines += _write_columns(table)
    if table.retyped:
        changes = "; ".join(f"{name} {before} -> {after}" for name, (before, after) in table.retyped.items())
        lines += _write_comment(f"becomes on the way: {changes}", 2)
    lines += [text for why in table.texts for text in _write_comment(why, 2)]
    lines += _write_expect(table)
    return [replace(line, is_off=True) if isinstance(line, Line) else line for line in lines] if table.is_off else lines


def _write_read(table: TableDraft, way: Way) -> Line:
    if way is not Way.NEW_FILES:
        return Line(2, "read", dict(table.read))
    why = f"files: new: each load reads the files that no earlier load has read; {table.growth}"
    return Line(2, "read", {**table.read, "files": "new"}, why)


def _write_sql(table: TableDraft, way: Way) -> list[Line | str]:
    """Return the read that types what only SQL can, in place of the one above it."""
    spellings = [spelling for spelling in table.spellings if spelling.entry is None]
    if not spellings:
        return []
    read = {"sql": write_statement(spellings, _VIEW), "views": {_VIEW: _write_read(table, way).value}}
    why = "; ".join(f"{spelling.column}: {spelling.reason}" for spelling in spellings)
    return [Line(2, "read", read, f"in place of the line above, to type them: {why}", is_off=True)]


def _write_columns(table: TableDraft) -> list[Line | str]:
    """Return the types of columns; a spelling that has to be named is for a person to take in."""
    named = [spelling for spelling in table.spellings if spelling.entry is not None]
    if not table.columns and not named:
        return []
    head = Line(2, "columns", is_mapping=True, is_off=not table.columns)
    lines = [Line(3, write_flow(name), *entry) for name, entry in table.columns.items()]
    lines += [
        Line(3, write_flow(proposal.column), proposal.entry, f"text; {proposal.reason}", is_off=True)
        for proposal in named
    ]
    return [head, *lines]


def _write_key(table: TableDraft) -> list[Line | str]:
    columns, evidence, is_certain = table.key
    if columns:
        return [Line(2, "primary_key", list(columns), evidence, is_off=not is_certain)]
    return [Line(2, "primary_key", [], evidence, is_off=True)] if evidence else []


def _write_cursor(table: TableDraft, way: Way) -> list[Line | str]:
    if table.cursor is None:
        return []
    column, evidence, _ = table.cursor
    is_off = way is not Way.NEW_ROWS
    instead = {Way.NEW_FILES: "in place of files: new: ", Way.REFRESH: "in place of mode: refresh: "}.get(way, "")
    why = f"{instead}later loads read only what is newer; {evidence}"
    lines: list[Line | str] = [Line(2, "cursor", column, why, is_off=is_off)]
    if table.lag is not None:
        why = "and again what may have been committed late, which is appended again: readers know it by the key"
        lines.append(Line(2, "cursor_lag", table.lag, why, is_off=is_off))
    return lines


def _write_mode(table: TableDraft, kind: str, way: Way) -> list[Line | str]:
    if way is Way.REFRESH:
        which = "no column surely says" if table.cursor else "no column says"
        why = f"each load replaces the table whole; {which} what is new, and it is small"
        return [Line(2, "mode", Mode.REFRESH.value, why)]
    mode = BY_TYPE[kind].replaces
    if way is Way.APPEND and mode is not None and not table.repeats:
        why = f"each load replaces the table whole; without it, each load {Way.APPEND}"
        return [Line(2, "mode", mode.value, why, is_off=True)]
    return []


def _note_appended(draft: Draft) -> str:
    """Say once what to do about the tables whose rows a second load would append again; blank if there are none."""
    names = [table.name for table in draft.tables if table.choose_way(draft.kind) is Way.APPEND and not table.is_off]
    if not names:
        return ""
    new = "read: {files: new} for a folder that gets new files"
    mode = BY_TYPE[draft.kind].replaces
    whole = f", mode: {mode.value} to replace the table whole" if mode is not None else ""
    return (
        f"each load of {', '.join(names)} {Way.APPEND}. Choose a cursor, {new}{whole}, or repeated: "
        "allow where that is wanted."
    )


def _write_expect(table: TableDraft) -> list[Line | str]:
    """Return the checks, of which those that only a person can decide are commented out."""
    if not table.expect:
        return []
    is_off = not any(expectation.is_certain for expectation in table.expect)
    lines: list[Line | str] = [
        Line(2, "expect", comment="judged before a load is seen", is_mapping=True, is_off=is_off)
    ]
    for expectation in table.expect:
        lines += _write_item(expectation.check, expectation.evidence, 3, is_off=not expectation.is_certain)
    return lines


def require_plain_names(tables: Sequence[TableDraft]) -> tuple[TableDraft, ...]:
    """Return the tables with a number behind every name that occurred before."""
    seen, renamed = set[tuple[str, str]](), []
    for table in tables:
        name, number = table.name, 1
        while (table.schema.lower(), name.lower()) in seen:
            number += 1
            name = f"{table.name}_{number}"
        seen.add((table.schema.lower(), name.lower()))
        renamed.append(table if name == table.name else TableDraft(**{**vars(table), "name": name}))
    return tuple(renamed)


def _write_item(value: Any, comment: str, depth: int, *, is_off: bool) -> list[str]:
    """Return an item of a list, or the comment above it and the item; ``is_off`` puts the item into a comment."""
    return _add_comment(f"{_INDENT * depth}{'# ' if is_off else ''}- {write_flow(value)}", comment, depth)


def _add_comment(text: str, comment: str, depth: int) -> list[str]:
    """Put the comment behind the text, or above it where both are too long for a line."""
    comment = " ".join(comment.split())
    if not comment:
        return [text]
    if len(text) + len(comment) + 4 <= WIDTH:
        return [f"{text}  # {comment}"]
    return [*_write_comment(comment, depth), text]


def _write_comment(text: str, depth: int = 0) -> list[str]:
    """Lines of a comment, wrapped."""
    start = f"{_INDENT * depth}# "
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _write_lines(lines: Iterable[Line | str]) -> list[str]:
    """Lines of keys, and lines of text as they are."""
    return [text for line in lines for text in (line.write() if isinstance(line, Line) else [line])]


def _write_mapping(key: str, content: Mapping[str, tuple[Any, str]], depth: int) -> list[Line]:
    """Return a mapping whose values have a comment each."""
    head = Line(depth, key, is_mapping=True)
    return [head, *(Line(depth + 1, write_flow(name), *entry) for name, entry in content.items())]
