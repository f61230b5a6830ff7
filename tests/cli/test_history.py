"""What history and show print, in the columns of a terminal and in a pipe."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lakewriter.cli.history_view import narrow, show_history, show_load
from lakewriter.cli.printed import LoadSummary
from lakewriter.pages.load_record import FileSizes, LoadedTable, LoadRecord
from lakewriter.receipt import Cursor, SetAside

JOB = "scheduled__2026-01-31T06-00-00-00-00--0a6fa1084d7f33f048a2a4f5db2f4808"
ORDERS = LoadedTable(
    schema_name="shop",
    table="orders",
    status="done",
    rows=8_000_000,
    files=2,
    bytes=91_200_000,
    sizes=FileSizes(smallest=1, median=45_600_000, largest=2),
    seconds=33.1,
    cursor_after=Cursor("int64", "41"),
    set_aside=SetAside(rows=2, keys=("k",), samples=("line 3: \x1b[31m",)),
)
USERS = LoadedTable(
    schema_name="shop", table="users", status="failed", code="SOURCE_FAILED", message="no file. Give one.",
    remedy="Give one.",
)  # fmt: skip
RECORD = LoadRecord(
    pipeline="shop",
    job_id="n31",
    attempt="a",
    status="failed",
    finished=datetime(2026, 1, 31, 6, 1, tzinfo=UTC),
    seconds=75.2,
    requests={"GET": 27, "PUT": 30},
    code="SOURCE_FAILED",
    message="no file.",
    tables=(ORDERS, USERS),
)
LONG = RECORD.model_copy(update={"job_id": JOB})
LATER = LoadRecord(pipeline="shop", job_id="b", attempt="a", status="unfinished")


def show(function, value, width, *, terminal=True):
    out = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    function(out, value)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


HISTORIES = [
    # columns, lines
    (
        60,
        [
            "load                                   status           rows",
            "b                                      unfinished          0",
            "scheduled__2026-01…f048a2a4f5db2f4808  failed      8,000,000",
        ],
    ),
    (
        80,
        [
            "load                      status      ended (UTC)               rows        time",
            "b                         unfinished                               0",
            "scheduled__…a4f5db2f4808  failed      2026-01-31 06:01:00  8,000,000  1 min 15 s",
        ],
    ),
    (
        100,
        [
            "load                  status      ended (UTC)               rows  tables  files     size        time",
            "b                     unfinished                               0       0      0      0 B",
            "scheduled…f5db2f4808  failed      2026-01-31 06:01:00  8,000,000       2      2  91.2 MB  1 min 15 s",
        ],
    ),
]


@pytest.mark.parametrize(("width", "lines"), HISTORIES)
def test_history_fits(width, lines):
    shown = show(show_history, [LoadSummary.of(LATER), LoadSummary.of(LONG)], width)
    assert shown == lines
    assert max(map(len, shown)) <= width


def test_history_in_a_pipe_is_whole():
    shown = show(show_history, [LoadSummary.of(RECORD)], 60, terminal=False)
    assert shown == [
        "load  status  ended (UTC)               rows  tables  files     size        time  set aside  code",
        "n31   failed  2026-01-31 06:01:00  8,000,000       2      2  91.2 MB  1 min 15 s          2  SOURCE_FAILED",
    ]


def test_history_of_no_load():
    assert show(show_history, [], 80) == ["no load has records that are kept"]


def test_history_of_a_table_has_its_numbers():
    summary = LoadSummary.of(narrow(RECORD, "shop.orders"))
    assert (summary.tables, summary.rows, summary.seconds, summary.failed_tables) == (1, 8_000_000, 33.1, 0)


def test_load():
    assert show(show_load, RECORD, 100) == [
        "load n31 of shop: failed, ended 2026-01-31 06:01:00 UTC after 1 min 15 s",
        "table        status       rows  files     size  median file    time  cursor",
        "shop.orders  done    8,000,000      2  91.2 MB      45.6 MB  33.1 s  41",
        "shop.users   failed          0      0",
        "shop.orders: 2 rows set aside",
        "  line 3: \\u001b[31m",
        "  in k",
        "shop.users: SOURCE_FAILED: no file. Give one.",
        "requests: 27 GET, 30 PUT; $0.000161 to $0.000285 by the list prices of us-east-1 as of 2024",
        "next: shop.users failed with SOURCE_FAILED. Give one.",
        "next: There is more on it:",
        "      lakewriter docs SOURCE_FAILED",
        "next: Once that is mended, run the load again under its own job id: what is committed is not loaded twice.",
        "      lakewriter run LAKE --job-id n31",
        "next: 2 rows set aside: mend them at their source, and load them again.",
    ]


def test_load_without_tables():
    assert show(show_load, LATER.model_copy(update={"requests": None}), 100) == [
        "load b of shop: unfinished",
        "next: Unless it still runs, run the load again under its own job id: what is committed is not loaded twice.",
        "      lakewriter run LAKE --job-id b",
    ]
