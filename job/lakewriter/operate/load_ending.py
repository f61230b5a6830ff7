"""Write a load's record beside its control objects, and the page that is made from it."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median_low
from typing import Final, TypeVar

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.store import Unclear
from lakewriter.errors import LakeError
from lakewriter.operate.loads import Loads
from lakewriter.pages.load_page import CHARTED, SPARK_STARTS, render_load
from lakewriter.pages.load_record import MOST_COLUMNS, FileSizes, LoadedTable, LoadRecord
from lakewriter.records.changes import Intent
from lakewriter.report import ErrorReport, RunReport, TableResult
from lakewriter.run.outcome_file import find_failure
from lakewriter.run.staged_table import Progress
from lakewriter.run.staging_progress import Measured
from lakewriter.spec.table_spec import TableSpec

LOG: Final = logging.getLogger(__name__)
MOST_INTENTS: Final = 200
"""The most intents that are read for columns and file sizes: each is a request."""
MOST_LISTED: Final = 20_000
"""The most control objects that are listed at the end of a load, in 20 requests: a pipeline of thousands of tables has
millions. ``lakewriter report`` lists them all."""
_ENDS: Final = ("done", "already done", "failed", "stopped")

Started = TypeVar("Started")


class PhaseClock:
    """Measures how long each table is in each step, and passes the step on; ``seconds`` collects the times by table.

    Time that a table waits for Spark to start counts as a step of its own, whichever step the table is in.
    """

    def __init__(
        self, progress: Progress, seconds: dict[str, dict[str, float]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress, self._clock, self.seconds = progress, clock, seconds
        self._now: dict[str, tuple[str, float]] = {}
        self._waited_until = -math.inf
        if isinstance(progress, Measured):
            # Callers look for this attribute to learn whether a progress wants numbers.
            self.measure = progress.measure

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        """Handle a step of a table."""
        now, phases = self._clock(), self.seconds.setdefault(table.id, {})
        last = self._now.get(table.id)
        if last is not None:
            phases[last[0]] = round(phases.get(last[0], 0.0) + now - last[1], 3)
        self._now[table.id] = (step, now)
        self._progress(table, step, detail)

    def waits(self, start: Callable[[], Started]) -> Callable[[], Started]:
        """Return ``start`` with its time counted apart; the time of concurrent calls counts once."""

        def started() -> Started:
            began = self._clock()
            try:
                return start()
            finally:
                self._end_wait(began)

        return started

    def _end_wait(self, began: float) -> None:
        now = self._clock()
        began, self._waited_until = max(began, self._waited_until), now
        for table_id, (step, since) in list(self._now.items()):
            waited = now - max(since, began)
            if step not in _ENDS and waited > 0:
                phases = self.seconds[table_id]
                phases[SPARK_STARTS] = round(phases.get(SPARK_STARTS, 0.0) + waited, 3)
                self._now[table_id] = (step, since + waited)


def leave_record(
    report: RunReport,
    error: ErrorReport | None,
    phases: Mapping[str, Mapping[str, float]],
    controls: Mapping[str, Control],
    warn: Callable[[str], None],
    given: Sequence[str] = (),
) -> str | None:
    """Write the load's record and its page, ``given`` as in ``LoadRecord``, and return the page.

    A failure to do so is a warning: it does not change how the load ended.

    A load that was finished already keeps the record and the page that it has, if any.
    """
    if report.tables and report.status == "done" and all(table.status == "already_done" for table in report.tables):
        return None
    first = next(iter(controls.values()))
    try:
        record = make_record(report, error, phases, controls, datetime.now(UTC), given)
        key = first.keys.record(report.job_id, report.attempt)
        first.write_once(key, record.model_dump_json(indent=1), keep=True)
        whole, earlier = Loads(controls).read_before(record, CHARTED - 1, MOST_LISTED)
        page = render_load(whole, earlier)
        _put(first, first.keys.page(report.job_id), page.encode())
        return page
    except (LakeError, Unclear) as problem:
        warn(f"the page of load {report.job_id} could not be left beside its records: {problem}")
    except Exception as problem:
        LOG.exception("The page of load %s met a fault of the program.", report.job_id)
        warn(f"the page of load {report.job_id} could not be made: {type(problem).__name__}: {problem}")
    return None


def leave_ending(
    report: RunReport,
    phases: Mapping[str, Mapping[str, float]],
    controls: Mapping[str, Control],
    warn: Callable[[str], None],
) -> str | None:
    """Write the record of a load that nobody stopped: its tables say how it ended."""
    failure = find_failure(report)
    return leave_record(report, ErrorReport.of(failure) if failure else None, phases, controls, warn)


def make_record(
    report: RunReport,
    error: ErrorReport | None,
    phases: Mapping[str, Mapping[str, float]],
    controls: Mapping[str, Control],
    now: datetime,
    given: Sequence[str] = (),
) -> LoadRecord:
    """Return the record of a load that has just ended."""
    intents = _read_intents(report, controls)
    tables = tuple(_describe(result, phases, intents.get(result.id)) for result in report.tables)
    return LoadRecord(
        given=tuple(given),
        pipeline=report.pipeline,
        job_id=report.job_id,
        attempt=report.attempt,
        status="stopped" if report.stopped else report.status,
        started=report.started_at,
        finished=now,
        seconds=report.seconds,
        requests=report.requests,
        code=error.code if error else None,
        message=error.message if error else None,
        remedy=error.remedy if error else "",
        notes=report.notes,
        tables=tables,
    )


def _read_intents(report: RunReport, controls: Mapping[str, Control]) -> dict[str, Intent]:
    """Return the readable intents of the tables that this attempt committed."""
    done = [result.id for result in report.tables if result.status == "done"][:MOST_INTENTS]
    committed_names = [name for name in done if name in controls]

    def read(name: str) -> Intent | None:
        try:
            return controls[name].find_intent(report.job_id, report.attempt)
        except LakeError:
            return None

    intents = zip(committed_names, call_all(read, committed_names), strict=True)
    return {name: intent for name, intent in intents if intent is not None}


def find_own_seconds(result: TableResult, phases: Mapping[str, Mapping[str, float]]) -> float:
    """Return the seconds of a table without those in which it waited for Spark to start, which all tables share."""
    return max(result.seconds - phases.get(result.id, {}).get(SPARK_STARTS, 0.0), 0.0)


def _describe(result: TableResult, phases: Mapping[str, Mapping[str, float]], intent: Intent | None) -> LoadedTable:
    return LoadedTable.of(
        result,
        seconds=find_own_seconds(result, phases),
        phases=phases.get(result.id, {}),
        columns=tuple(_list_columns(result, intent))[:MOST_COLUMNS] if intent is not None else (),
        sizes=_measure_files(intent) if intent is not None else None,
    )


def _list_columns(result: TableResult, intent: Intent) -> Iterable[tuple[str, str]]:
    """Return a Glue table's columns with their types, else the leaves of its Parquet files."""
    columns = intent.catalog.list_columns()
    return ((name, "") for name in result.columns) if columns is None else columns


def _measure_files(intent: Intent) -> FileSizes | None:
    try:
        ordered = sorted(receipt.size for receipt in intent.files.without_statistics())
    except LakeError:
        # The load is done, and its page says what is known.
        return None
    if not ordered:
        return None
    return FileSizes(smallest=ordered[0], median=median_low(ordered), largest=ordered[-1])


def _put(control: Control, key: str, body: bytes) -> None:
    """Write an object, over the one that an earlier attempt at the same load wrote."""
    if control.store.create(key, body) is None and (stored := control.store.get(key)):
        control.store.replace(key, body, stored[1])
