"""Find the files or the Iceberg snapshot that a table had once a load was committed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewriter.aws import Clients
from lakewriter.commit.catalog import open_iceberg_writer
from lakewriter.commit.committed_loads import Moment, TableLoads
from lakewriter.errors import SpecInvalidError
from lakewriter.records.sync_records import MOST_LIVE
from lakewriter.report import TableReport
from lakewriter.spec.specification import Spec


@dataclass(frozen=True)
class AsOf:
    """A table as of a load: the keys of its files, or the id of its snapshot in Iceberg.

    ``job_id`` is the table's last load up to the one that was asked for. ``is_elsewhere`` says that the catalog's table
    now shows a later full refresh, and so other files.
    """

    job_id: str
    keys: tuple[str, ...] = ()
    snapshot_id: int | None = None
    is_elsewhere: bool = False


def find_as_of(spec: Spec, tables: Sequence[TableLoads], job_id: str, clients: Clients) -> Mapping[str, AsOf]:
    """Return the files or the snapshot of each table at that load; leave out tables that had no load by then.

    ``SPEC_INVALID`` where no table has the load, and where a table's files of that time are not known exactly.
    """
    moments = [table.get_moment(at) for table in tables if (at := table.find(job_id)) is not None]
    if not moments:
        undone = any(table.is_undone(job_id) for table in tables)
        raise SpecInvalidError(
            f"--as-of {job_id!r}: the load "
            + ("is undone." if undone else "is committed in no table of this pipeline."),
            remedy="lakewriter history LAKE lists the loads.",
        )
    moments_by_table = {table.control.table_id: _find(spec, table, max(moments), job_id, clients) for table in tables}
    return {table_id: as_of for table_id, as_of in moments_by_table.items() if as_of is not None}


def _find(spec: Spec, table: TableLoads, moment: Moment, job_id: str, clients: Clients) -> AsOf | None:
    at = table.find(job_id)
    # If the load did not touch this table, the table's last load before it counts.
    end = at + 1 if at is not None else sum(table.get_moment(at) <= moment for at in range(len(table.loads)))
    loads = table.loads[:end]
    if not loads:
        return None
    last = loads[-1]
    if spec.iceberg:
        return _find_snapshot(table, loads, clients)
    if last.refreshes:
        return _find_refresh(table, last, job_id)
    if not table.is_whole:
        raise _refuse(table, job_id, "records of loads up to it were cleared away after keep_loads_days")
    live = table.state.sync.live_jobs
    if last.sync_id is not None and (last.job_id not in live or len(table.state.sync.live) >= MOST_LIVE):
        raise _refuse(table, job_id, "a later full refresh has deleted files of that time, or too many loads are live")
    live_loads = [load for load in loads if load.sync_id is None or load.job_id in live]
    keys = [key for load in live_loads for key in table.control.list_written_keys(load)]
    return AsOf(last.job_id, keys=tuple(keys))


def _find_refresh(table: TableLoads, last: TableReport, job_id: str) -> AsOf:
    """Return the files of one full refresh, while they exist."""
    if all(generation.job_id != last.job_id for generation in table.state.generations):
        raise _refuse(table, job_id, "its files were deleted, after refresh.keep_days")
    keys = tuple(table.control.list_written_keys(last))
    shown = table.state.shown
    return AsOf(last.job_id, keys=keys, is_elsewhere=shown is None or shown.job_id != last.job_id)


def _find_snapshot(table: TableLoads, loads: Sequence[TableReport], clients: Clients) -> AsOf | None:
    """Return the snapshot of the last load that has changed rows: one without files may have made none."""
    for load in reversed(loads):
        if not load.files and not (load.merged and load.merged.cleared):
            continue
        intent = table.control.find_intent(load.job_id, load.attempt)
        snapshot = open_iceberg_writer(intent, clients).find_snapshot_id(intent) if intent is not None else None
        if snapshot is None:
            raise _refuse(table, load.job_id, "its snapshot has expired")
        return AsOf(loads[-1].job_id, snapshot_id=snapshot)
    return None


def _refuse(table: TableLoads, job_id: str, why: str) -> SpecInvalidError:
    return SpecInvalidError(f"--as-of {job_id!r}: table {table.control.table_id} cannot be shown as it was: {why}.")
