"""What a load's end looks like, in the columns of a terminal and in a pipe."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lakewriter.cli.fitting import shorten
from lakewriter.cli.run_view import show_run
from lakewriter.receipt import Cursor
from lakewriter.report import RunReport, TableResult

JOB = "scheduled__2026-01-31T06-00-00-00-00--0a6fa1084d7f33f048a2a4f5db2f4808"
AT = Cursor("timestamp[us]", "2026-01-31T05:59:58.123456Z")


def make_report(job_id=JOB):
    events = TableResult(
        schema_="supaflow_web_public",
        table="page_view_events_by_session",
        status="done",
        rows=8_000_000,
        files=2,
        bytes=91_200_000,
        keys=("a", "b"),
        feed="splits",
        engine="pyarrow",
        seconds=33.1,
        cursor_after=AT,
    )
    orders = TableResult(schema_="shop", table="orders", status="failed", code="SOURCE_FAILED", message="no file.")
    return RunReport(
        pipeline="shop",
        job_id=job_id,
        attempt="a",
        status="failed",
        started_at=datetime(2026, 1, 31, 6, tzinfo=UTC),
        seconds=38.84,
        tables=(events, orders),
        requests={"GET": 27, "PUT": 30},
    )


def show(width, *, terminal=True, **options):
    out = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    show_run(out, make_report(**options))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


CURSOR = f"cursor of supaflow_web_public.page_view_events_by_session: {AT.text}"
NUMBERS = "8,000,000 rows, 2 files, 91.2 MB in 38.8 s"
CALLS = "(27 GET, 30 PUT)"
WIDTHS = [
    # columns, the titles that fit, the first table's row, the lines after the tables
    (
        160,
        "table                                            status       rows  files     size  feed            seconds"
        "  cursor",
        "supaflow_web_public.page_view_events_by_session  done    8,000,000      2  91.2 MB  splits pyarrow     33.1"
        f"  {AT.text}",
        [f"load {JOB} failed: {NUMBERS} {CALLS}"],
    ),
    (
        100,
        "table                        status       rows  files     size  seconds  cursor",
        f"supaflow_web_…ts_by_session  done    8,000,000      2  91.2 MB     33.1  {AT.text}",
        [f"load {JOB} failed:", f"  {NUMBERS} {CALLS}"],
    ),
    (
        80,
        "table                                 status       rows  files     size  seconds",
        "supaflow_web_publ…_events_by_session  done    8,000,000      2  91.2 MB     33.1",
        [CURSOR, f"load {JOB} failed:", f"  {NUMBERS} {CALLS}"],
    ),
    (
        60,
        "table                      status       rows  files     size",
        "supaflow_web…s_by_session  done    8,000,000      2  91.2 MB",
        [CURSOR, f"load {JOB} failed:", f"  {NUMBERS}", f"  {CALLS}"],
    ),
]


@pytest.mark.parametrize(("width", "titles", "row", "after"), WIDTHS)
def test_widths(width, titles, row, after):
    lines = show(width)
    assert (lines[0], lines[1], lines[3:]) == (titles, row, after)
    # A job id or a cursor that is longer than the terminal is wide is never broken.
    assert all(len(line) <= width or JOB in line or AT.text in line for line in lines)


def test_pipe_has_every_column_in_full():
    assert show(80, terminal=False)[:2] == show(1000)[:2]


NAMES = [("orders", 6, "orders"), ("orders", 5, "or…rs"), ("page_view_events", 9, "page…ents"), ("ab", 1, "…")]


@pytest.mark.parametrize(("name", "width", "expected"), NAMES)
def test_shorten(name, width, expected):
    assert shorten(name, width) == expected
