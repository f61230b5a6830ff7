"""Steps 2 and 3 of a load, and its intent: one table checked, its files staged, and what is to be committed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Event
from typing import Final

from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import open_data_store
from lakewriter.commit.iceberg.catalog_vendor import find_task_vendor
from lakewriter.commit.intent import CatalogAction, IcebergAction, Intent, Quarantine, Switch
from lakewriter.commit.kept_receipts import keep_receipts
from lakewriter.commit.old_generations import delete_all
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.state import TableState
from lakewriter.commit.sync_records import SyncIntent
from lakewriter.control_object import CHANGES, INFERRED, QUARANTINED, RECEIPT_PARTS
from lakewriter.encode.parquet_footer import list_leaf_columns
from lakewriter.expect.watching import Watched
from lakewriter.lineage.follower import Follower, Silence
from lakewriter.naming import GENERATION_METADATA, TABLE_METADATA
from lakewriter.receipt import Cursor, SetAside, Verdict, Violations
from lakewriter.receipts.parts import Receipts
from lakewriter.report import format_count
from lakewriter.run.earlier_columns import with_earlier_columns
from lakewriter.run.judging import (
    MOST_OF_A_BATCH,
    Judged,
    judge_staged,
    look_for_repeated,
    plan_watched,
    require_few_bad_rows,
)
from lakewriter.run.kinds import Kind
from lakewriter.run.placement import (
    find_in_catalog,
    find_next_counter,
    make_ready,
    number_objects,
    plan_quarantine_action,
    remove_partition,
)
from lakewriter.run.prepare import (
    Prepared,
    SparkFactory,
    check_empty,
    check_mode,
    check_unwritten,
    describe_repeated_append,
    has_inferred_columns,
    prepare,
)
from lakewriter.run.staging_progress import measure_staging
from lakewriter.run.stop import Stop
from lakewriter.run.sync import TableSync, make_ownership
from lakewriter.shape.cursor import choose_higher
from lakewriter.shape.flatten_plan import FlattenPlan
from lakewriter.shape.partitions import Transforms
from lakewriter.shape.shapers import AnyPlan
from lakewriter.source.feed import Feed
from lakewriter.source.messages.expected_size import FileSizes
from lakewriter.source.messages.splits import MessagesFeed
from lakewriter.source.packing import read_sizes
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import MIB, Encoding, Mode, Spec, TableSpec
from lakewriter.staging.returned import Returned, plan_spill
from lakewriter.staging.sample import learn_size
from lakewriter.staging.set_aside import Aside
from lakewriter.staging.stage import choose_first_indexes, is_any_stage_repeated, stage
from lakewriter.staging.task import TaskPlan

SAMPLED_BYTES: Final = 16 * MIB
"""Of messages: fewer of them are one task's, whatever they become."""

Progress = Callable[[TableSpec, str, str], None]
"""Called with a table, the step it is in, and a detail for people. One that is ``Measured`` is told numbers too."""


@dataclass(frozen=True)
class Load:
    """What the tables of one load share. By table id: ``names`` of objects, ``columns`` of Parquet files. ``stopped``
    says that a failed table ends the others."""

    pipeline: Pipeline
    attempt: Attempt
    spark: SparkFactory
    progress: Progress
    names: dict[str, ObjectNames]
    kind: Kind
    stop: Stop
    stopped: Event = field(default_factory=Event)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    follower: Follower = field(default_factory=Silence)

    def control(self, table: TableSpec) -> Control:
        """The table's control objects."""
        return self.pipeline.controls[table.id]


@dataclass(frozen=True)
class Planned:
    """By what a checked table's files are staged, and what its intent says of that; other processes may take it over.

    ``feed`` is its kind, ``since`` when it was open, ``watched`` what expectations ask about.
    """

    shape: AnyPlan
    action: CatalogAction
    names: ObjectNames
    sync: SyncIntent | None
    feed: str
    since: float
    watched: Watched


@dataclass(frozen=True)
class Checked:
    """A table that can be staged: its feed is open, its catalog's table ready for files, their keys fixed."""

    feed: Feed
    planned: Planned


@dataclass(frozen=True)
class Staged:
    """What staging came to. ``seconds`` begin when the feed is open; ``repeated`` are rows that are not unique,
    ``quarantined`` the receipts of files with bad rows."""

    planned: Planned
    action: CatalogAction
    receipts: Receipts
    seconds: float
    set_aside: SetAside | None
    quarantined: Receipts
    repeated: Mapping[str, Violations] = field(default_factory=dict)


@contextmanager
def check_table(load: Load, table: TableSpec, began: TableState, sync: TableSync | None) -> Iterator[Checked]:
    """Step 2: whatever can fail before a byte is written fails here. The feed is open as long as the context is.

    What a destination wants deleted before it is written to is deleted first.
    """
    control, spec, clients = load.control(table), load.pipeline.spec, load.pipeline.clients
    if sync is not None:
        delete_all(control, sync.purge)
    exclusive = _is_exclusive(load, table, sync)
    _tell_of_others(load, table, began, exclusive=exclusive)
    check_mode(spec, table, began)
    if table.layout.has_generations:
        make_ownership(spec, table, control).join(load.attempt.started, refreshes=True)
    check_empty(control.store, table, began, control.state.read)
    names = number_objects(control.store, load.names[table.id], began)
    is_source_read = not (load.kind.batch or load.kind.takes)
    load.progress(table, "reading", (is_source_read and describe_repeated_append(table, began.committed)) or "")
    in_place = find_in_catalog(spec, table, names, load.attempt.load, clients)
    check_unwritten(in_place, table, began, control.state.read)
    before = with_earlier_columns(control.store, clients, table, began, names)
    prepared = prepare(spec, table, before, in_place, load.spark, sync, load.kind.opener)
    since = time.monotonic()
    try:
        # Before the table is made; by then its catalog may have given columns other names.
        plan_watched(spec, table, prepared.shape)
        action, shape, names = _place_files(load, table, began, names, prepared)
        if exclusive:
            # What is staged from here on could not be bound.
            attempts.require_unchanged(control, load.attempt, began, control.state.read(), exclusive=True)
        load.follower.describe(table, shape, action)
        intended = sync.intent if sync is not None else None
        watched = plan_watched(spec, table, shape)
        yield Checked(prepared.feed, Planned(shape, action, names, intended, prepared.feed.kind, since, watched))
    finally:
        prepared.feed.close()


def stage_files(load: Load, table: TableSpec, checked: Checked, kept: list[Receipts]) -> Staged:
    """Step 3: the rows in uploads that nobody sees; ``kept`` has the receipts of all of them, whatever is raised."""
    feed = checked.feed
    _divide_messages(load, table, checked)
    load.progress(table, "writing", f"{feed.kind} feed, {format_count(feed.partitions, 'task')}")
    # A batch ends within its interval, and there may be thousands of them.
    progress = None if load.kind.batch else load.progress
    plan = plan_task(load, table, checked.planned, feed.partitions, choose_first_indexes(feed), feed.counts)
    with measure_staging(progress, table, feed, load.spark) as teller:
        returned = stage(feed, plan, teller)
        repeated = look_for_repeated(checked.planned.watched, feed)
    repeats = load.spark().conf.get("spark.speculation", "false") == "true" or is_any_stage_repeated(returned)
    staged = conclude_staging(load, table, checked.planned, returned, kept, repeats=repeats)
    return replace(staged, repeated=repeated)


def conclude_staging(
    load: Load,
    table: TableSpec,
    planned: Planned,
    returned: Returned,
    kept: list[Receipts],
    *,
    repeats: bool,
) -> Staged:
    """Judge what the tasks have staged, whose receipts ``kept`` gets first; ``repeats`` says that tasks may have run
    twice and no receipt tells of it."""
    control, allowed = load.control(table), _count_allowed(load)
    bad_rows = Receipts(tuple(returned.quarantined))
    kept[:] = [bad_rows, returned.open(control.read_body)]
    receipts = keep_receipts(control, _name_parts(load, table), returned.texts, returned.parts)
    kept[-1] = receipts
    bad_rows = keep_receipts(control, _name_parts(load, table), returned.quarantined, ())
    require_few_bad_rows(table, returned.set_aside, receipts.totals.rows, allowed, bad_rows.totals)
    # A task that ran again, or a creation sent again, may have left an upload that no receipt tells of.
    if repeats or receipts.totals.is_repeated or bad_rows.totals.is_repeated:
        own = chain(receipts.without_statistics(), bad_rows.without_statistics())
        attempts.abort_strays(control, planned.names, own, load.attempt)
    if isinstance(table.encoding or load.pipeline.spec.encoding, Encoding):
        load.columns[table.id] = list_leaf_columns(planned.shape.schema)
    action = planned.action if receipts else remove_partition(planned.action)
    return Staged(planned, action, receipts, time.monotonic() - planned.since, returned.set_aside, bad_rows)


def _name_parts(load: Load, table: TableSpec) -> str:
    return load.control(table).keys.receipts(load.attempt.job_id, load.attempt.id, table.id)


def _divide_messages(load: Load, table: TableSpec, checked: Checked) -> None:
    """Share messages in files among as many tasks as make files of the target size."""
    feed, spec = checked.feed, load.pipeline.spec
    if not isinstance(feed, MessagesFeed):
        return
    encoding = table.encoding or spec.encoding
    sizes = FileSizes(encoding, spec.limits)
    if feed.size >= SAMPLED_BYTES:
        learn_size(sizes, feed.sample(), checked.planned.shape, encoding, load.attempt.started)
    feed.divide(sizes.count_tasks(feed.size, read_sizes(load.spark()).least_partitions))


def _is_exclusive(load: Load, table: TableSpec, sync: TableSync | None) -> bool:
    """True if the load may be bound only while the table is as it was when the load registered."""
    counts = load.names[table.id].counts
    exclusive = table.mode.replaces_at_once or (sync is not None and sync.intent.exclusive)
    return any((table.cursor, counts, load.kind.batch, load.kind.takes, exclusive, has_inferred_columns(table)))


def _tell_of_others(load: Load, table: TableSpec, began: TableState, *, exclusive: bool) -> None:
    """Say before anything is read that another load may make it worthless.

    It is not refused: nothing tells a load that runs from one that was killed, which stays registered.
    """
    others = began.list_running_except(load.attempt.job_id) if exclusive else {}
    for job_id, entry in others.items():
        load.progress(
            table,
            "beginning",
            f"load {job_id!r} of this table registered at {entry.since:%Y-%m-%d %H:%M:%S} UTC and has not ended: if it "
            "still runs and commits first, this load ends with CONCURRENT_LOAD and has to be run again",
        )


def _place_files(
    load: Load, table: TableSpec, began: TableState, names: ObjectNames, prepared: Prepared
) -> tuple[CatalogAction, AnyPlan, ObjectNames]:
    """The table ready for files; where the catalog chooses their place, earlier attempts' uploads are aborted there."""
    control, access = load.control(table), load.pipeline.spec.access
    action, shape, placed = make_ready(prepared, access, names, began, control.state.read)
    for note in prepared.table.left:
        load.progress(table, "reading", note)
    control.left.extend(prepared.table.left)
    if placed != names:
        load.names[table.id] = placed
        attempts.abort_in_catalog_location(control, placed, load.attempt)
    store = open_data_store(control.store, action, access, load.pipeline.open_clients)
    return action, shape, attempts.avoid_taken_names(store, load.attempt, placed)


def plan_task(
    load: Load,
    table: TableSpec,
    planned: Planned,
    partitions: int,
    first_indexes: Sequence[int],
    counts: tuple[int, ...] | None,
) -> TaskPlan:
    """What the tasks need, in ``partitions`` of which each has its first index and, where known, its count of rows."""
    spec, shape, metadata = load.pipeline.spec, planned.shape, {}
    if planned.sync is not None:
        metadata = {GENERATION_METADATA: str(planned.sync.generation_id), TABLE_METADATA: table.id}
    return TaskPlan(
        access=spec.access,
        names=planned.names,
        shape=shape,
        encoding=table.encoding or spec.encoding,
        limits=spec.limits,
        load=load.attempt.load,
        job_id=load.attempt.job_id,
        start=load.attempt.started,
        partition_count=partitions,
        first_indexes=first_indexes,
        counts=counts,
        metadata=metadata,
        single_file=table.layout.single_file,
        transforms=Transforms.of(shape.partition, shape.schema) if shape.partition else None,
        vendor=find_task_vendor(planned.action, load.pipeline.clients),
        aside=_plan_set_aside(load, table),
        statistics=isinstance(planned.action, IcebergAction),
        spill=plan_spill(_name_parts(load, table), partitions),
        watched=planned.watched,
    )


def _plan_set_aside(load: Load, table: TableSpec) -> Aside | None:
    if not table.sets_aside or table.quarantine is not None:
        return None
    prefix = load.control(table).keys.bad_rows(load.attempt.job_id, load.attempt.id, table.id)
    return Aside(prefix, table.primary_key or table.unique_key)


def build_intent(load: Load, table: TableSpec, began: TableState, staged: Staged) -> Intent:
    """All that whoever commits the load has to know; ``EXPECTATION_FAILED`` for one that must not be committed."""
    planned, spec = staged.planned, load.pipeline.spec
    inferred = planned.shape.inferred if isinstance(planned.shape, FlattenPlan) else None
    before, receipts = began.cursor if table.cursor else None, staged.receipts
    repeats, refreshes = load.attempt.repeats.of, table.mode.replaces_at_once
    features = {
        INFERRED: inferred is not None,
        RECEIPT_PARTS: bool(receipts.parts),
        CHANGES: bool(repeats) or refreshes,
        QUARANTINED: bool(staged.quarantined or load.kind.takes),
    }
    return Intent(
        kind="refresh" if refreshes else "load",
        pipeline=spec.pipeline,
        job_id=load.attempt.job_id,
        attempt=load.attempt.id,
        table_id=table.id,
        schema_name=table.schema_name,
        table=table.name,
        started=load.attempt.started,
        access=spec.access,
        catalog=staged.action,
        receipts=tuple(receipt.for_intent() for receipt in receipts.at_hand),
        parts=tuple(receipts.parts),
        cursor_before=before,
        cursor_after=_find_cursor_after(load, before, staged),
        feed=planned.feed,
        staged_seconds=round(staged.seconds, 3),
        counter_after=find_next_counter(planned.names, receipts),
        batch=load.kind.batch,
        notes=planned.shape.notes,
        sync=planned.sync,
        inferred=inferred,
        set_aside=staged.set_aside,
        quarantine=_make_quarantine(load, table, staged.quarantined),
        repeats=repeats,
        expectations=_judge(load, table, began, staged),
        switch=_plan_switch(spec, table, began, planned.names) if refreshes else None,
        keeps_partitions=table.mode is Mode.REPLACE_PARTITIONS,
        needs=tuple(need for need, is_used in features.items() if is_used),
    ).reading_by(load.control(table).read_body)


def _find_cursor_after(load: Load, before: Cursor | None, staged: Staged) -> Cursor | None:
    """The highest of all rows. Those of a replay set none where there is none: whoever took it away reads all again."""
    if load.kind.takes and before is None:
        return None
    return choose_higher(before, choose_higher(staged.receipts.totals.cursor, staged.quarantined.totals.cursor))


def _judge(load: Load, table: TableSpec, began: TableState, staged: Staged) -> tuple[Verdict, ...]:
    files, bad_rows = staged.receipts.totals, staged.quarantined.totals
    watched, allowed, is_batch = staged.planned.watched, _count_allowed(load), load.kind.batch is not None
    judged = Judged(table, load.attempt, began, watched, files, staged.repeated, bad_rows, allowed, is_batch)
    return judge_staged(judged, load.pipeline.spec, load.pipeline.last_loads)


def _count_allowed(load: Load) -> int:
    """How many bad rows are few, whatever their share."""
    return MOST_OF_A_BATCH if load.kind.batch else 0


def _make_quarantine(load: Load, table: TableSpec, files: Receipts) -> Quarantine | None:
    if not files and not load.kind.takes:
        return None
    action = plan_quarantine_action(load.pipeline.spec, table)
    receipts = tuple(receipt.for_intent() for receipt in files.at_hand)
    return Quarantine(catalog=action, receipts=receipts, parts=tuple(files.parts), takes=load.kind.takes)


def _plan_switch(spec: Spec, table: TableSpec, began: TableState, names: ObjectNames) -> Switch:
    """From which generation readers go to which: the one that the keys of the load's files name, but for Iceberg."""
    return Switch(
        before=began.shown.number if began.shown is not None else 0,
        after=names.generation or began.generation + 1,
        latest=table.latest,
        keep_seconds=spec.refresh.keep_days * 86_400.0,
    )
