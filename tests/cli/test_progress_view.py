"""How far a load is, in few columns and in the log; and that nothing is said where nobody listens."""

import io
import json
import re
from contextlib import nullcontext

import pytest
from rich.console import Console

from lakewriter.cli.progress_view import Lines, describe_staging, show_progress
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.staging_progress import Measured, Staging
from lakewriter.staging.tally import Staged
from tests.dialects.files import lake

HALF = Staging(Staged(tasks=12, rows=1_234_567, files=30, bytes=120_000_000), tasks=40, all_rows=2_469_134, seconds=75)
UNCOUNTED = Staging(Staged(tasks=1, rows=10, files=1, bytes=999), tasks=8, all_rows=None, seconds=8)
SOON = Staging(Staged(rows=10), tasks=1, all_rows=1000, seconds=1)
NOTHING = Staging(Staged(), tasks=0, all_rows=0, seconds=0)

SAID = [
    # how far it is, columns, text
    (
        HALF,
        None,
        "50%, 1 min 15 s left, 1,234,567 rows, 120.0 MB, 30 files, 16,461 rows/s, 12 of 40 tasks",
    ),
    (HALF, 75, "50%, 1 min 15 s left, 1,234,567 rows, 120.0 MB, 30 files, 16,461 rows/s"),
    (HALF, 65, "50%, 1 min 15 s left, 1,234,567 rows, 120.0 MB, 16,461 rows/s"),
    (HALF, 40, "50%, 1 min 15 s left, 1,234,567 rows"),
    (HALF, 30, "50%, 1,234,567 rows"),
    (HALF, 3, "50%"),
    # Of the tasks, where the rows are not counted: one of eight in 8 s leaves 56.
    (UNCOUNTED, None, "12%, 56 s left, 10 rows, 999 B, 1 file, 1 rows/s, 1 of 8 tasks"),
    # Too early to say how long it takes.
    (SOON, None, "1%, 10 rows, 0 B, 0 files, 10 rows/s, 0 of 1 task"),
    (NOTHING, None, "100%, 0 rows, 0 B, 0 files, 0 rows/s, 0 of 0 tasks"),
]


@pytest.mark.parametrize(("staging", "width", "expected"), SAID)
def test_columns(staging, width, expected):
    assert describe_staging(staging, width) == expected


@pytest.fixture
def spec(tmp_path):
    return load_spec(lake(tmp_path))


def said(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_log_keeps_its_shape_and_gains_fields(spec, monkeypatch):
    monkeypatch.setattr("lakewriter.cli.progress_view.LOG_SECONDS", 0.0)
    out = Console(file=io.StringIO(), width=80)
    with show_progress(spec, out, job_id="a") as progress:
        assert isinstance(progress, Measured)
        progress(spec.tables[0], "writing", "1 task")
        progress.measure(spec.tables[0], HALF)
    lines = [json.loads(line) for line in said(out).splitlines()]
    shape = ["time", "pipeline", "table", "step", "detail", "job_id"]
    assert [list(line)[:6] for line in lines] == [shape] * 3
    assert [(line["table"], line["step"], line["job_id"]) for line in lines] == [
        ("", "load", "a"),
        ("accounts", "writing", "a"),
        ("accounts", "writing", "a"),
    ]
    assert {name: lines[2][name] for name in list(lines[2])[6:]} == {
        "rows": 1_234_567,
        "files": 30,
        "bytes": 120_000_000,
        "tasks_done": 12,
        "tasks": 40,
        "rows_per_second": 16460.9,
        "share": 0.5,
        "seconds_left": 75.0,
    }


def test_log_tells_how_far_it_is_only_now_and_then(spec):
    out = Console(file=io.StringIO(), width=80)
    with show_progress(spec, out) as progress:
        assert isinstance(progress, Measured)
        progress(spec.tables[0], "writing", "")
        progress.measure(spec.tables[0], HALF)
    assert len(said(out).splitlines()) == 1


def test_terminal(spec):
    out = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    with show_progress(spec, out, job_id="a") as progress:
        assert isinstance(progress, Lines)
        progress(spec.tables[0], "writing", "1 task")
        progress.measure(spec.tables[0], HALF)
        with progress.waiting("Spark starts:"), out.capture() as drawn:
            out.print(progress.draw())
    text = drawn.get()
    assert said(out).startswith("load a of pipeline p\n")
    assert ("50%, 1,234,567 rows" in text, "Spark starts: 0 s" in text) == (True, True)


def test_quiet(spec):
    out = Console(file=io.StringIO(), width=60, force_terminal=True)
    with show_progress(spec, out, quiet=True) as progress:
        progress(spec.tables[0], "writing", "")
        assert not isinstance(progress, Measured)
    assert said(out) == ""


def show_lines(spec, height, *steps, waits=False):
    """What is drawn of a pipeline of 40 tables after some steps, by the number of the table, in 60 columns."""
    tables = [spec.tables[0].model_copy(update={"name": f"t{number}"}) for number in range(40)]
    out = Console(file=io.StringIO(), width=60, height=height, force_terminal=True, color_system=None)
    lines = Lines(spec.model_copy(update={"tables": tuple(tables)}), out)
    for number, step in steps:
        lines(tables[number], step, "")
    with lines.waiting("Spark starts:") if waits else nullcontext(), out.capture() as drawn:
        out.print(lines.draw())
    return [line.strip() for line in drawn.get().splitlines() if line.strip()]


def test_more_tables_than_lines(spec):
    """Those in work and those that failed have a line, the others are counted."""
    steps = [(0, "done"), (1, "failed"), *((number, "writing") for number in range(2, 30))]
    shown = show_lines(spec, 10, *steps)
    assert [line.split()[1:] for line in shown[:-1]] == [["t1", "failed"], *([f"t{n}", "writing"] for n in range(2, 7))]
    assert shown[-1] == "1 of 40 tables done, 28 in work, 1 failed, 10 waiting, 0 s"


def test_tables_that_wait_for_spark_write_nothing(spec):
    assert show_lines(spec, 10, (0, "writing"), waits=True) == [
        "0 of 40 tables done, 40 waiting, 0 s",
        "Spark starts: 0 s",
    ]


def test_as_many_lines_as_tables(spec):
    shown = show_lines(spec, 44, (0, "done"))
    assert (len(shown), shown[0].split()[1:], shown[1].split()[1:]) == (41, ["t0", "done"], ["t1", "waiting"])


def draw_screen(spec, tables, steps):
    """What a terminal of 80 columns and 24 lines shows of so many tables; a turning mark is drawn as ``*``."""
    named = [spec.tables[0].model_copy(update={"schema_name": "crm", "name": f"t{number}"}) for number in range(tables)]
    out = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    lines = Lines(spec.model_copy(update={"tables": tuple(named)}), out)
    for number, step in steps.items():
        lines(named[number], step, "2 rows" if step == "done" else "")
        if number == 1 or tables == 1:
            lines.measure(named[number], HALF)
    with out.capture() as drawn:
        out.print(lines.draw())
    return [re.sub("[\u2800-\u28ff]", "*", line).rstrip() for line in drawn.get().splitlines()]


SCREENS = [
    # tables, the steps of those that have begun, what is on the screen
    (
        1,
        {0: "writing"},
        [
            "*  crm.t0  writing  50%, 1 min 15 s left, 1,234,567 rows, 16,461 rows/s",
        ],
    ),
    (
        15,
        {0: "done", 1: "writing", 2: "failed", 3: "reading"},
        [
            "✓  crm.t0   done     2 rows",
            "*  crm.t1   writing  50%, 1 min 15 s left, 1,234,567 rows, 16,461 rows/s",
            "✗  crm.t2   failed",
            "*  crm.t3   reading",
            "*  crm.t4   waiting",
            "*  crm.t5   waiting",
            "*  crm.t6   waiting",
            "*  crm.t7   waiting",
            "*  crm.t8   waiting",
            "*  crm.t9   waiting",
            "*  crm.t10  waiting",
            "*  crm.t11  waiting",
            "*  crm.t12  waiting",
            "*  crm.t13  waiting",
            "*  crm.t14  waiting",
            "1 of 15 tables done, 2 in work, 1 failed, 11 waiting, 1,234,567 rows, 0 s",
        ],
    ),
    (
        40,
        {0: "done", 1: "writing", 2: "failed", **dict.fromkeys(range(3, 8), "reading")},
        [
            "*  crm.t1  writing  50%, 1 min 15 s left, 1,234,567 rows, 16,461 rows/s",
            "✗  crm.t2  failed",
            "*  crm.t3  reading",
            "*  crm.t4  reading",
            "*  crm.t5  reading",
            "*  crm.t6  reading",
            "*  crm.t7  reading",
            "1 of 40 tables done, 6 in work, 1 failed, 32 waiting, 1,234,567 rows, 0 s",
        ],
    ),
]


@pytest.mark.parametrize(("tables", "steps", "screen"), SCREENS)
def test_first_screen(spec, tables, steps, screen):
    assert draw_screen(spec, tables, steps) == screen
