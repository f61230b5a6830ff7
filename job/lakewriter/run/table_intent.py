"""The intent of a staged table: all that a process needs to commit the load."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from lakewriter.commit.at_once import call_all
from lakewriter.control_object import CHANGES, INFERRED, MERGED, QUARANTINED, RECEIPT_PARTS, SYNC_STATE
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.receipt import Absent, Cursor, DeletedKeys, Verdict
from lakewriter.receipts.parts import Receipts
from lakewriter.records import changes
from lakewriter.records.facets import Before, MergeIntent, Quarantine, Switch
from lakewriter.records.input_records import InputsIntent
from lakewriter.records.state import TableState
from lakewriter.report import format_count, join_first
from lakewriter.run.judging import MOST_OF_A_BATCH, StagedRows, judge_staged
from lakewriter.run.placement import find_next_counter, plan_quarantine_action
from lakewriter.run.prepare import choose_origin, require_sorted_cursor
from lakewriter.run.staged_table import Load, Planned, Staged
from lakewriter.run.sync import replaces_rows
from lakewriter.shape.cursor import choose_higher, describe_future
from lakewriter.shape.flatten_plan import FlattenPlan
from lakewriter.shape.table import ShapePlan
from lakewriter.source.text_order import require_sorted_orders
from lakewriter.spec.change_events import CHANGE_SOURCE
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec, Tracking
from lakewriter.spec.streamable import note_stream_options
from lakewriter.spec.table_spec import Mode, TableSpec

_MOST_NAMES: Final = 4


def build_intent(load: Load, table: TableSpec, began: TableState, staged: Staged) -> changes.Load:
    """Return all that a process needs to commit the load; ``EXPECTATION_FAILED`` for one that must not be committed."""
    planned, spec = staged.planned, load.pipeline.spec
    inferred = planned.shape.inferred if isinstance(planned.shape, FlattenPlan) else None
    before, receipts = began.cursor if table.cursor else None, staged.receipts
    replaces = replaces_rows(table, planned.sync, began)
    repeats, refreshes = load.attempt.repeats.of, table.mode.replaces_at_once or replaces
    source = planned.sync.source if planned.sync is not None else None
    after = _find_cursor_after(load, table, began, staged)
    features = {
        INFERRED: inferred is not None,
        RECEIPT_PARTS: bool(receipts.parts),
        CHANGES: bool(repeats) or refreshes,
        QUARANTINED: bool(staged.quarantined or load.kind.takes),
        MERGED: table.mode is Mode.MERGE,
        SYNC_STATE: source is not None and source.record is not None,
    }
    require_sorted_orders(table, receipts.totals.orders, is_loaded=bool(began.committed), is_made=True)
    merge = _plan_merge(load, table, began, staged, replaces=replaces) if receipts or staged.floors else None
    kind: type[changes.Load] = changes.Load if merge is None else changes.Merge
    of_kind: dict[str, Any] = {} if merge is None else {"merge": merge}
    if refreshes:
        kind = changes.ReplacePartitions if table.mode is Mode.REPLACE_PARTITIONS else changes.Refresh
        of_kind["switch"] = _plan_switch(spec, table, began, planned.names)
    return kind(
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
        parts=tuple(part.for_intent() for part in receipts.parts),
        cursor_before=before,
        cursor_after=after,
        feed=planned.feed,
        staged_seconds=round(staged.seconds, 3),
        counter_after=find_next_counter(planned.names, receipts),
        batch=load.kind.batch,
        notes=(*planned.shape.notes, *_list_notes(load, table, began, staged, after)),
        sync=planned.sync,
        inferred=inferred,
        names=planned.given,
        types=planned.types,
        origin=choose_origin(table),
        set_aside=staged.set_aside,
        quarantine=_make_quarantine(load, table, staged.quarantined),
        repeats=repeats,
        expectations=_judge(load, table, began, staged),
        inputs=_note_inputs(load, table, began, staged),
        together=load.group is not None,
        group=load.group or "",
        before=_note_before(began),
        adopted=began.adopted,
        between=table.between and str(table.between),
        needs=tuple(need for need, is_used in features.items() if is_used),
        **of_kind,
    ).reading_by(load.control(table).read_body)


def _list_notes(load: Load, table: TableSpec, began: TableState, staged: Staged, after: Cursor | None) -> list[str]:
    inputs, totals = staged.planned.inputs, staged.receipts.totals
    note = inputs.describe(began.committed) if inputs is not None and began.committed else None
    notes = [] if note is None else [note]
    if table.between is not None:
        notes.append(f"rows with {table.between}, loaded again: the cursor stays")
    if load.kind.batch is None and load.pipeline.spec.checkpoint is not None:
        notes += note_stream_options(table.id, table.read)
    if nulls := totals.cursor_nulls:
        rows = format_count(nulls, "row")
        notes.append(f"cursor {table.cursor!r} is null in {rows}: only a load that reads everything reads such rows")
    if table.cursor is not None and (future := describe_future(after, table.cursor, datetime.now(UTC))) is not None:
        notes.append(f"{future}; move it back with lakewriter reset LAKE {table.id} --cursor VALUE --reason WHY")
    if totals.blank_lines:
        notes.append(f"{format_count(totals.blank_lines, 'blank line')} of its files skipped")
    if totals.skipped:
        kinds = ", ".join(format_count(count, kind) for kind, count in sorted(totals.skipped.items()))
        notes.append(f"events that change no row skipped: {kinds}")
    # A replay reads a few documents of a load.
    return notes if load.kind.takes else [*notes, *_note_absent(totals.absent)]


def _note_absent(absent: Absent | None) -> Iterator[str]:
    """Yield a note on declared columns that no document has."""
    if absent is not None and absent.documents and absent.columns:
        names = join_first([repr(name) for name in absent.columns], _MOST_NAMES)
        documents = format_count(absent.documents, "document")
        yield (
            f"read.columns has {names}, without a value in any of {documents}: correct the "
            "spelling there, or take out what the documents do not have"
        )


def _note_inputs(load: Load, table: TableSpec, began: TableState, staged: Staged) -> InputsIntent | None:
    """Return what the load adds to the record of the files that were read. Rows that a program gives belong to no
    file."""
    inputs = staged.planned.inputs
    if inputs is not None:
        rows = staged.receipts.totals.rows + staged.quarantined.totals.rows
        noted = inputs.make_intent(load.control(table), load.attempt, rows, is_exact=staged.is_as_listed)
        if noted is not None and table.id in load.repeated:
            load.repeated[table.id] = noted.repeated
        return noted
    is_given = load.kind.opener is not None and not (load.kind.batch or load.kind.takes)
    return InputsIntent(before=began.inputs) if is_given and began.inputs is not None else None


def _find_cursor_after(load: Load, table: TableSpec, began: TableState, staged: Staged) -> Cursor | None:
    """Return the highest cursor of all rows. A load of a range leaves the cursor as it is, and a replay where a person
    has set it, or taken it away: the rows from there on are to be read again."""
    before = began.cursor if table.cursor else None
    # Rule range-sets-no-cursor
    if table.between is not None:
        return before
    # Rule replay-sets-no-cursor
    if load.kind.takes and (before is None or began.is_cursor_by_hand):
        return before
    # Rule quarantine-cursor
    after = choose_higher(before, choose_higher(staged.receipts.totals.cursor, staged.quarantined.totals.cursor))
    edge = staged.planned.edge
    if not load.kind.takes:
        require_sorted_cursor(table, after, before, edge)
    after = after and after.without_shapes()
    return after if after is None or edge is None else edge.mark(after)


def _judge(load: Load, table: TableSpec, began: TableState, staged: Staged) -> tuple[Verdict, ...]:
    files, bad_rows = staged.receipts.totals, staged.quarantined.totals
    watched, allowed, is_batch = staged.planned.watched, count_allowed(load), load.kind.batch is not None
    judged = StagedRows(
        table, load.attempt, began, watched, files, staged.repeated, staged.keys, bad_rows, allowed, is_batch
    )
    return judge_staged(judged, load.pipeline.spec, load.pipeline.last_loads)


def count_allowed(load: Load) -> int:
    """Return the number of bad rows that are accepted whatever their share."""
    return MOST_OF_A_BATCH if load.kind.batch else 0


def _make_quarantine(load: Load, table: TableSpec, files: Receipts) -> Quarantine | None:
    if not files and not load.kind.takes:
        return None
    action = plan_quarantine_action(load.pipeline.spec, table)
    receipts = tuple(receipt.for_intent() for receipt in files.at_hand)
    return Quarantine(
        catalog=action, receipts=receipts, parts=tuple(part.for_intent() for part in files.parts), takes=load.kind.takes
    )


def _plan_merge(
    load: Load, table: TableSpec, began: TableState, staged: Staged, *, replaces: bool
) -> MergeIntent | None:
    """Return how the load's rows are merged; with ``replaces`` they are merged into an empty table."""
    planned, rows = staged.planned, staged.receipts.totals.rows
    if not isinstance(planned.shape, ShapePlan) or planned.shape.merged_by is None:
        return None
    keys, order_by = planned.shape.merged_by
    tracking = load.pipeline.spec.tracking
    deleted = next((column.name for column in tracking if column.holds is Tracking.DELETED), None)
    merge = MergeIntent(
        keys=keys,
        order_by=order_by,
        deleted=deleted if table.marks_deleted else None,
        keeps_deleted=table.keep_deleted,
        compared=None if _is_in_order(planned) else tuple(column.name for column in planned.shape.columns),
        fills=tuple(sorted(staged.receipts.totals.unchanged)),
        is_history=table.history_of is not None,
        # Rule later-record-stays
        # Records of one cursor come in the order in which their source has changed them.
        wins_ties=table.between is not None or table.stream is not None,
        **_plan_floors(load, table, began, staged, replaces=replaces),
    )
    if not table.marks_deleted or table.keep_deleted or not table.deleted_seconds:
        return merge
    control, attempt = load.control(table), load.attempt
    # Rule deleted-keys-of-a-generation
    objects = [] if replaces else _list_deleted(load, table, began)
    folds, level = DeletedKeys.plan_fold(objects, rows)
    noted = {
        "deleted_keys": control.keys.deleted_keys(attempt.job_id, attempt.id, table.id),
        "deleted_seconds": table.deleted_seconds,
        "deleted_before": DeletedKeys.join(objects),
        "deleted_folds": folds,
        "deleted_level": level,
    }
    return merge.model_copy(update=noted)


def _plan_floors(load: Load, table: TableSpec, began: TableState, staged: Staged, *, replaces: bool) -> dict[str, Any]:
    """Return the floors of a merge, and the column by which they find their rows."""
    started, keys = load.attempt.started, None if replaces else began.deleted_keys
    before = tuple(
        floor for floor in (keys.floors if keys is not None else ()) if floor.until and floor.until > started
    )
    if not (staged.floors or before):
        return {}
    columns = staged.planned.shape.columns if isinstance(staged.planned.shape, ShapePlan) else ()
    source = next((column.name for column in columns if column.source == CHANGE_SOURCE), None)
    if source is None:
        raise SchemaIncompatibleError(
            f"table {table.id!r} has no column {CHANGE_SOURCE!r}, and its events take rows of one source table out.",
            remedy="Add it to the table as a column of text, or load the events into a new table.",
        )
    return {"floors": staged.floors, "floors_before": before, "source": source}


def _list_deleted(load: Load, table: TableSpec, began: TableState) -> list[DeletedKeys]:
    """List the objects with keys that still keep older rows out, the newest first."""
    if began.deleted_keys is None:
        return []
    store, read = load.control(table).store, load.pipeline.clients.lasting
    objects = [keys for keys in began.deleted_keys.objects if keys.until > load.attempt.started]
    # After an undo the state may name objects whose load was cleared away. Those that this process has read are there.
    looked = call_all(lambda keys: keys.key in read or store.find(keys.key) is not None, objects)
    return [keys for keys, is_there in zip(objects, looked, strict=True) if is_there]


def _is_in_order(planned: Planned) -> bool:
    """Return whether tasks and positions follow the order of the rows in the source's files.

    Rows of a database, a query or a program have no such order. Rows that are sorted, or brought together by partition,
    have lost it: where they come from files, their ordinals are written beside them.
    """
    assert isinstance(planned.shape, ShapePlan)
    return planned.is_in_order and not planned.shape.loses_order


def _note_before(began: TableState) -> Before:
    """Return what an undo of the load sets back."""
    return Before(
        source=began.sync.source,
        unfinished=began.sync.unfinished,
        begins_anew=began.sync.begins_anew,
        deleted_keys=began.deleted_keys,
        knows_inputs=began.knows_inputs or not began.committed,
    )


def _plan_switch(spec: Spec, table: TableSpec, began: TableState, names: ObjectNames) -> Switch:
    """Return the generations that readers leave and see next. The keys of the load's files name the next one, except
    for Iceberg."""
    return Switch(
        before=began.shown.number if began.shown is not None else 0,
        after=names.generation or began.generation + 1,
        latest=table.latest,
        keep_seconds=spec.refresh.keep_days * 86_400.0,
    )
