"""Refuse a load, before its source is read, that may not write where its table lies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from lakewriter.aws import Clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.catalog import CatalogTable
from lakewriter.commit.control import Control
from lakewriter.commit.latest import require_followed, take_over
from lakewriter.commit.ownership import TableWriters
from lakewriter.commit.resets import check_backfill
from lakewriter.commit.state_file import StateFile
from lakewriter.commit.store import Store
from lakewriter.commit.table_objects import GO_ON, describe_left, list_newest
from lakewriter.errors import KeyExistsError, NameCollisionError, SpecInvalidError, TableNotEmptyError
from lakewriter.records.fold.by_hand import BeginBackfill
from lakewriter.records.fold.steps import fold_ahead
from lakewriter.records.state import TableState
from lakewriter.report import format_count, join_first
from lakewriter.run.placement import find_in_catalog, number_objects
from lakewriter.run.prepare import find_origin
from lakewriter.run.staged_table import Load
from lakewriter.run.sync import make_ownership
from lakewriter.spec.canary import CANARY_TABLE
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Target:
    """Where a load writes: the table's state, the numbered names of its files, and the table as the catalog has it."""

    state: TableState
    names: ObjectNames
    in_place: CatalogTable


def join_writers(load: Load, table: TableSpec) -> None:
    """Add the pipeline to those that write the table, if it has no state for it; ``NAME_COLLISION`` beside others,
    unless the file says that they share it."""
    control, spec = load.control(table), load.pipeline.spec
    # A canary's table lies among the pipeline's own records, where no other one writes.
    if control.state.recall().write or table.name == CANARY_TABLE:
        return
    require_no_writer(spec, table, control, load.names[table.id], load.pipeline.clients)
    others = _open_record(spec, table, control).join(shares=spec.shares_tables)
    if others and not spec.shares_tables:
        _refuse(table, control, others, "its record says so")


def require_no_writer(spec: Spec, table: TableSpec, control: Control, names: ObjectNames, clients: Clients) -> None:
    """Raise ``NAME_COLLISION`` where another pipeline writes a table that this one has no state for."""
    if spec.shares_tables or control.state.recall().write:
        return
    others = _open_record(spec, table, control).find_others()
    if others is None:
        return
    if others:
        _refuse(table, control, others, "its record says so")
    if spec.iceberg:
        entry = find_in_catalog(spec, table, names, f"{spec.pipeline}/writers/writers", clients)
        if others := _list_in_catalog(entry, spec.pipeline):
            _refuse(table, control, others, "a property of the table in its catalog says so")
    elif foreign := next(_find_objects(control), None):
        _refuse(table, control, (foreign[0],), f"{foreign[1]!r} is one of its objects")


def check_place(
    spec: Spec,
    table: TableSpec,
    control: Control,
    state: TableState,
    names: ObjectNames,
    clients: Clients,
    attempt: Attempt | None = None,
) -> Target:
    """Raise what keeps a load from writing a table where it lies; all of it is raised before its source is read.

    It only reads, unless there is an attempt: that takes the place among those who refresh the table.

    Args:
        state: The table's, at the beginning of the backfill that the load begins.
        names: The names of the load's files, without their numbers.
    """
    check_mode(spec, table, state)
    check_origin(spec, table, control, state)
    if table.layout.has_generations:
        ownership = make_ownership(spec, table, control)
        if attempt is None:
            ownership.check(refreshes=True)
            require_followed(control, state, shares=spec.shares_tables)
        else:
            ownership.join(attempt.started, refreshes=True)
            state = take_over(control, state)
    check_empty(control.store, table, state, control.state.read)
    check_numbers(control.store, table, state, control.state.read)
    names = number_objects(control.store, names, state)
    load = attempt.load if attempt is not None else f"{spec.pipeline}/plan/plan"
    in_place = find_in_catalog(spec, table, names, load, clients)
    check_unwritten(in_place, table, state, control.state.read)
    in_place.require_counted(state, control.state.read)
    return Target(state, names, in_place)


def check_next_load(
    spec: Spec, table: TableSpec, control: Control, state: TableState, names: ObjectNames, clients: Clients
) -> tuple[Target, bool]:
    """Raise what the next load of a table in this state would raise before it reads its source, and write nothing.
    Return the place of its files, and whether the load would begin a backfill."""
    begins = table.backfill is not None and table.backfill > check_backfill(control, state, table.backfill).backfill
    if begins and table.backfill is not None:
        state = fold_ahead(state, BeginBackfill(control.find_time(), "", table.backfill - 1))
    require_no_writer(spec, table, control, names, clients)
    return check_place(spec, table, control, state, names, clients), begins


def _open_record(spec: Spec, table: TableSpec, control: Control) -> TableWriters:
    return TableWriters(control, spec.table_location(table))


def _list_in_catalog(entry: CatalogTable, pipeline: str) -> tuple[str, ...]:
    return tuple(name for name in entry.list_writers() if name != pipeline)


def _find_objects(control: Control) -> Iterator[tuple[str, str]]:
    """Yield pipeline and key of objects of the table that other pipelines wrote, the newest first."""
    if control.layout is None:
        return
    keys = [entry.key for entry in list_newest(control.store, control.layout)]
    for key, stored in zip(keys, call_all(control.store.head, keys), strict=True):
        is_of_table = stored is not None and stored.table in ("", control.table_id)
        if stored is not None and is_of_table and stored.is_of_another(control.keys.pipeline):
            yield stored.load.split("/")[0], key


def _refuse(table: TableSpec, control: Control, others: tuple[str, ...], evidence: str) -> NoReturn:
    """Raise ``NAME_COLLISION``, or ``TABLE_NOT_EMPTY`` of a table that has to be empty."""
    check_empty(control.store, table, control.state.recall())
    pipeline = control.keys.pipeline
    raise NameCollisionError(
        f"table {table.id}: pipeline {join_first(others, _MOST_NAMED)} writes it ({evidence}), and pipeline {pipeline} "
        "has never loaded it: it would load everything, also what is there already.",
        remedy=f"If the pipeline was renamed, set pipeline: {others[0]} again. If both are to write the table, set "
        "shares_tables: true. Otherwise give this one another table or another place.",
    )


def check_empty(
    store: Store, table: TableSpec, state: TableState, latest: Callable[[], TableState] | None = None
) -> None:
    """Raise ``TABLE_NOT_EMPTY`` if anything lies under the path of a table that was never loaded.

    An attempt that was killed may have left metadata of an Iceberg table, which alone is no data. ``latest`` reads the
    table's state anew: another load may have been the first since this one registered.
    """
    if not table.must_be_empty or state.committed:
        return
    metadata = f"{table.path}/metadata/"
    stray = next((entry for entry in store.list_entries(table.path + "/") if not entry.key.startswith(metadata)), None)
    if stray is not None and not _is_begun(latest):
        raise _make_not_empty_error(table, f"{stray.key!r} lies under its path {table.path + '/'!r}")


def check_numbers(
    store: Store, table: TableSpec, state: TableState, latest: Callable[[], TableState] | None = None
) -> None:
    """Raise ``KEY_EXISTS`` if another writer's files of a table that was never loaded have higher numbers than this
    load's: its keys are taken, or free and in a backfill that readers have left behind. ``latest`` reads the table's
    state anew."""
    if state.committed or not (left := describe_left(store, table.layout, state.backfill, state.counter)):
        return
    if not _is_begun(latest):
        raise KeyExistsError(
            f"table {table.id} was never loaded, and {left}: readers of the newest backfill would not see this load's "
            "files, or a later file's name would be taken.",
            remedy=GO_ON,
        )


def check_origin(spec: Spec, table: TableSpec, control: Control, table_state: TableState) -> None:
    """Raise ``NAME_COLLISION`` where the table's path has another table's rows, or another path has this table's rows:
    the numbers of colliding names follow the order of lake.yaml, but a path stays with its table. ``table_state`` is
    the table's."""
    if table.alike is None or table.written_as is not None:
        return
    pinned = {other.id for other in spec.tables if other.written_as is not None}
    origin = find_origin(table)
    others = {
        other: StateFile(control.store, control.keys.state(other)).read()
        for other in table.alike
        if other not in pinned
    }
    if table_state.origin is not None and table_state.origin != origin:
        holds = f"which has the rows of {table_state.origin.source_table!r}"
    elif table_state.is_loaded and table_state.origin is None and table.alike:
        holds = "which was loaded before, and no record says from which of the tables whose names collide"
    elif moved := next((other for other, state in others.items() if state.origin == origin), None):
        holds = f"and its rows are in {moved!r}"
    elif untold := next((other for other, state in others.items() if _is_untold(table_state, state)), None):
        holds = f"and no record says whose rows {untold!r} has"
    else:
        return
    raise NameCollisionError(
        f"table {table.source_table!r} would be written as {table.id!r}, {holds}.",
        remedy=f"Say in the entry of each of these tables what it is called, such as written_as: {table.name}; or give "
        "the table another name.",
    )


def _is_untold(state: TableState, other: TableState) -> bool:
    return not state.is_loaded and other.is_loaded and other.origin is None


def check_mode(spec: Spec, table: TableSpec, state: TableState) -> None:
    """Raise ``SPEC_INVALID`` where the table's files were laid out by another mode: readers would see both, or only
    some."""
    refreshes = table.layout.has_generations
    if state.is_loaded and refreshes and not state.generation:
        loads = format_count(state.committed, "load")
        raise SpecInvalidError(
            f"table {table.id} has mode 'refresh', and {loads} appended to it: readers would see their files as well.",
            remedy="Set mode: append again; or give the table another name, and drop this one.",
        )
    if state.generation and not refreshes and not spec.iceberg:
        raise SpecInvalidError(
            f"table {table.id} has mode {table.mode.value!r}, and was refreshed: readers see a full refresh's files "
            "alone.",
            remedy="Set mode: refresh again; or give the table another name, and drop this one.",
        )


def check_unwritten(
    in_place: CatalogTable, table: TableSpec, state: TableState, latest: Callable[[], TableState] | None = None
) -> None:
    """Raise ``TABLE_NOT_EMPTY`` if the catalog shows that others have written to a table that was never loaded."""
    if table.must_be_empty and not state.committed and (what := in_place.explain_occupied()) and not _is_begun(latest):
        raise _make_not_empty_error(table, what)


def _is_begun(latest: Callable[[], TableState] | None) -> bool:
    """Return True once a load of the table is past its point of no return: the objects there may be the load's own."""
    state = latest() if latest is not None else None
    return state is not None and (state.committed > 0 or state.pending is not None)


def _make_not_empty_error(table: TableSpec, what: str) -> TableNotEmptyError:
    return TableNotEmptyError(
        f"table {table.id} was never loaded, and {what}.",
        remedy="Move what is there away, or set destination_table_handling: APPEND.",
    )
