"""A load, top to bottom: each table is registered, checked, staged, bound to an intent, and committed."""

import logging
import time
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.batches import is_due, require_no_stream
from lakewriter.commit.control import Control, control_of
from lakewriter.commit.data_store import reach_from
from lakewriter.commit.presence import require_presence
from lakewriter.commit.retention import due, sweep
from lakewriter.commit.s3_store import S3Store
from lakewriter.commit.state import TableState
from lakewriter.errors import InternalError, LakeError, PendingUnrecoverableError, StateLostError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Receipt
from lakewriter.report import RunReport, TableResult, counted
from lakewriter.run.outcome import crash, ending, interrupted, outcome
from lakewriter.run.prepare import SparkFactory
from lakewriter.run.results import done, failed, not_run, repeated
from lakewriter.run.stop import Stop, Stopped
from lakewriter.run.sync import Sync, TableSync, ownership, plan_sync
from lakewriter.run.table_staging import Load, MicroBatch, Progress, staged
from lakewriter.source.jobs import wait_for_tasks
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec, TableSpec

LOG: Final = logging.getLogger(__name__)

TASKS_SECONDS: Final = 15.0
"""How long tasks may take to end whose job was cancelled, before their uploads are listed."""

Outcome = tuple[TableResult, LakeError | None, tuple[Receipt, ...]]
"""What became of one table."""


def run(  # noqa: PLR0913 - four of them are options by name
    spec: Spec,
    *,
    job_id: str,
    clients: Clients,
    spark: SparkFactory,
    progress: Progress = lambda *_: None,
    sync: Sync | None = None,
    micro_batch: MicroBatch | None = None,
    stop: Stop | None = None,
) -> RunReport:
    """One attempt at load ``job_id``; what became of each table is in the report, not raised.

    Once it is asked to ``stop``, no table begins or is bound any more; one that is bound is taken to its end.
    """
    clock = time.monotonic()
    load = replace(_open(spec, job_id, clients, spark, progress, sync), micro_batch=micro_batch, stop=stop or Stop())
    try:
        results = _all(load)
    except BaseException as error:
        _write_outcome(load, crash(error, datetime.now(UTC)))
        raise
    failures = sync.failures if sync is not None else ()
    errors = [error for _, error, _ in results if error] + [error for _, error in failures]
    requests = load.clients.requests.copy()
    for _, _, receipts in results:
        for receipt in receipts:
            requests.update(receipt.requests)
    unfinished = any(result.status == "not_run" for result, _, _ in results)
    stopped = load.stop.reason if load.stop.is_asked and unfinished else None
    report = RunReport(
        pipeline=spec.pipeline,
        job_id=job_id,
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
        _write_outcome(load, interrupted(stopped, datetime.now(UTC)))
    return report


def _all(load: Load) -> tuple[Outcome, ...]:
    tables = [table for table in load.spec.tables if load.sync is None or table.id in load.sync.tables]
    if len(tables) == 1:
        return (_guarded(load, tables[0]),)
    with ThreadPoolExecutor(load.spec.limits.parallel_tables, thread_name_prefix="table") as pool:
        return tuple(pool.map(lambda table: _guarded(load, table), tables))


def _open(
    spec: Spec, job_id: str, clients: Clients, spark: SparkFactory, progress: Progress, sync: Sync | None
) -> Load:
    store, keys = S3Store(clients), ControlKeys(spec.access.prefix, spec.pipeline)
    controls = {table.id: control_of(spec, table, store) for table in spec.tables}
    keep = timedelta(days=spec.keep_loads_days)
    attempt = Attempt(spec.pipeline, job_id, uuid.uuid4().hex[:12], datetime.now(UTC), keep)
    names = {t.id: _named(t, attempt, sync) for t in spec.tables}
    _require_a_readable(controls.values())
    first = next(iter(controls.values()))
    key, record = keys.begin(job_id, attempt.id), attempts.begin_record(attempt, names)
    first.write_once(key, record)
    if spec.access.endpoint and not spec.access.single_writer:
        first.require_conditions(key, record)
    return Load(spec, attempt, clients, spark, progress, controls, names, reach_from(clients), sync=sync)


def _require_a_readable(controls: Iterable[Control]) -> None:
    """Nothing is written where no table's state can be gone by: what is wrong with the first of them is raised.

    What a state says is not gone by yet: the table registers with a condition on its etag, and reads it again where
    that is over. A table whose state alone cannot be read fails there, and the others go on.
    """
    errors = []
    for control in controls:
        try:
            control.state.read()
        except (PendingUnrecoverableError, StateLostError) as error:
            errors.append(error)
        else:
            return
    raise errors[0]


def _named(table: TableSpec, attempt: Attempt, sync: Sync | None) -> ObjectNames:
    sync_id = sync.sync_id if sync is not None else 0
    return table.layout.bind(job_id=attempt.job_id, attempt=attempt.id, start=attempt.started, sync_id=sync_id)


def _guarded(load: Load, table: TableSpec) -> Outcome:
    clock = time.monotonic()
    if load.stopped.is_set() or load.stop.is_asked:
        load.progress(table, "stopped", "did not begin")
        return not_run(table), None, ()
    try:
        result, receipts = _table(load, table)
    except Stopped as stopped:
        load.progress(table, "stopped", "nothing is published")
        return not_run(table, stopped), None, ()
    except LakeError as error:
        return _failed(load, table, error, clock)
    except Exception as error:
        LOG.exception("Table %s of load %s met a fault of the program.", table.id, load.attempt.job_id)
        fault = InternalError.met(f"table {table.id}", error, unharmed="The table's earlier loads are as they were.")
        return _failed(load, table, fault, clock)
    return result.model_copy(update={"seconds": round(time.monotonic() - clock, 3)}), None, receipts


def _failed(load: Load, table: TableSpec, error: LakeError, clock: float) -> Outcome:
    load.progress(table, "failed", str(error))
    if load.spec.on_failure == "stop":
        load.stopped.set()
    return failed(table, error, time.monotonic() - clock), error, ()


def _table(load: Load, table: TableSpec) -> tuple[TableResult, tuple[Receipt, ...]]:
    control = load.controls[table.id]
    load.progress(table, "beginning", "")
    began = attempts.register(control, load.attempt, load.reach)
    if began is None:
        return _already_done(load, table), ()
    receipts: list[Receipt] = []
    if not _stage_and_bind(load, table, began, receipts):
        return repeated(table), ()
    attempts.settle(control, load.attempt, load.reach)
    result = done(control, load.attempt)
    if result.status == "already_done":
        # Another attempt of this job overtook this one and finished it.
        load.progress(table, "already done", "")
        return result, ()
    aside = f", {counted(result.set_aside.rows, 'bad row')} set aside" if result.set_aside is not None else ""
    load.progress(table, "done", f"{counted(result.rows, 'row')} in {counted(result.files, 'file')}{aside}")
    return result, tuple(receipts)


def _already_done(load: Load, table: TableSpec) -> TableResult:
    control = load.controls[table.id]
    if load.micro_batch is not None:
        # A report tells of the number only, which an older checkpoint gives to other rows.
        _is_next(load.micro_batch, control.state.read(), table)
    if load.spec.iceberg:
        require_presence(control, load.attempt.job_id, load.clients)
    load.progress(table, "already done", "")
    return done(control, load.attempt)


def _stage_and_bind(load: Load, table: TableSpec, began: TableState, receipts: list[Receipt]) -> bool:
    """Whether the table is bound: not for a batch that is done already, of which the attempt lets go."""
    control = load.controls[table.id]
    try:
        if load.micro_batch is None:
            require_no_stream(began, table.id)
        elif not _is_next(load.micro_batch, began, table):
            attempts.give_up(control, load.attempt, load.names[table.id], ())
            return False
        load = _date_after(load, table, began)
        intent = staged(load, table, began, _plan_sync(load, table, began), receipts)
        load.progress(table, "committing", f"{counted(intent.rows, 'row')} in {counted(len(receipts), 'file')}")
        load.stop.check()
        attempts.bind(control, load.attempt, intent, began, load.reach)
    except BaseException as error:
        _give_up(load, table, receipts, error)
        if isinstance(error, Exception):
            # Whatever it failed with: Spark's jobs are cancelled.
            load.stop.check(cause=error)
        raise
    return True


def _date_after(load: Load, table: TableSpec, began: TableState) -> Load:
    """The load with a time after the table's last commit, which another load may have made since this one started.

    Its keys differ then, so a begin record of the table's own says them before anything is staged under them.
    """
    last = began.last_commit
    if last is None or last < load.attempt.started:
        return load
    # Keys that carry the time in milliseconds alone would be those of a load that began in the same one.
    is_coarse = "epoch" in table.layout.template.variables
    step = timedelta(milliseconds=1) if is_coarse else timedelta(microseconds=1)
    attempt = replace(load.attempt, started=last + step)
    names = load.names | {table.id: _named(table, attempt, load.sync)}
    control = load.controls[table.id]
    record = attempts.begin_record(attempt, {table.id: names[table.id]})
    control.write_once(control.keys.table_begin(attempt.job_id, attempt.id, table.id), record)
    return replace(load, attempt=attempt, names=names)


def _plan_sync(load: Load, table: TableSpec, began: TableState) -> TableSync | None:
    """The table's part of a sync; ``CONCURRENT_LOAD`` where its input was chosen by a state that is over."""
    if load.sync is None:
        return None
    part, control = load.sync.tables[table.id], load.controls[table.id]
    planned = plan_sync(load.spec, table, control, began, load.sync.sync_id, part)
    if part.read is not None:
        attempts.require_unchanged(control, load.attempt, part.read, began, exclusive=planned.intent.exclusive)
    ownership(load.spec, table, control).join(load.attempt.started, refreshes=planned.refreshes)
    return planned


def _is_next(micro: MicroBatch, state: TableState, table: TableSpec) -> bool:
    return is_due(state, micro.batch, table.id, micro.since)


def _give_up(load: Load, table: TableSpec, receipts: list[Receipt], error: BaseException) -> None:
    if load.stop.is_asked:
        wait_for_tasks(TASKS_SECONDS)
    try:
        attempts.give_up(load.controls[table.id], load.attempt, load.names[table.id], receipts)
    except LakeError as second:
        error.add_note(f"What was staged could not be withdrawn: {second}")


def _end(load: Load, errors: list[LakeError]) -> None:
    _write_outcome(load, outcome(ending(errors), datetime.now(UTC)))
    control = load.controls[load.spec.tables[0].id]
    try:
        if due(control.state.latest(), load.attempt.started):
            sweep(control, load.attempt.started, load.attempt.keep)
    except LakeError as error:
        # The load has ended; what it could not clear away is only taking room.
        load.progress(load.spec.tables[0], "done", f"old control objects were not cleared away: {error}")


def _write_outcome(load: Load, content: Mapping[str, object]) -> None:
    control = load.controls[load.spec.tables[0].id]
    control.write_once(control.keys.outcome(load.attempt.job_id, load.attempt.id), content, keep=True)
