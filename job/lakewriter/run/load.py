"""A load, top to bottom: each table is registered, checked, staged, bound to an intent, and committed."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.presence import require_presence
from lakewriter.commit.recover import recover
from lakewriter.commit.repeated_loads import Repeats, find_done, read_repeats
from lakewriter.commit.resets import settle_backfill
from lakewriter.commit.retention import sweep
from lakewriter.errors import InternalError, LakeError, SpecInvalidError
from lakewriter.lineage.load_follower import follow_load
from lakewriter.receipt import Receipt, Totals
from lakewriter.receipts.parts import Receipts
from lakewriter.records.changes import Intent
from lakewriter.records.state import TableState
from lakewriter.report import RunReport, TableResult, format_count
from lakewriter.run.checks import join_writers
from lakewriter.run.kinds import Kind, MicroBatch, Plain
from lakewriter.run.outcome_file import choose_error, describe_crash, describe_end, describe_stop
from lakewriter.run.results import make_failed, make_not_run, make_repeated, read_result
from lakewriter.run.staged_table import BeginRecord, Load, Progress, StagedUploads, seems_done
from lakewriter.run.stop import Stop, Stopped
from lakewriter.run.sync import TableSync, make_ownership, plan_sync
from lakewriter.run.table_intent import build_intent
from lakewriter.run.table_lanes import run_tables
from lakewriter.run.table_staging import check_table, stage_files
from lakewriter.source.request import SparkFactory
from lakewriter.source.spark_jobs import wait_for_tasks
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.load_ids import REPLAY
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

LOG: Final = logging.getLogger(__name__)

Outcome = tuple[TableResult, LakeError | None, Totals]
"""The result of one table, and the sums over its files."""
NOTHING: Final = Totals()
Way = Callable[[Load, Sequence[TableSpec]], tuple[Outcome, ...]]
"""Loads tables; returns the outcome of each, in their order."""


@dataclass(frozen=True)
class Begun:
    """A table whose attempt is registered: the ``state`` that it starts from, and ``load`` with a time after that
    state's last commit."""

    load: Load
    state: TableState
    sync: TableSync | None


def load_table(load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
    """Do the nine steps of one table. A failure before the table is bound withdraws what is staged."""
    begun = begin_table(load, table)
    if isinstance(begun, TableResult):
        return begun, NOTHING
    load = begun.load
    with withdraw_on_error(load, table) as uploads:
        intent = stage_table(load, table, begun.state, begun.sync, uploads)
    receipts = uploads.receipts
    return commit_table(load, table, begun.state, intent, receipts), receipts.totals


def begin_table(load: Load, table: TableSpec) -> Begun | TableResult:
    """Step 1: recover what is pending, register this attempt, abort what earlier ones of this job left staged.

    Returns a result where there is nothing to load.
    """
    control = load.control(table)
    load.progress(table, "beginning", "")
    if isinstance(load.kind, MicroBatch) and not load.kind.is_due(_recover(load, table), table.id):
        # Its report may be cleared away already: the state alone says that it is done.
        return _find_done(load, table) if control.read_report(load.attempt.job_id) else make_repeated(table)
    if not isinstance(load.kind, MicroBatch) and not load.kind.takes:
        settle_backfill(control, table.backfill, load.pipeline.open_clients)
    join_writers(load, table)
    began = attempts.register(control, load.attempt, load.pipeline.open_clients, load.note_begin)
    if began is None:
        return _find_done(load, table)
    try:
        if not load.kind.is_due(began, table.id):
            attempts.give_up(control, load.attempt, load.names[table.id], ())
            return make_repeated(table)
        load.follower.start(table)
        load = _date_after(load, table, began)
        return Begun(load, began, _plan_sync(load, table, began))
    except BaseException as error:
        withdraw_table(load, table, (), error)
        raise


def commit_table(load: Load, table: TableSpec, began: TableState, intent: Intent, receipts: Receipts) -> TableResult:
    """Take steps 4 to 9 of a table whose files are staged."""
    control = load.control(table)
    try:
        load.stop.check()
        if load.kind.sync is not None:
            load.kind.sync.tables[table.id].gate()
        # 4. Intend: the point of no return. The gate opens for several tables at once, so nothing stops one of them.
        load.progress(
            table, "committing", f"{format_count(intent.rows, 'row')} in {format_count(len(receipts), 'file')}"
        )
        attempts.bind(control, load.attempt, intent, began, load.pipeline.open_clients)
    except BaseException as error:
        withdraw_table(load, table, receipts.without_statistics(), error)
        raise
    # 5 to 9. Complete the uploads, publish to the catalog, retire what is replaced, read back, close: commit/recover.py
    # does it from the intent, for this process as for any that finds the intent pending.
    attempts.settle(control, load.attempt, load.pipeline.open_clients)
    return report_done(load, table, receipts)


def stage_table(
    load: Load, table: TableSpec, began: TableState, sync: TableSync | None, uploads: StagedUploads
) -> Intent:
    """Take steps 2 and 3, and build the intent; ``uploads`` gets the receipts of what was staged, whatever fails."""
    # 2. Check first: all that can fail before a byte is written. An Iceberg table is created or evolved at its end.
    with check_table(load, table, began, sync) as checked:
        # 3. Stage: tasks shape, encode and upload; nothing is visible.
        staged = stage_files(load, table, checked, uploads)
    return build_intent(load, table, began, staged)


def run(  # noqa: PLR0913 - four of them are options by name
    spec: Spec,
    *,
    job_id: str,
    clients: Clients,
    spark: SparkFactory,
    progress: Progress = lambda *_: None,
    kind: Kind = Plain(),  # noqa: B008 - it is frozen
    stop: Stop | None = None,
    way: Way | None = None,
) -> RunReport:
    """Run one attempt at load ``job_id``; the report has each table's outcome, and no error of a table is raised.
    ``way`` loads the tables.

    Once it is asked to ``stop``, no table begins or is bound any more; one that is bound is taken to its end.
    """
    clock = time.monotonic()
    load = open_load(Pipeline.open(spec, clients), job_id, spark, progress, kind, stop or Stop())
    try:
        sync = load.kind.sync
        results = (way or load_apart)(load, [table for table in spec.tables if sync is None or table.id in sync.tables])
    except BaseException as error:
        _write_outcome(load, describe_crash(error, datetime.now(UTC)))
        load.follower.close("failed")
        raise
    return close_load(load, results, clock)


def close_load(load: Load, results: Sequence[Outcome], clock: float) -> RunReport:
    """Write the outcome of a load whose tables have ended, and report it; ``clock`` is when it began."""
    sync, spec = load.kind.sync, load.pipeline.spec
    failures = sync.failures if sync is not None else ()
    for result, error in (*((result, error) for result, error, _ in results), *failures):
        load.follower.end(result, error)
    errors = [error for _, error, _ in results if error] + [error for _, error in failures]
    requests = load.pipeline.clients.requests.copy()
    for _, _, totals in results:
        requests.update(totals.requests)
    unfinished = any(result.status == "not_run" for result, _, _ in results)
    stopped = load.stop.reason if load.stop.is_asked and unfinished else None
    report = RunReport(
        pipeline=spec.pipeline,
        job_id=load.attempt.job_id,
        attempt=load.attempt.id,
        status="failed" if errors or stopped else "done",
        stopped=stopped,
        started_at=load.attempt.started,
        seconds=round(time.monotonic() - clock, 3),
        tables=(*(result for result, _, _ in results), *(result for result, _ in failures)),
        requests=dict(requests),
    )
    if stopped is None:
        _end(load, errors)
    else:
        _write_outcome(load, describe_stop(stopped, datetime.now(UTC)))
    # Closed after the outcome is written, since others wait for that.
    return report.model_copy(update={"notes": load.follower.close("stopped" if stopped else report.status)})


def open_load(pipeline: Pipeline, job_id: str, spark: SparkFactory, progress: Progress, kind: Kind, stop: Stop) -> Load:
    spec = pipeline.spec
    keep = timedelta(days=spec.keep_loads_days)
    # A batch cannot be loaded again after an undo: its checkpoint has moved on.
    _require_own_job_id(job_id, kind)
    repeats = Repeats() if isinstance(kind, MicroBatch) else read_repeats(pipeline.first_control, job_id)
    attempt = Attempt(spec.pipeline, job_id, uuid.uuid4().hex[:12], datetime.now(UTC), keep, repeats)
    names = {table.id: _name_objects(table, attempt, kind) for table in spec.tables}
    pipeline.require_readable_state()
    key, record = pipeline.keys.begin(job_id, attempt.id), attempts.make_begin_record(attempt, names)
    begin = BeginRecord(
        pipeline.first_control, key, record, bool(spec.access.endpoint) and not spec.access.single_writer
    )
    if not seems_done(pipeline, attempt, kind):
        begin.write()
    follower = kind.follower or follow_load(spec, job_id=job_id, attempt=attempt.id, started=attempt.started)
    return Load(pipeline, attempt, spark, progress, names, kind, stop, follower=follower, begin=begin)


def _require_own_job_id(job_id: str, kind: Kind) -> None:
    if job_id.startswith(REPLAY) and not kind.takes:
        raise SpecInvalidError(
            f"job id {job_id!r} begins with {REPLAY!r}, as those of replays do.", remedy="Give the load another job id."
        )


def _name_objects(table: TableSpec, attempt: Attempt, kind: Kind) -> ObjectNames:
    sync_id = kind.sync.sync_id if kind.sync is not None else 0
    names = table.layout.bind(
        job_id=attempt.job_id, attempt=attempt.id, start=attempt.started, sync_id=sync_id, table=table.id
    )
    return replace(names, quarantine=table.quarantine or "")


def load_apart(load: Load, tables: Sequence[TableSpec]) -> tuple[Outcome, ...]:
    """Load each table for itself, several at a time."""
    return run_tables(load, tables, load_guarded)


def load_guarded(load: Load, table: TableSpec) -> Outcome:
    """Load a table for itself; its failure becomes its outcome."""
    outcome = guard_table(load, table, load_table)
    load.follower.end(outcome[0], outcome[1])
    return outcome


def guard_table(load: Load, table: TableSpec, work: Callable[[Load, TableSpec], tuple[TableResult, Totals]]) -> Outcome:
    """Load a table by ``work``, and return its failure as an outcome: the other tables go on."""
    clock = time.monotonic()
    if load.stopped.is_set() or load.stop.is_asked:
        load.progress(table, "stopped", "did not begin")
        return make_not_run(table), None, NOTHING
    try:
        result, totals = work(load, table)
    except Stopped as stopped:
        load.progress(table, "stopped", "nothing is published")
        return make_not_run(table, stopped), None, NOTHING
    except LakeError as error:
        return _fail(load, table, error, clock)
    except Exception as error:
        LOG.exception("Table %s of load %s met a fault of the program.", table.id, load.attempt.job_id)
        fault = InternalError.met(f"table {table.id}", error, unharmed="The table's earlier loads are as they were.")
        return _fail(load, table, fault, clock)
    return result.model_copy(update={"seconds": round(time.monotonic() - clock, 3)}), None, totals


def _fail(load: Load, table: TableSpec, error: LakeError, clock: float) -> Outcome:
    load.progress(table, "failed", str(error))
    if load.pipeline.spec.on_failure == "stop":
        load.stopped.set()
    return make_failed(table, error, time.monotonic() - clock), error, NOTHING


def report_done(load: Load, table: TableSpec, receipts: Receipts) -> TableResult:
    result = read_result(load.control(table), load.attempt)
    if result.status == "already_done":
        # Another attempt of this job overtook this one and finished it.
        # Rule batch-overtaken
        _require_own_batch(load, table)
        load.progress(table, "already done", "")
        return result
    aside = f", {format_count(result.rows_set_aside, 'bad row')} set aside" if result.set_aside is not None else ""
    load.follower.commit(table, load.control(table).versions.get(load.attempt.load))
    load.progress(table, "done", f"{format_count(result.rows, 'row')} in {format_count(result.files, 'file')}{aside}")
    fields = {
        "changed": receipts.totals.changed,
        "columns": load.columns.get(table.id, ()),
        "repeated": load.repeated.get(table.id, result.repeated),
    }
    return result.model_copy(update=fields)


def _find_done(load: Load, table: TableSpec) -> TableResult:
    """Return the result of a load that is done here, maybe under the job id of one that this load repeats."""
    control, attempt = load.control(table), load.attempt
    _require_own_batch(load, table)
    done = attempt.job_id
    if attempt.repeats.of:
        done = find_done(control, control.state.recall(), done, attempt.repeats) or done
    if load.pipeline.spec.iceberg:
        require_presence(control, done, load.pipeline.clients)
    load.progress(table, "already done", "")
    return read_result(control, attempt, done)


def _require_own_batch(load: Load, table: TableSpec) -> None:
    """Raise ``CHECKPOINT_LOST`` or ``CONCURRENT_LOAD`` where the batch that is done under this number has other rows.

    A report has the number only, which an older checkpoint, or another copy, gives to other rows.
    """
    if isinstance(load.kind, MicroBatch):
        # A report is written while its load is pending: only the state of a closed one shows which rows the batch had.
        load.control(table).state.read()
        load.kind.is_due(_recover(load, table), table.id)


def _recover(load: Load, table: TableSpec) -> TableState:
    return recover(load.control(table), load.pipeline.open_clients)


def _date_after(load: Load, table: TableSpec, began: TableState) -> Load:
    """Return the load with a time after the table's last commit, which another load may have made since this one
    started.

    Its keys change with the time, so a begin record of the table's own names them before anything is staged under them.
    """
    last = began.last_commit
    # Rule times-grow
    if last is None or last < load.attempt.started:
        return load
    # Keys whose only variable is the time in milliseconds would equal those of a load that began in the same
    # millisecond.
    is_coarse = "epoch" in table.layout.template.variables
    step = timedelta(milliseconds=1) if is_coarse else timedelta(microseconds=1)
    attempt = replace(load.attempt, started=last + step)
    names = load.names | {table.id: _name_objects(table, attempt, load.kind)}
    control = load.control(table)
    record = attempts.make_begin_record(attempt, {table.id: names[table.id]})
    control.write_once(control.keys.table_begin(attempt.job_id, attempt.id, table.id), record)
    return replace(load, attempt=attempt, names=names)


def _plan_sync(load: Load, table: TableSpec, began: TableState) -> TableSync | None:
    """Return the table's part of a sync; ``CONCURRENT_LOAD`` where its input was chosen by a state that has been
    replaced since."""
    sync, spec, control = load.kind.sync, load.pipeline.spec, load.control(table)
    if sync is None:
        return None
    part = sync.tables[table.id]
    planned = plan_sync(spec, table, control, began, sync.sync_id, part)
    if sync.is_bound_together(table.id):
        planned = planned.with_source_in(f"{load.attempt.job_id}/{load.attempt.id}")
    if part.read is not None:
        attempts.require_unchanged(control, load.attempt, part.read, began, exclusive=planned.intent.exclusive)
    make_ownership(spec, table, control).join(load.attempt.started, refreshes=planned.refreshes)
    return planned


@contextmanager
def withdraw_on_error(load: Load, table: TableSpec) -> Iterator[StagedUploads]:
    """Withdraw the uploads that are held if the context ends with an exception."""
    uploads = StagedUploads()
    try:
        yield uploads
    except BaseException as error:
        withdraw_table(load, table, uploads, error)
        raise


def withdraw_table(load: Load, table: TableSpec, receipts: Iterable[Receipt], error: BaseException) -> None:
    """Abort what is staged of a table that is not bound, after an ``error``; ``Stopped`` where that was asked for."""
    if load.stop.is_asked or isinstance(error, KeyboardInterrupt):
        # Spark's handler of the interrupt cancels its jobs.
        wait_for_tasks()
    try:
        attempts.give_up(load.control(table), load.attempt, load.names[table.id], receipts)
    except LakeError as second:
        error.add_note(f"What was staged could not be withdrawn: {second}")
    if isinstance(error, Exception):
        # After a stop any error may be raised here: Spark's jobs are cancelled.
        load.stop.check(cause=error)


def _end(load: Load, errors: list[LakeError]) -> None:
    if not errors and load.begin is not None and not load.begin.is_written:
        # All tables were done before: no record of the load changes.
        return
    _write_outcome(load, describe_end(choose_error(errors), datetime.now(UTC)))
    control = load.pipeline.first_control
    try:
        state = control.state.recall()
        # A state means that the pipeline has written the table, so a sweep must not create one.
        if state.write and state.is_sweep_due(now := control.require_time()):
            sweep(control, now, load.attempt.keep)
    except LakeError as error:
        # The load has ended; objects that could not be deleted only take storage.
        load.progress(load.pipeline.spec.tables[0], "done", f"old control objects were not cleared away: {error}")


def _write_outcome(load: Load, content: Mapping[str, object]) -> None:
    control = load.pipeline.first_control
    control.write_once(control.keys.outcome(load.attempt.job_id, load.attempt.id), content, keep=True)
