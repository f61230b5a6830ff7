"""Steps 2 and 3 of a load, and its intent: one table checked, its files staged, and what is to be committed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from threading import Lock
from typing import Final

from lakewriter.commit import attempt as attempts
from lakewriter.commit.data_store import open_data_store
from lakewriter.commit.iceberg.catalog_vendor import find_task_vendor
from lakewriter.commit.kept_receipts import keep_receipts
from lakewriter.commit.stream_generations import delete_all
from lakewriter.commit.uploads import abort_all
from lakewriter.encode.parquet_footer import list_leaf_columns
from lakewriter.errors import NameCollisionError
from lakewriter.expect.repeated_keys import add_keys
from lakewriter.naming import GENERATION_METADATA, TABLE_METADATA
from lakewriter.receipt import Violations
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import CatalogAction
from lakewriter.records.state import TableState
from lakewriter.report import format_count
from lakewriter.run.checks import check_place
from lakewriter.run.chosen_files import Chosen, choose_inputs, choose_messages, is_as_listed
from lakewriter.run.earlier_columns import with_earlier_columns
from lakewriter.run.judging import (
    look_for_repeated,
    plan_watched,
    require_few_bad_rows,
)
from lakewriter.run.placement import make_ready, plan_apart
from lakewriter.run.prepare import (
    Prepared,
    has_inferred_columns,
    prepare,
    require_sorted_sample,
)
from lakewriter.run.shared_jobs import SMALL_BYTES
from lakewriter.run.staged_table import Checked, Load, Planned, Staged, StagedUploads
from lakewriter.run.staging_progress import measure_staging
from lakewriter.run.sync import TableSync
from lakewriter.run.table_intent import count_allowed
from lakewriter.shape.partitions import Transforms
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import ShapePlan
from lakewriter.source.first_rows import SAMPLE_ROWS
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.expected_size import FileSizes
from lakewriter.source.messages.splits import MessagesFeed
from lakewriter.source.request import Feed, Shareable
from lakewriter.source.spark_jobs import is_speculative, run_in_group
from lakewriter.source.task_sizes import read_sizes
from lakewriter.spec.encodings import FileEncoding, ParquetEncoding
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import MIB, Spec
from lakewriter.spec.table_spec import TableSpec
from lakewriter.staging.copied_files import CopyPlan
from lakewriter.staging.returned import Returned, plan_spill
from lakewriter.staging.sample import learn_size
from lakewriter.staging.shared_job import Attempted, SharedTable, stage_here
from lakewriter.staging.stage import choose_first_indexes, is_any_stage_repeated, stage
from lakewriter.staging.task import TaskPlan

_ONE_HERE: Final = Lock()
"""Held by the table that is staged in this process: of Spark's tasks each has a process of its own, and its own state
there."""
SAMPLED_BYTES: Final = 16 * MIB
"""Messages with fewer bytes are read by one task, however large their rows become."""


@contextmanager
def check_table(load: Load, table: TableSpec, began: TableState, sync: TableSync | None) -> Iterator[Checked]:
    """Take step 2: whatever can fail before a byte is written fails here. The feed is open as long as the context is.

    Objects that the destination wants deleted before a load writes are deleted first.
    """
    control, spec, clients = load.control(table), load.pipeline.spec, load.pipeline.clients
    if sync is not None:
        delete_all(control, sync.purge)
    exclusive = _is_exclusive(load, table, sync)
    _tell_of_others(load, table, began, exclusive=exclusive)
    target = check_place(spec, table, control, began, load.names[table.id], clients, load.attempt)
    began, names, in_place = target.state, target.names, target.in_place
    inputs = _choose_inputs(load, table, began)
    before = with_earlier_columns(control, clients, table, began, names)
    source = table if inputs is None else inputs.table
    try:
        prepared = prepare(spec, source, before, in_place, load.spark, sync, load.kind.opener)
    except NameCollisionError:
        # The catalog was read after the state, so a load that was bound in between may have made these names.
        attempts.require_unbound(control, load.attempt, began)
        raise
    opened = datetime.now(UTC)
    try:
        # Before the table is made; by then its catalog may have given columns other names.
        plan_watched(spec, table, prepared.shape)
        action, shape, names = _place_files(load, table, began, names, prepared)
        if exclusive:
            # What is staged from here on could not be bound.
            attempts.require_unchanged(control, load.attempt, began, control.state.read(), exclusive=True)
        load.follower.describe(table, shape, action)
        facts = (
            sync.intent if sync is not None else None,
            prepared.feed.kind,
            opened,
            plan_watched(spec, table, shape),
        )
        given, types, feed = prepared.given, prepared.types, prepared.feed
        planned = Planned(shape, action, names, *facts, inputs, given, feed.edge, types, feed.is_in_order)
        yield Checked(feed, planned)
    finally:
        prepared.feed.close()


def stage_files(load: Load, table: TableSpec, checked: Checked, uploads: StagedUploads) -> Staged:
    """Take step 3: upload the rows where nobody sees them; ``uploads`` gets all their receipts, whatever is raised."""
    feed = checked.feed
    _divide_messages(load, table, checked)
    load.progress(table, "writing", format_count(feed.partitions, "task"))
    plan = plan_task(load, table, checked.planned, feed.partitions, choose_first_indexes(feed), feed.counts)
    if table.stream is not None and table.stream.file_path is not None:
        # What arrives does not come again.
        copies = CopyPlan(table.stream.file_path, deletes=isinstance(feed, ArrivingFeed))
        plan = replace(plan, copies=copies)
    returned, is_again = _stage_small(load, table, feed, plan)
    if returned is None:
        returned, repeated = _stage_alone(load, table, checked, plan)
    else:
        repeated = look_for_repeated(checked.planned.watched, feed)
    # Rule shared-strays
    repeats = is_again or (returned.is_of_spark and (is_speculative(load.spark()) or is_any_stage_repeated(returned)))
    staged = conclude_staging(load, table, checked.planned, returned, uploads, repeats=repeats)
    feed.reconcile()
    inputs = checked.planned.inputs
    exact = inputs is None or is_as_listed(inputs, load.spark, is_of_spark=feed.kind == "rows")
    return replace(staged, repeated=repeated, is_as_listed=exact)


def _choose_inputs(load: Load, table: TableSpec, began: TableState) -> Chosen | None:
    """Choose the files of the table's source; None where the load's rows come from elsewhere."""
    kind, control = load.kind, load.control(table)
    files = kind.sync.tables[table.id].listed if kind.sync is not None and table.stream is not None else None
    if kind.batch or kind.takes or kind.opener is not None or (table.stream is not None and files is None):
        load.progress(table, "reading", "")
        return None
    if files is not None:
        chosen = choose_messages(control, table, began, files)
    else:
        chosen = choose_inputs(control, table, began, load.spark)
    load.progress(table, "reading", chosen.describe(began.committed) or "")
    if began.committed and chosen.repeated is not None:
        load.repeated[table.id] = chosen.repeated
    return chosen


def _stage_small(load: Load, table: TableSpec, feed: Feed, plan: TaskPlan) -> tuple[Returned | None, bool]:
    """Stage a small table in a job with others, or in this process where it is the load's only one.

    Return None for a table that needs a job of its own, and then True if it has begun to be staged: its known uploads
    are aborted. Unknown ones are found by their keys, once the table's own job has ended.
    """
    attempted = load.shared.stage(load.spark, feed, plan) if load.is_of_many else _stage_here(load, feed, plan)
    if attempted is None:
        return None, False
    if attempted.whole:
        return Returned.parse(attempted.texts), False
    # After a stop it may have failed in any way: Spark's jobs are cancelled.
    load.stop.check()
    control, left = load.control(table), Returned.parse(attempted.texts)
    with control.note_failed_cleanup("uploads of a first try"):
        staged = chain(left.open(control.read_body).without_statistics(), Receipts(tuple(left.quarantined)))
        abort_all(control.store, staged)
    return None, True


def _stage_here(load: Load, feed: Feed, plan: TaskPlan) -> Attempted | None:
    """Stage the rows of one task in this process, since a job of Spark takes longer, and to start Spark takes seconds.

    None for more rows, and for those that only Spark can read.
    """
    if not isinstance(feed, Shareable) or feed.partitions != 1 or feed.input_bytes > SMALL_BYTES:
        return None
    with _ONE_HERE, load.stop.waiting():
        return stage_here(SharedTable(plan, tuple(feed.list_readers()), feed.input_bytes))


def _stage_alone(
    load: Load, table: TableSpec, checked: Checked, plan: TaskPlan
) -> tuple[Returned, dict[str, Violations]]:
    """Stage a table in a job of its own, and look for repeated values."""
    feed = checked.feed
    # A batch ends within its interval, and there may be thousands of them.
    progress = None if load.kind.batch else load.progress
    with measure_staging(progress, table, feed, load.spark) as teller:
        returned = run_in_group(load.spark(), lambda: stage(feed, plan, teller))
        return returned, look_for_repeated(checked.planned.watched, feed)


def conclude_staging(
    load: Load,
    table: TableSpec,
    planned: Planned,
    returned: Returned,
    uploads: StagedUploads,
    *,
    repeats: bool,
) -> Staged:
    """Judge what the tasks have staged, after ``uploads`` has the receipts. ``repeats`` says that tasks may have run
    twice although no receipt shows it."""
    control, allowed = load.control(table), count_allowed(load)
    bad_rows = Receipts(tuple(returned.quarantined))
    uploads.hold(returned.open(control.read_body), bad_rows)
    receipts = keep_receipts(control, _name_parts(load, table), returned.texts, returned.parts)
    uploads.hold(receipts, bad_rows)
    bad_rows = keep_receipts(control, _name_parts(load, table), returned.quarantined, ())
    require_few_bad_rows(table, returned.set_aside, receipts.totals.rows, allowed, bad_rows.totals)
    # A task that ran again, or a creation sent again, may have left an upload that no receipt names.
    # Rule quarantine-repeated
    if repeats or receipts.totals.is_repeated or bad_rows.totals.is_repeated:
        staged_receipts = chain(receipts.without_statistics(), bad_rows.without_statistics())
        attempts.abort_strays(control, planned.names, staged_receipts, load.attempt)
    if isinstance(table.encoding or load.pipeline.spec.encoding, ParquetEncoding):
        load.columns[table.id] = list_leaf_columns(planned.shape.schema)
    action = planned.action if receipts else planned.action.without_partition()
    # By the clock of the host: another process may have opened the feed.
    seconds = max((datetime.now(UTC) - planned.opened).total_seconds(), 0.0)
    keys = add_keys(returned.keys)
    return Staged(planned, action, receipts, seconds, returned.set_aside, bad_rows, keys=keys, floors=returned.floors)


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
    """Return True if the load may be bound only while the table is as it was when the load registered."""
    counts = load.names[table.id].counts
    exclusive = table.mode.is_exclusive or (sync is not None and sync.intent.exclusive)
    by_files = table.stream is None and bool(table.read.new_files or table.repeated == "fail")
    return any(
        (table.cursor, counts, load.kind.batch, load.kind.takes, exclusive, by_files, has_inferred_columns(table))
    )


def _tell_of_others(load: Load, table: TableSpec, began: TableState, *, exclusive: bool) -> None:
    """Say before anything is read that another load may make it worthless.

    The load is not refused: a running load cannot be distinguished from one that was killed, which stays registered.
    """
    others = began.list_running_except(load.attempt.job_id) if exclusive else {}
    for job_id, entry in others.items():
        load.progress(
            table,
            "beginning",
            f"load {job_id!r} of this table registered at {entry.since:%Y-%m-%d %H:%M:%S} UTC and has not ended: if it "
            "still runs and commits first, this load ends with CONCURRENT_LOAD and has to be run again",
        )


def _look_at_orders(load: Load, table: TableSpec, began: TableState, prepared: Prepared) -> None:
    """Raise ``SPEC_INVALID`` before the table is made if the first rows show texts by which rows cannot be merged: its
    catalog would keep the column as text."""
    is_new = not began.committed and (load.kind.opener is None or load.kind.batch is not None)
    rows = prepared.feed.read_first(SAMPLE_ROWS) if table.order_by and is_new else None
    if rows is not None:
        require_sorted_sample(table, prepared, rows)


def _place_files(
    load: Load, table: TableSpec, began: TableState, names: ObjectNames, prepared: Prepared
) -> tuple[CatalogAction, AnyPlan, ObjectNames]:
    """Make the table ready for files; where the catalog chooses their location, abort earlier attempts' uploads
    there."""
    control, access = load.control(table), load.pipeline.spec.access
    _look_at_orders(load, table, began, prepared)
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
    """Return what the tasks need. Each of the ``partitions`` has its first index and, where known, its count of
    rows."""
    spec, shape, metadata = load.pipeline.spec, planned.shape, {}
    if planned.sync is not None:
        metadata = {GENERATION_METADATA: str(planned.sync.generation_id), TABLE_METADATA: table.id}
    return TaskPlan(
        access=spec.access.approve(),
        names=planned.names,
        shape=shape,
        encoding=_choose_encoding(spec, table, shape),
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
        statistics=planned.action.takes_statistics,
        spill=plan_spill(_name_parts(load, table), partitions),
        watched=planned.watched,
        has_ordinals=isinstance(shape, ShapePlan) and shape.has_ordinals,
        lacks_unchanged=isinstance(shape, ShapePlan) and shape.lacks_unchanged,
        apart=plan_apart(planned.action, load.control(table), load.attempt.job_id, load.attempt.id),
    )


def _choose_encoding(spec: Spec, table: TableSpec, shape: AnyPlan) -> FileEncoding:
    encoding = table.encoding or spec.encoding
    if isinstance(encoding, ParquetEncoding) and isinstance(shape, ShapePlan) and shape.sort_by:
        return encoding.model_copy(update={"sort_by": shape.sort_by})
    return encoding
