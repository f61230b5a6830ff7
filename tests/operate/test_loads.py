"""The history of a pipeline, from control objects as loads of this and of earlier releases leave them."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewriter.commit.control import Control
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import ControlKeys
from lakewriter.operate.load_ending import PhaseClock, leave_record
from lakewriter.operate.loads import Loads
from lakewriter.pages.load_record import LoadedTable
from lakewriter.receipt import Cursor, RepeatedFiles, SetAside, Verdict
from lakewriter.report import MergeCounts, RunReport, TableFigures, TableHealth, TableOutcome, TableReport, TableResult
from tests.commit.memory import Memory, World

AT = datetime(2026, 1, 31, 6, tzinfo=UTC)


def open_control(world, table_id="shop.orders"):
    return Control(Memory(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), table_id)


def report_table(control, job_id, table="orders", rows=5):
    """A report without a record beside it."""
    report = TableReport(
        pipeline="p", job_id=job_id, attempt="A", schema_name="shop", table=table, started=AT, rows=rows, files=1,
        bytes=10, keys=("k",), feed="rows", engine="pyarrow", cursor_before=None, cursor_after=None, cursor_nulls=0,
        staged_seconds=2.0,
    )  # fmt: skip
    control.write_once(control.keys.report(job_id, f"shop.{table}"), report.model_dump(mode="json"))


def end_attempt(control, job_id, attempt="A", **fields):
    end = {"version": 1, "status": "done", "code": None, "message": None, "finished": AT.isoformat()}
    control.write_once(control.keys.outcome(job_id, attempt), end | fields)


def make_report(job_id, status="done", **fields):
    table = TableResult(
        schema_name="shop", table="orders", status=status, rows=7, files=1, bytes=10, keys=("k",), **fields
    )
    return RunReport(
        pipeline="p",
        job_id=job_id,
        attempt="A",
        status=status,
        started_at=AT,
        seconds=9.5,
        tables=(table,),
        requests={"PUT": 3},
    )


def leave(control, report, warnings=None):
    leave_record(report, None, {"shop.orders": {"writing": 4.0}}, {"shop.orders": control}, (warnings or []).append)


def read(control, limit=10, table_id=None):
    return Loads({"shop.orders": control}).read_last(limit, table_id)


def test_record_is_what_the_load_said():
    control = open_control(World())
    leave(control, make_report("a"))
    (record,) = read(control)
    (table,) = record.tables
    assert (record.job_id, record.status, record.seconds, record.requests) == ("a", "done", 9.5, {"PUT": 3})
    assert (table.id, table.rows, table.phases, table.sizes) == ("shop.orders", 7, {"writing": 4.0}, None)


def test_loads_of_the_same_second_are_in_the_order_in_which_they_ended():
    """S3 tells the second of an object. Their ids are in no order: here the newest has the middle one."""
    control = open_control(World())
    for job_id in ("c", "a", "b"):
        leave(control, make_report(job_id))
    assert [record.job_id for record in read(control)] == ["b", "a", "c"]
    assert [record.job_id for record in read(control, limit=1)] == ["b"]
    assert Loads({"shop.orders": control}).read_one(None).job_id == "b"


@pytest.mark.parametrize("attempts", ["AB", "BA"])
def test_of_attempts_of_the_same_second_the_one_that_ended_last_counts(attempts):
    control = open_control(World())
    for attempt in attempts:
        leave(control, make_report("a").model_copy(update={"attempt": attempt}))
    assert [record.attempt for record in read(control)] == [attempts[-1]]


def test_page_lies_beside_the_reports_and_a_later_attempt_replaces_it():
    world = World()
    control = open_control(world)
    leave(control, make_report("a", status="failed", code="SOURCE_FAILED", message="none."))
    key = "_lakewriter/p/loads/a/report.html"
    first = world.objects[key][0]
    leave(control, make_report("a").model_copy(update={"attempt": "B"}))
    assert b"SOURCE_FAILED" in first
    assert b"SOURCE_FAILED" not in world.objects[key][0]


def test_loads_without_a_record_are_concluded():
    control = open_control(World())
    report_table(control, "old")
    end_attempt(control, "old")
    end_attempt(control, "failed", status="failed", code="SOURCE_FAILED", message="none.")
    control.write_once(control.keys.begin("begun", "A"), {})
    report_table(control, "batch")
    said = [(load.job_id, load.status, load.sums.rows, load.code, load.seconds) for load in read(control)]
    # The newest first, by when its last object was written.
    assert sorted(said) == [
        ("batch", "done", 5, None, None),
        ("begun", "unfinished", 0, None, None),
        ("failed", "failed", 0, "SOURCE_FAILED", None),
        ("old", "done", 5, None, None),
    ]


def test_attempt_that_left_only_an_outcome_counts_after_a_record():
    control = open_control(World())
    leave(control, make_report("a", status="failed"))
    end_attempt(control, "a", "B", status="failed", code="ACCESS_DENIED", message="no.")
    assert [load.code for load in read(control)] == ["ACCESS_DENIED"]


def test_limit_and_table():
    control = open_control(World())
    for number in range(5):
        report_table(control, f"a{number}")
        report_table(control, f"b{number}", table="users")
    assert len(read(control, 3)) == 3
    assert sorted(load.job_id for load in read(control, 4, "shop.users")) == ["b1", "b2", "b3", "b4"]
    assert read(control, 3, "shop.none") == []


def test_one_load():
    loads = Loads({"shop.orders": open_control(World())})
    with pytest.raises(SpecInvalidError, match="pipeline p has no load whose records are kept"):
        loads.read_one(None)
    with pytest.raises(SpecInvalidError, match="load 'x' has no records in pipeline p"):
        loads.read_one("x")


def test_page_that_cannot_be_left_is_a_warning():
    warnings: list[str] = []
    control = Control(
        Memory(World(), lambda: None, random.Random(0), 1), ControlKeys("", "p"), "t", pause=lambda _: None
    )
    leave_record(make_report("a"), None, {}, {"t": control}, warnings.append)
    (warning,) = warnings
    assert warning.startswith("the page of load a could not be left beside its records: ")


def test_phases_are_measured_and_passed_on():
    seconds: dict[str, dict[str, float]] = {}
    steps, times = [], iter([0.0, 2.0, 5.0, 5.5])
    clock = PhaseClock(lambda *step: steps.append(step[1:]), seconds, lambda: next(times))
    table = type("Table", (), {"id": "t"})()
    for step in ("beginning", "writing", "committing", "done"):
        clock(table, step, "detail")
    assert seconds == {"t": {"beginning": 2.0, "writing": 3.0, "committing": 0.5}}
    assert steps == [(step, "detail") for step in ("beginning", "writing", "committing", "done")]


def test_wait_for_spark_is_a_step_of_its_own():
    """Two tables ask for Spark at once, and one is done before: 4 s of the wait are the second one's, 5 the first's."""
    seconds: dict[str, dict[str, float]] = {}
    now = [0.0]
    clock = PhaseClock(lambda *_: None, seconds, lambda: now[0])
    first, second, done = (type("Table", (), {"id": name})() for name in ("a", "b", "c"))

    def take(moment, *steps):
        now[0] = moment
        for table, step in steps:
            clock(table, step, "")

    take(0.0, (done, "writing"))
    take(1.0, (done, "done"), (first, "writing"))
    start_again = clock.waits(lambda: None)
    start = clock.waits(lambda: (take(2.0, (second, "writing")), take(6.0)))
    start()
    start_again()
    take(8.0, (first, "done"), (second, "done"))
    assert seconds == {
        "c": {"writing": 1.0},
        "a": {"starting Spark": 5.0, "writing": 2.0},
        "b": {"starting Spark": 4.0, "writing": 2.0},
    }


@pytest.mark.parametrize(("most", "expected"), [(None, ["b", "a"]), (6, ["b", "a"]), (5, [])])
def test_the_end_of_a_load_lists_no_more_than_some_objects(most, expected):
    control = open_control(World())
    for job_id in ("a", "b", "c"):
        leave(control, make_report(job_id))
    # Of each load a record and a page.
    loads = Loads({"shop.orders": control})
    keys = [entry.key for entry in control.store.list_entries(f"{control.keys.root}/loads/")]
    assert len(keys) == 6
    _, before = loads.read_before(loads.read_one("c"), 29, most)
    assert [record.job_id for record in before] == expected


FIGURES: dict[str, Any] = {
    "schema_name": "shop", "table": "orders", "rows": 7, "files": 2, "bytes": 90, "small_files": 1, "changes": 12,
    "change_samples": tuple(f"row {number}" for number in range(12)), "notes": ("slow",), "feed": "rows",
    "undeclared": {f"$.p{number}": 1 for number in range(51)}, "set_aside": SetAside(rows=3, keys=("bad",)),
    "repeated": RepeatedFiles(files=2, again=1), "engine": "pyarrow", "sync_id": 4, "generation_id": 5, "retired": 6,
    "merged": MergeCounts(inserted=7),
    "cursor_after": Cursor(type="bigint", text="9"), "health": TableHealth(snapshots=1, files=2, small_files=2),
    "expectations": (Verdict(check="c", kind="rows", holds=True, outcome="passed", found="7", expected="1"),),
}  # fmt: skip
"""A value for every figure, none of them its default."""


def test_figures_are_declared_once_and_go_from_report_to_record():
    assert FIGURES.keys() == TableFigures.model_fields.keys()
    for model in (TableReport, TableOutcome, TableResult, LoadedTable):
        assert not model.__annotations__.keys() & FIGURES.keys(), model
    report = TableReport(
        pipeline="p", job_id="a", attempt="A", started=AT, keys=("k",), cursor_before=None, cursor_nulls=0,
        staged_seconds=2.0, **FIGURES
    )  # fmt: skip
    result = TableResult.of(report, status="done")
    assert (result.keys, result.status) == (("k",), "done")
    assert {name: getattr(result, name) for name in FIGURES} == FIGURES
    # A page shows ten samples and fifty paths; a failed table's record has what its result says.
    paths = dict.fromkeys(list(FIGURES["undeclared"])[:50], 1)
    fewer = {"change_samples": FIGURES["change_samples"][:10], "undeclared": paths}
    failed = TableResult.of(report, status="failed", code="TIMEOUT", seconds=3.0)
    for table in (LoadedTable.of(report, status="done"), LoadedTable.of(failed)):
        assert {name: getattr(table, name) for name in FIGURES} == FIGURES | fewer
    assert (table.status, table.code, table.seconds, table.id) == ("failed", "TIMEOUT", 3.0, "shop.orders")
