"""Compare the rows that a load has set aside with the objects that hold them."""

import gzip
import json
import zlib
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.intent import Intent
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.report import format_count

_BROKEN: Final = (OSError, EOFError, ValueError, zlib.error)
"""What gzip and JSON raise for content that is not what a task wrote."""


def compare_bad_rows(control: Control, intent: Intent, *, count: bool) -> list[Mismatch]:
    """Say which objects with bad rows are gone; with ``count``, read those that are there and count their rows.

    An object whose rows cannot be read, or a number of rows other than the load's report has, is a difference.
    """
    if intent.set_aside is None:
        return []
    there = {entry.key for entry in control.store.list_entries(f"{control.keys.load(intent.job_id)}/")}
    gone = [key for key in intent.set_aside.keys if key not in there]
    mismatches = [
        Mismatch(
            Kind.BAD_ROWS_GONE,
            f"{key} is not there: it has rows that load {intent.job_id!r} of {control.table_id} set aside.",
            key,
        )
        for key in gone
    ]
    if count and not gone:
        mismatches += _count_rows(control, intent, intent.set_aside.rows, intent.set_aside.keys)
    return mismatches


def _count_rows(control: Control, intent: Intent, expected: int, keys: tuple[str, ...]) -> list[Mismatch]:
    rows, damaged = 0, []
    for key in keys:
        body, _ = control.store.get(key) or (b"", "")
        try:
            rows += sum(1 for line in gzip.decompress(body).splitlines() if json.loads(line) is not None)
        except _BROKEN as error:
            why = (str(error) or type(error).__name__).splitlines()[0]
            damaged.append(Mismatch(Kind.BAD_ROWS_CHANGED, f"{key}: its bad rows cannot be read ({why}).", key))
    if not damaged and rows != expected:
        what = (
            f"load {intent.job_id!r} of {control.table_id} set aside {format_count(expected, 'row')}, and the objects "
            f"with them have {rows:,}."
        )
        damaged.append(Mismatch(Kind.BAD_ROWS_CHANGED, what))
    return damaged
