"""Keep a pipeline that is new to a table from loading again what another pipeline has loaded."""

from collections.abc import Iterator
from typing import Final, NoReturn

from lakewriter.aws import Clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.catalog import CatalogTable
from lakewriter.commit.control import Control
from lakewriter.commit.latest import require_followed
from lakewriter.commit.ownership import TableWriters
from lakewriter.commit.state import TableState
from lakewriter.commit.table_objects import list_newest
from lakewriter.errors import NameCollisionError
from lakewriter.report import join_first
from lakewriter.run.placement import find_in_catalog
from lakewriter.run.prepare import check_empty, check_mode, check_origin, check_unwritten
from lakewriter.run.staged_table import Load
from lakewriter.run.sync import make_ownership
from lakewriter.spec.canary import CANARY_TABLE
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_MOST_NAMED: Final = 3


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


def require_place(
    spec: Spec, table: TableSpec, control: Control, state: TableState, names: ObjectNames, clients: Clients
) -> CatalogTable:
    """Raise what keeps the next load of a table from writing where it lies; return the table as the catalog has it.

    These are the refusals that a load makes before it reads its source, but for the numbers of files.
    """
    require_no_writer(spec, table, control, names, clients)
    check_mode(spec, table, state)
    check_origin(spec, table, control, state)
    if table.layout.has_generations:
        make_ownership(spec, table, control).check(refreshes=True)
        require_followed(control, state, shares=spec.shares_tables)
    check_empty(control.store, table, state, control.state.read)
    in_place = find_in_catalog(spec, table, names, f"{spec.pipeline}/plan/plan", clients)
    check_unwritten(in_place, table, state, control.state.read)
    in_place.require_counted(state, control.state.read)
    return in_place


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
