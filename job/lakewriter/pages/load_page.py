"""The page of one load: its result, what it cost, how it compares with the loads before it, what to do next."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewriter.naming import QUARANTINE
from lakewriter.pages import prices
from lakewriter.pages.load_record import LoadedTable, LoadRecord
from lakewriter.pages.render import format_moment, format_seconds, render
from lakewriter.receipt import Verdict
from lakewriter.report import format_count, format_size, join_first

WIDTH: Final = 300
HEIGHT: Final = 60
_GAP: Final = 2
_LEAST: Final = 1.5
"""A value of 0 is still a load that took place."""


@dataclass(frozen=True)
class Bar:
    """One load in a chart, in the units of its view box."""

    x: float
    y: float
    width: float
    height: float
    title: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """A row of bars, the oldest load first; ``most`` is the greatest value in words."""

    title: str
    most: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Point:
    """One load's value: ``kind`` is its status, ``title`` what a pointer shows."""

    value: float
    title: str
    kind: str


CHARTED: Final = 30
"""Loads in the charts."""
MOST_TABLES: Final = 1000
"""Tables that a page has; their sums are of all."""
_MOST_NAMED: Final = 5
"""Tables of one cause that are named."""
MOST_CHECKS: Final = 500
"""Expectations that a page has, those first that were not met."""
_ORDER: Final = ("failed", "accepted", "set_aside", "warned", "passed")
_SIGNS: Final = {"failed": "✗", "accepted": "~", "set_aside": "-", "warned": "!", "passed": "✓"}
SPARK_STARTS: Final = "starting Spark"
"""The step in which tables wait for Spark, all of them at once."""
_STEPS: Final = {
    "beginning": "begin",
    "reading": "read and check",
    "writing": "write files",
    "committing": "commit",
}
"""Steps that take time, in their order, in the words of a page."""


@dataclass(frozen=True)
class SchemaChange:
    """A column that differs from the table's load before: ``kind`` is ``added``, ``gone`` or ``type``."""

    table: str
    kind: str
    column: str
    before: str
    after: str


@dataclass(frozen=True)
class Mark:
    """The verdict on an expectation in one load: ``sign`` stands for it, ``title`` describes it."""

    outcome: str
    sign: str
    title: str


@dataclass(frozen=True)
class Check:
    """A verdict on a table's expectation; ``marks`` are of the last loads, this one's last."""

    table: str
    verdict: Verdict
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Phase:
    """A step's seconds, and its share of the longest in per cent."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Links:
    """The addresses of the pages beside a load's page, as it has to write them: of the ``catalogue`` and there of its
    ``tables``, and of the pages of the loads before and after it, blank where there is none."""

    catalogue: str
    tables: Mapping[str, str]
    earlier: str = ""
    later: str = ""


def render_load(record: LoadRecord, earlier: Sequence[LoadRecord], links: Links | None = None) -> str:
    """Render the page of ``record``; ``earlier`` are the loads before it, the newest first."""
    shown = record.tables[:MOST_TABLES]
    return render(
        "load.html",
        record=record,
        tables=sorted(shown, key=lambda table: (table.status not in ("failed", "not_run"), table.id)),
        hidden=len(record.tables) - len(shown),
        phases=sum_phases(record.tables),
        checks=list_checks(record, earlier)[:MOST_CHECKS],
        changes=list_schema_changes(record, earlier),
        charts=make_charts([record, *earlier][:CHARTED]),
        charted=min(CHARTED, 1 + len(earlier)),
        cost=describe_cost(record),
        steps=list(list_next_steps(record, earlier=earlier)),
        links=links,
    )


def sum_phases(tables: Sequence[LoadedTable]) -> list[Phase]:
    """Return the seconds of all tables by step; tables are loaded side by side, so these may be more than the load's
    own."""
    sums = {name: round(sum(table.phases.get(step, 0.0) for table in tables), 3) for step, name in _STEPS.items()}
    sums = {"wait for Spark": max((table.phases.get(SPARK_STARTS, 0.0) for table in tables), default=0.0)} | sums
    most = max(sums.values(), default=0.0)
    return [Phase(name, seconds, 100 * seconds / most) for name, seconds in sums.items() if seconds]


def list_checks(record: LoadRecord, earlier: Sequence[LoadRecord]) -> list[Check]:
    """Return the verdicts on each table's expectations, those first that were not met, with the ones before them."""
    loads = list(reversed(earlier[: CHARTED - 1]))
    past: dict[tuple[str, str], list[Mark]] = {}
    for load in [*loads, record]:
        for table in load.tables:
            for verdict in table.expectations:
                past.setdefault((table.id, verdict.check), []).append(_make_mark(load, verdict))
    checks = [
        Check(table.id, verdict, tuple(past[table.id, verdict.check]))
        for table in record.tables
        for verdict in table.expectations
    ]
    return sorted(checks, key=lambda check: _ORDER.index(check.verdict.outcome))


def _make_mark(load: LoadRecord, verdict: Verdict) -> Mark:
    outcome = verdict.outcome.replace("_", " ")
    what = f"{load.job_id}, {format_moment(load.finished)}, {outcome}: {verdict.found}"
    return Mark(verdict.outcome, _SIGNS.get(verdict.outcome, "?"), what)


def list_schema_changes(record: LoadRecord, earlier: Sequence[LoadRecord]) -> list[SchemaChange]:
    """List how the columns of each table differ from those of its last load before; none where either is not known."""
    changes: list[SchemaChange] = []
    for table in record.tables:
        past = (old for load in earlier for old in load.tables if old.id == table.id and old.columns)
        before = next(past, None)
        if before is not None and table.columns:
            changes += _compare_columns(table.id, dict(before.columns), dict(table.columns))
    return changes


def _compare_columns(table: str, before: dict[str, str], after: dict[str, str]) -> Iterator[SchemaChange]:
    for name, kind in after.items():
        if name not in before:
            yield SchemaChange(table, "added", name, "", kind)
        elif before[name] != kind:
            yield SchemaChange(table, "type", name, before[name], kind)
    for name, kind in before.items():
        if name not in after:
            yield SchemaChange(table, "gone", name, kind, "")


def make_charts(loads: Sequence[LoadRecord]) -> list[Chart]:
    """Make charts of rows, bytes and time of the loads, the newest first in ``loads`` and last in the charts."""
    ordered = list(reversed(loads))
    return [
        _chart("rows", ordered, [float(load.sums.rows) for load in ordered], lambda value: f"{value:,.0f}"),
        _chart("bytes", ordered, [float(load.sums.bytes) for load in ordered], format_size),
        _chart("time", ordered, [load.seconds or 0.0 for load in ordered], format_seconds),
    ]


def _chart(title: str, loads: Sequence[LoadRecord], values: Sequence[float], describe: Callable[[float], str]) -> Chart:
    points = [
        Point(value, f"{load.job_id}, {format_moment(load.finished)}, {load.status}: {describe(value)}", load.status)
        for load, value in zip(loads, values, strict=True)
    ]
    return make_chart(title, describe(max(values, default=0.0)), points, CHARTED)


@dataclass(frozen=True)
class Cost:
    """The cost of the load's requests and data, in words."""

    requests: str
    month: str
    calls: tuple[tuple[str, int], ...]
    source: str = prices.SOURCE.removeprefix("https://")
    as_of: str = prices.AS_OF
    region: str = prices.REGION


def describe_cost(record: LoadRecord) -> Cost | None:
    """Return the cost by list prices; None where the load's requests are not known."""
    if record.requests is None:
        return None
    least, most = (prices.format_dollars(amount) for amount in prices.price_requests(record.requests))
    calls = tuple(sorted(record.requests.items()))
    month = prices.format_dollars(prices.price_month(record.sums.bytes))
    return Cost(least if least == most else f"{least} to {most}", month, calls)


def list_next_steps(
    record: LoadRecord, given: Sequence[str] = (), *, earlier: Sequence[LoadRecord] = ()
) -> Iterator[tuple[str, str]]:
    """List what to do now: a sentence each, and the commands for it, blank where there is none.

    ``given`` names the pipeline in them, as in ``LoadRecord``: where it is known, they can be pasted. ``earlier`` are
    loads before it: without one, nothing is said of how often the pipeline loads.
    """
    lake = shlex.join(given or record.given) or "LAKE"
    causes: dict[tuple[str, str], list[str]] = {}
    for table in record.tables:
        if table.code:
            causes.setdefault((table.code, table.remedy or ""), []).append(table.id)
    for (code, remedy), tables in causes.items():
        yield f"{join_first(tables, _MOST_NAMED)} failed with {code}. {remedy}".strip(), ""
    if record.code and not causes:
        yield f"The load failed with {record.code}. {record.remedy}".strip(), ""
    codes = sorted({code for code in (record.code, *(table.code for table in record.tables)) if code})
    if codes:
        yield "There is more on it:", "\n".join(f"lakewriter docs {code}" for code in codes)
    if record.status != "done":
        first = {"unfinished": "Unless it still runs, run", "failed": "Once that is mended, run"}
        again = "the load again under its own job id: what is committed is not loaded twice."
        yield f"{first.get(record.status, 'Run')} {again}", f"lakewriter run {lake} --job-id {record.job_id}"
    yield from _list_remarks(record, lake, is_first=not earlier)


def _list_remarks(record: LoadRecord, lake: str, *, is_first: bool) -> Iterator[tuple[str, str]]:
    if set_aside := record.sums.rows_set_aside:
        rows = format_count(set_aside, "row")
        yield f"{rows} set aside: mend them at their source, and load them again.", ""
    if record.repeated:
        yield "To load only what is new, give such tables a cursor, read: {files: new}, or mode: refresh.", ""
    for table in record.tables:
        if table.set_aside is not None and any(QUARANTINE in key for key in table.set_aside.keys):
            yield (
                f"The quarantine of {table.id} has its rows: once what kept them out is corrected in lake.yaml, such "
                "as a column's type or a check, load them from there.",
                f"lakewriter replay {lake} {shlex.quote(table.id)}",
            )
    if any(table.undeclared for table in record.tables):
        yield "The source has values without a column: declare those that are wanted.", f"lakewriter plan {lake}"
    if not is_first and any(table.small_files > 1 for table in record.tables):
        yield "Many small files make a table slow to read: load less often, or more at a time.", ""
    if record.status == "done":
        yield "See that all is as the load left it.", f"lakewriter verify {lake} {record.job_id}"
        yield "Read the tables.", f"lakewriter queries {lake}"


def make_chart(title: str, most: str, points: Sequence[Point], slots: int) -> Chart:
    """Draw each point to the scale of the greatest; ``slots`` bars would fill the width."""
    top = max((point.value for point in points), default=0) or 1
    step = WIDTH / max(slots, len(points), 1)
    bars = []
    for index, point in enumerate(points):
        height = max(_LEAST, round(point.value / top * (HEIGHT - 2), 2))
        x = round(index * step, 2)
        bars.append(Bar(x, round(HEIGHT - height, 2), round(step - _GAP, 2), height, point.title, point.kind))
    return Chart(title, most, tuple(bars))
