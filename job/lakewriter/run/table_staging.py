"""One table of a load, staged: from the state it began with to the intent that is to be bound."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import Reach, data_store
from lakewriter.commit.iceberg.catalog_vendor import vendor_of_tasks
from lakewriter.commit.intent import CatalogAction, Intent
from lakewriter.commit.old_objects import delete_all
from lakewriter.commit.state import TableState
from lakewriter.control_object import INFERRED
from lakewriter.errors import SourceFailedError
from lakewriter.naming import GENERATION_METADATA, TABLE_METADATA
from lakewriter.receipt import Batch, Receipt, SetAside
from lakewriter.report import counted
from lakewriter.run.earlier_columns import with_earlier_columns
from lakewriter.run.placement import in_catalog, make_ready, numbered, without_partition
from lakewriter.run.prepare import (
    Prepared,
    SparkFactory,
    appends_again,
    check_empty,
    check_unwritten,
    infers,
    prepare,
)
from lakewriter.run.stop import Stop
from lakewriter.run.sync import Sync, TableSync
from lakewriter.shape.cursor import highest
from lakewriter.shape.flattening import FlattenPlan
from lakewriter.shape.partitions import Transforms
from lakewriter.shape.shapers import AnyPlan
from lakewriter.source.feed import FeedOpener, open_feed
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec, TableSpec
from lakewriter.staging.set_aside import Aside
from lakewriter.staging.stage import first_indexes, stage
from lakewriter.staging.task import TaskPlan

Progress = Callable[[TableSpec, str, str], None]
"""Called with a table, the step it is in, and a detail for people."""


@dataclass(frozen=True)
class MicroBatch:
    """A load of one table that is a micro-batch of a continuous run; ``since`` was the last when its query started."""

    batch: Batch
    since: Batch | None
    opener: FeedOpener


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
    stop: Stop = field(default_factory=Stop)
    sync: Sync | None = None
    micro_batch: MicroBatch | None = None


@dataclass(frozen=True)
class _Staged:
    """What staging came to."""

    names: ObjectNames
    action: CatalogAction
    feed: str
    shape: AnyPlan
    receipts: tuple[Receipt, ...]
    seconds: float
    set_aside: SetAside | None


def staged(load: Load, table: TableSpec, began: TableState, sync: TableSync | None, receipts: list[Receipt]) -> Intent:
    """The intent; ``receipts`` is filled with all that was staged, whatever is raised."""
    control = load.controls[table.id]
    if sync is not None:
        delete_all(control, sync.purge)
    exclusive = _is_exclusive(load, table, sync)
    _tell_of_others(load, table, began, exclusive=exclusive)
    check_empty(control.store, table, began, control.state.read)
    names = numbered(control.store, load.names[table.id], began)
    load.progress(table, "reading", "" if load.micro_batch else appends_again(table, began.committed) or "")
    in_place = in_catalog(load.spec, table, names, load.attempt.load, load.clients)
    check_unwritten(in_place, table, began, control.state.read)
    opener = load.micro_batch.opener if load.micro_batch is not None else open_feed
    before = with_earlier_columns(control.store, load.clients, table, began, names)
    prepared = prepare(load.spec, table, before, in_place, load.spark, sync, opener)
    clock = time.monotonic()
    try:
        action, shape, names = _placed(load, table, began, names, prepared)
        if exclusive:
            # What is staged from here on could not be bound.
            attempts.require_unchanged(control, load.attempt, began, control.state.read(), exclusive=True)
        load.progress(table, "writing", f"{prepared.feed.kind} feed, {counted(prepared.feed.partitions, 'task')}")
        plan = _task_plan(load, table, names, replace(prepared, shape=shape), action, sync)
        files, set_aside = stage(prepared.feed, plan)
        receipts.extend(files)
        require_few(table, set_aside, sum(receipt.rows for receipt in files))
    finally:
        prepared.feed.close()
    _abort_strays(load, control, names, receipts)
    action = action if receipts else without_partition(action)
    found = _Staged(names, action, prepared.feed.kind, shape, tuple(receipts), time.monotonic() - clock, set_aside)
    return _intent(load, table, began, found, sync)


def _abort_strays(load: Load, control: Control, names: ObjectNames, receipts: list[Receipt]) -> None:
    """A task that ran again, or a creation sent again, may have left an upload that no receipt tells of."""
    speculative = load.spark().conf.get("spark.speculation", "false") == "true"
    if speculative or any(receipt.task_attempt or receipt.requests.get("POST", 0) > 1 for receipt in receipts):
        attempts.abort_strays(control, names, receipts, load.attempt)


def _is_exclusive(load: Load, table: TableSpec, sync: TableSync | None) -> bool:
    """True if the load may be bound only while the table is as it was when the load registered."""
    counts = load.names[table.id].counts
    exclusive = sync is not None and sync.intent.exclusive
    return bool(table.cursor or counts or load.micro_batch or exclusive or infers(table))


def _tell_of_others(load: Load, table: TableSpec, began: TableState, *, exclusive: bool) -> None:
    """Say before anything is read that another load may make it worthless.

    It is not refused: nothing tells a load that runs from one that was killed, which stays registered.
    """
    others = began.without(load.attempt.job_id) if exclusive else {}
    for job_id, entry in others.items():
        load.progress(
            table,
            "beginning",
            f"load {job_id!r} of this table registered at {entry.since:%Y-%m-%d %H:%M:%S} UTC and has not ended: if it "
            "still runs and commits first, this load ends with CONCURRENT_LOAD and has to be run again",
        )


def _placed(
    load: Load, table: TableSpec, began: TableState, names: ObjectNames, prepared: Prepared
) -> tuple[CatalogAction, AnyPlan, ObjectNames]:
    """The table ready for files; where the catalog chooses their place, earlier attempts' uploads are aborted there."""
    latest = load.controls[table.id].state.read
    action, shape, placed = make_ready(prepared, load.spec.access, names, began, latest)
    load.controls[table.id].left.extend(prepared.table.left)
    if placed != names:
        load.names[table.id] = placed
        attempts.abort_elsewhere(load.controls[table.id], placed, load.attempt)
    store = data_store(load.controls[table.id].store, action, load.spec.access, load.reach)
    return action, shape, attempts.free_names(store, load.attempt, placed)


def _task_plan(
    load: Load, table: TableSpec, names: ObjectNames, prepared: Prepared, action: CatalogAction, sync: TableSync | None
) -> TaskPlan:
    metadata = {}
    if sync is not None:
        metadata = {GENERATION_METADATA: str(sync.intent.generation_id), TABLE_METADATA: table.id}
    shape = prepared.shape
    return TaskPlan(
        access=load.spec.access,
        names=names,
        shape=shape,
        encoding=table.encoding or load.spec.encoding,
        limits=load.spec.limits,
        load=load.attempt.load,
        job_id=load.attempt.job_id,
        start=load.attempt.started,
        partition_count=prepared.feed.partitions,
        first_indexes=first_indexes(prepared.feed),
        counts=prepared.feed.counts,
        metadata=metadata,
        single_file=table.layout.single_file,
        transforms=Transforms.of(shape.partition, shape.schema) if shape.partition else None,
        vendor=vendor_of_tasks(action, load.clients),
        aside=_aside(load, table),
    )


def _aside(load: Load, table: TableSpec) -> Aside | None:
    if not table.sets_aside:
        return None
    prefix = load.controls[table.id].keys.bad_rows(load.attempt.job_id, load.attempt.id, table.id)
    return Aside(prefix, table.primary_key or table.unique_key)


def require_few(table: TableSpec, set_aside: SetAside | None, rows: int) -> None:
    """``SOURCE_FAILED`` where more rows were set aside than the table lives with; nothing is bound then."""
    if set_aside is None or table.on_bad_row is None:
        return
    bad, total, most = set_aside.rows, set_aside.rows + rows, table.on_bad_row.at_most
    if bad > most * total:
        shown = "".join(f" {sample}." for sample in set_aside.samples)
        keys = f"{', '.join(set_aside.keys[:3])}{' and others' if set_aside.keys[3:] else ''}"
        raise SourceFailedError(
            f"table {table.id!r}: {bad:,} of {counted(total, 'row')} cannot be loaded, {bad / total:.2%}, and "
            f"on_bad_row sets aside at most {most:.2%}. The first of them:{shown}",
            remedy=f"Correct the source, or raise on_bad_row.at_most. All of them are in {keys}.",
        )


def _intent(load: Load, table: TableSpec, began: TableState, found: _Staged, sync: TableSync | None) -> Intent:
    inferred = found.shape.inferred if isinstance(found.shape, FlattenPlan) else None
    before = after = began.cursor if table.cursor else None
    for receipt in found.receipts:
        after = highest(after, receipt.cursor)
    return Intent(
        pipeline=load.spec.pipeline,
        job_id=load.attempt.job_id,
        attempt=load.attempt.id,
        table_id=table.id,
        schema_name=table.schema_name,
        table=table.name,
        started=load.attempt.started,
        access=load.spec.access,
        catalog=found.action,
        receipts=found.receipts,
        cursor_before=before,
        cursor_after=after,
        feed=found.feed,
        staged_seconds=round(found.seconds, 3),
        counter_after=_counter_after(found.names, found.receipts),
        batch=load.micro_batch.batch if load.micro_batch is not None else None,
        notes=found.shape.notes,
        sync=sync.intent if sync is not None else None,
        inferred=inferred,
        set_aside=found.set_aside,
        needs=(INFERRED,) if inferred is not None else (),
    )


def _counter_after(names: ObjectNames, receipts: tuple[Receipt, ...]) -> int | None:
    """The first counter that no file of this load has, None where keys carry none."""
    if not names.counts or not receipts:
        return None
    return names.first + 1 + max(receipt.seq for receipt in receipts)
