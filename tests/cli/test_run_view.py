"""What a load's end looks like, in the columns of a terminal and in a pipe."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lakewriter.cli.fitting import shorten
from lakewriter.cli.printed import LoadSummary
from lakewriter.cli.run_view import show_run
from lakewriter.pages.load_page import render_load
from lakewriter.pages.load_record import LoadedTable, LoadRecord
from lakewriter.receipt import Cursor, RepeatedFiles
from lakewriter.report import RunReport, TableResult, describe_repeated

JOB = "scheduled__2026-01-31T06-00-00-00-00--0a6fa1084d7f33f048a2a4f5db2f4808"
AT = Cursor("timestamp[us]", "2026-01-31T05:59:58.123456Z")


def make_report(job_id=JOB):
    events = TableResult(
        schema_name="supaflow_web_public",
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
    orders = TableResult(schema_name="shop", table="orders", status="failed", code="SOURCE_FAILED", message="no file.")
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
    show_run(out, make_report(**options), {})
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


CURSOR = f"cursor of supaflow_web_public.page_view_events_by_session: {AT.text}"
NUMBERS = "1 of 2 tables, 8,000,000 rows, 2 files, 91.2 MB in 38.8 s"
CALLS = "(27 GET, 30 PUT)"
WIDTHS = [
    # columns, the titles that fit, the first table's row, the lines after the tables
    (
        160,
        "table                                            status       rows  files     size  seconds  cursor",
        f"supaflow_web_public.page_view_events_by_session  done    8,000,000      2  91.2 MB     33.1  {AT.text}",
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


def test_time_until_spark_had_started_is_told_once():
    """Of each table's seconds what it waited for is taken, so that those of one after the other add up."""
    out = io.StringIO()
    table = "supaflow_web_public.page_view_events_by_session"
    show_run(Console(file=out, width=200), make_report(), {table: {"starting Spark": 20.0, "writing": 13.1}})
    lines = out.getvalue().splitlines()
    assert "91.2 MB     13.1" in lines[1]
    assert "in 38.8 s (20.0 s until Spark had started) (27 GET, 30 PUT)" in lines[-1]


REPEATED = [
    # what the tables have read again, the words of the summary, of the history and of the load's page
    ([None, RepeatedFiles(files=3)], None),
    ([RepeatedFiles(files=15, again=15, rows=3_000_000)],
     "appended again: 3,000,000 rows, 15 of 15 files that an earlier load has read"),
    ([RepeatedFiles(files=2, again=1), RepeatedFiles(files=1, again=1, rows=5)],
     "appended again: 2 of 3 files that an earlier load has read"),
    ([RepeatedFiles(), RepeatedFiles(files=1, changed=1)],
     "1 file changed since an earlier load has read them; rows of 1 table may repeat"),
    ([RepeatedFiles(files=15, again=15, rows=3, allowed=True)], None),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "said"), REPEATED)
def test_what_was_appended_again(tables, said):
    assert describe_repeated(tables) == said
    results = [
        TableResult(schema_name="", table=f"t{n}", status="done", repeated=each) for n, each in enumerate(tables)
    ]
    report = make_report().model_copy(update={"tables": tuple(results)})
    out = io.StringIO()
    show_run(Console(file=out, width=400, color_system=None), report, {})
    assert (f"! {said}" in out.getvalue()) is (said is not None)
    loaded = tuple(
        LoadedTable(schema_name="", table=each.table, status="done", repeated=each.repeated) for each in results
    )
    record = LoadRecord(pipeline="p", job_id="j", attempt="a", status="done", tables=loaded)
    page = render_load(record, ())
    assert (LoadSummary.of(record).repeated, record.repeated) == (said, said)
    assert (said is not None) is ("To load only what is new" in page)
