"""A load, top to bottom: each table is registered, checked, staged, bound to an intent, and committed."""

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event

from job.aws import Clients
from job.commit import attempt as attempts
from job.commit.attempt import Attempt
from job.commit.control import Control
from job.commit.iceberg.vended import vendor_of_tasks
from job.commit.intent import CatalogAction, Intent
from job.commit.reach import Reach, data_store, reach_from
from job.commit.state import TableState
from job.commit.store import S3Store
from job.commit.sweep import due, sweep
from job.errors import LakeError
from job.layout import ObjectNames
from job.naming import ControlKeys
from job.outcome import crash, ending, outcome
from job.prepare import SparkFactory, check_empty, make_ready, prepare, without_partition
from job.receipt import Cursor, Receipt
from job.report import RunReport, TableResult, counted
from job.shape.cursor import highest
from job.shape.plan import ShapePlan
from job.source.feed import Feed
from job.spec import Spec, TableSpec
from job.transforms import Transforms
from job.write.stage import first_indexes, stage
from job.write.task import TaskPlan

Progress = Callable[[TableSpec, str, str], None]
"""Called with a table, the step it is in, and a detail for people."""


@dataclass(frozen=True)
class Load:
    """What the tables of one load share."""

    spec: Spec
    attempt: Attempt
    clients: Clients
    spark: SparkFactory
    progress: Progress
    controls: Mapping[str, Control]
    names: dict[str, ObjectNames]
    reach: Reach
    stopped: Event = field(default_factory=Event)


def run(
    spec: Spec, *, job_id: str, clients: Clients, spark: SparkFactory, progress: Progress = lambda *_: None
) -> RunReport:
    """One attempt at load ``job_id``; what became of each table is in the report, not raised."""
    clock = time.monotonic()
    load = _open(spec, job_id, clients, spark, progress)
    try:
        with ThreadPoolExecutor(spec.limits.parallel_tables, thread_name_prefix="table") as pool:
            results = tuple(pool.map(lambda table: _guarded(load, table), spec.tables))
    except BaseException as error:
        _write_outcome(load, crash(error, datetime.now(UTC)))
        raise
    errors = [error for _, error, _ in results if error]
    requests = load.clients.requests.copy()
    for _, _, receipts in results:
        for receipt in receipts:
            requests.update(receipt.requests)
    report = RunReport(
        pipeline=spec.pipeline,
        job_id=job_id,
        attempt=load.attempt.id,
        status="failed" if errors else "done",
        started_at=load.attempt.started,
        seconds=round(time.monotonic() - clock, 3),
        tables=tuple(result for result, _, _ in results),
        requests=dict(requests),
    )
    _end(load, errors)
    return report


def _open(spec: Spec, job_id: str, clients: Clients, spark: SparkFactory, progress: Progress) -> Load:
    store, keys = S3Store(clients), ControlKeys(spec.access.prefix, spec.pipeline)
    controls = {table.id: Control(store, keys, table.id) for table in spec.tables}
    last = max((control.state.read().last_commit or datetime.min.replace(tzinfo=UTC)) for control in controls.values())
    started = max(datetime.now(UTC), last + timedelta(microseconds=1))
    attempt = Attempt(spec.pipeline, job_id, uuid.uuid4().hex[:12], started, timedelta(days=spec.keep_loads_days))
    names = {t.id: t.layout.bind(job_id=job_id, attempt=attempt.id, start=started) for t in spec.tables}
    first = next(iter(controls.values()))
    key, record = keys.begin(job_id, attempt.id), attempts.begin_record(attempt, names)
    first.write_once(key, record)
    if spec.access.endpoint and not spec.access.single_writer:
        first.require_conditions(key, record)
    return Load(spec, attempt, clients, spark, progress, controls, names, reach_from(clients))


def _guarded(load: Load, table: TableSpec) -> tuple[TableResult, LakeError | None, tuple[Receipt, ...]]:
    clock = time.monotonic()
    if load.stopped.is_set():
        return TableResult(schema_=table.schema_name, table=table.name, status="not_run"), None, ()
    try:
        result, receipts = _table(load, table)
    except LakeError as error:
        load.progress(table, "failed", str(error))
        if load.spec.on_failure == "stop":
            load.stopped.set()
        return _failed(table, error, time.monotonic() - clock), error, ()
    return result.model_copy(update={"seconds": round(time.monotonic() - clock, 3)}), None, receipts


def _table(load: Load, table: TableSpec) -> tuple[TableResult, tuple[Receipt, ...]]:
    control = load.controls[table.id]
    load.progress(table, "beginning", "")
    began = attempts.register(control, load.attempt, load.reach)
    if began is None:
        load.progress(table, "already done", "")
        return _done(control, load.attempt, "already_done"), ()
    receipts: list[Receipt] = []
    try:
        intent = _staged(load, table, began, receipts)
        load.progress(table, "committing", f"{counted(intent.rows, 'row')} in {counted(len(receipts), 'file')}")
        attempts.bind(control, load.attempt, intent, began, load.reach)
    except BaseException as error:
        _give_up(load, table, receipts, error)
        raise
    attempts.settle(control, load.attempt, load.reach)
    result = _done(control, load.attempt, "done")
    load.progress(table, "done", f"{counted(result.rows, 'row')} in {counted(result.files, 'file')}")
    return result, tuple(receipts)


def _staged(load: Load, table: TableSpec, began: TableState, receipts: list[Receipt]) -> Intent:
    control = load.controls[table.id]
    check_empty(control.store, table, began)
    load.progress(table, "reading", "")
    before = began.cursor if table.cursor else None
    prepared = prepare(load.spec, table, began, load.names[table.id], load.attempt.load, load.clients, load.spark)
    clock = time.monotonic()
    try:
        action, shape, names = make_ready(prepared, load.spec.access, load.names[table.id], began)
        if names != load.names[table.id]:
            load.names[table.id] = names
            attempts.abort_elsewhere(control, names, load.attempt)
        store = data_store(control.store, action, load.spec.access, load.reach)
        names = attempts.free_names(store, load.attempt, names)
        load.progress(table, "writing", f"{prepared.feed.kind} feed, {counted(prepared.feed.partitions, 'task')}")
        receipts.extend(stage(prepared.feed, _task_plan(load, names, shape, prepared.feed, action)))
    finally:
        prepared.feed.close()
    speculative = load.spark().conf.get("spark.speculation", "false") == "true"
    # A task that ran again, or a creation sent again, may have left an upload that no receipt tells of.
    if speculative or any(receipt.task_attempt or receipt.requests.get("POST", 0) > 1 for receipt in receipts):
        attempts.abort_strays(control, names, receipts, load.attempt)
    after = before
    for receipt in receipts:
        after = highest(after, receipt.cursor)
    action = action if receipts else without_partition(action)
    cursors, seconds = (before, after), time.monotonic() - clock
    return _intent(load, table, prepared.feed.kind, action, tuple(receipts), cursors, seconds)


def _task_plan(load: Load, names: ObjectNames, shape: ShapePlan, feed: Feed, action: CatalogAction) -> TaskPlan:
    return TaskPlan(
        access=load.spec.access,
        names=names,
        shape=shape,
        encoding=load.spec.encoding,
        limits=load.spec.limits,
        load=load.attempt.load,
        job_id=load.attempt.job_id,
        start=load.attempt.started,
        partition_count=feed.partitions,
        first_indexes=first_indexes(feed),
        counts=feed.counts,
        transforms=Transforms.of(shape.partition, shape.schema) if shape.partition else None,
        vendor=vendor_of_tasks(action, load.clients),
    )


def _intent(
    load: Load,
    table: TableSpec,
    feed: str,
    action: CatalogAction,
    receipts: tuple[Receipt, ...],
    cursors: tuple[Cursor | None, Cursor | None],
    seconds: float,
) -> Intent:
    return Intent(
        pipeline=load.spec.pipeline,
        job_id=load.attempt.job_id,
        attempt=load.attempt.id,
        table_id=table.id,
        schema_name=table.schema_name,
        table=table.name,
        started=load.attempt.started,
        access=load.spec.access,
        catalog=action,
        receipts=receipts,
        cursor_before=cursors[0],
        cursor_after=cursors[1],
        feed=feed,
        staged_seconds=round(seconds, 3),
    )


def _give_up(load: Load, table: TableSpec, receipts: list[Receipt], error: BaseException) -> None:
    try:
        attempts.give_up(load.controls[table.id], load.attempt, load.names[table.id], receipts)
    except LakeError as second:
        error.add_note(f"What was staged could not be withdrawn: {second}")


def _done(control: Control, attempt: Attempt, status: str) -> TableResult:
    report = control.report(attempt.job_id) or {}
    kept = ("table", "rows", "files", "bytes", "keys", "feed", "engine", "notes", "health")
    return TableResult.model_validate(
        {"schema_": report["schema_name"], "status": status} | {name: report[name] for name in kept}
    )


def _failed(table: TableSpec, error: LakeError, seconds: float) -> TableResult:
    return TableResult(
        schema_=table.schema_name,
        table=table.name,
        status="failed",
        code=error.code,
        message=f"{error.message} {error.remedy}".strip(),
        seconds=round(seconds, 3),
        notes=tuple(getattr(error, "__notes__", ())),
    )


def _end(load: Load, errors: list[LakeError]) -> None:
    _write_outcome(load, outcome(ending(errors), datetime.now(UTC)))
    control = load.controls[load.spec.tables[0].id]
    states = [each.state.latest() for each in load.controls.values()]
    if due(states[0], load.attempt.started):
        try:
            sweep(control, states, load.attempt.started, load.attempt.keep)
        except LakeError as error:
            # The load is done; what it could not clear away is only taking room.
            load.progress(load.spec.tables[0], "done", f"old control objects were not cleared away: {error}")


def _write_outcome(load: Load, content: Mapping[str, object]) -> None:
    control = load.controls[load.spec.tables[0].id]
    control.write_once(control.keys.outcome(load.attempt.job_id, load.attempt.id), content)
