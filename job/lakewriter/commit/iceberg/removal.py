"""Take a load's files out of an Iceberg table: one commit, together with the number of the change.

The objects stay, since older snapshots have them: they go when those snapshots expire.
"""

from typing import Final

from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import ManageSnapshots

from lakewriter.commit.change_count import name_count_property
from lakewriter.commit.iceberg.iceberg_tables import drop_history
from lakewriter.commit.iceberg.manifests import StreamedAppend, StreamedRemoval, list_data_files
from lakewriter.commit.iceberg.snapshot_presence import UNDOES, find_change_since, make_summary
from lakewriter.errors import CommitUnknownError, SchemaIncompatibleError
from lakewriter.records.changes import Effects, Intent
from lakewriter.records.facets import UndoneLoad
from lakewriter.report import format_count

HIGHEST_OF_LIBRARY: Final = 2
"""The highest format version whose data files PyIceberg writes again."""


def _find_live_files(table: Table, load: UndoneLoad) -> frozenset[str]:
    """Return the load's files that the current snapshot has."""
    return frozenset(load.locations).intersection(list_data_files(table, table.current_snapshot()))


def is_current(table: Table, intent: Intent, load: UndoneLoad) -> bool:
    """Return whether readers see the load that the intent takes back, and nothing that came after it."""
    undone_load = f"{intent.pipeline}/{load.job_id}/{load.attempt}"
    return table.current_snapshot() is not None and find_change_since(table, undone_load) is None


def commit_undo(table: Table, intent: Intent, effects: Effects, number: int) -> None:
    """Commit the undo of a load: its files leave the table, or what was there before it is shown again."""
    load = effects.removes
    assert load is not None
    if load.snapshot_before is not None:
        show_again(table, intent, load, load.snapshot_before, number)
    else:
        take_out(table, intent, load, number)


def show_again(table: Table, intent: Intent, load: UndoneLoad, snapshot_id: int, number: int) -> None:
    """Make the snapshot before a full refresh current again, with the number of the change.

    That snapshot gets a child without files of its own: a late process that has read the table before the refresh can
    commit only while the snapshot itself is the current one. ``COMMIT_UNKNOWN`` where another snapshot than the
    refresh's is the current one: what it added would be lost.
    """
    # Rule undo-behind-nobody
    if not is_current(table, intent, load):
        raise CommitUnknownError(
            f"Iceberg table {'.'.join(table.name())} has changed since load {load.job_id!r}, whose undo would take "
            "that back as well.",
            remedy=f"Give the undo up: lakewriter abandon LAKE {intent.job_id} --reason TEXT",
        )
    with table.transaction() as transaction:
        transaction.set_properties({name_count_property(intent.pipeline): str(number)})
        ManageSnapshots(transaction).rollback_to_snapshot(snapshot_id).commit()
        summary = make_summary(intent) | {UNDOES: load.job_id}
        StreamedAppend(transaction, table.io, lambda: iter(()), summary).commit()


def is_rewritten(table: Table, load: UndoneLoad) -> bool:
    """Return whether files that the load did not write may have its rows, and the undo names no column to find these
    rows by, since it was planned while the table had all of the load's files."""
    if load.column is not None or load.is_absent:
        return False
    return len(_find_live_files(table, load)) < len(load.locations)


def require_deletable(table: Table) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` where rows cannot be deleted by a column's value: PyIceberg writes their files
    again, which it does not do for format version 3."""
    if table.format_version > HIGHEST_OF_LIBRARY:
        raise SchemaIncompatibleError(
            f"Iceberg table {'.'.join(table.name())} has format version {table.format_version}, expected at most "
            f"{HIGHEST_OF_LIBRARY}: the load's files were rewritten, and its rows are deleted by writing files again.",
            remedy="Delete the rows that have the load's job id with another engine, such as Spark.",
        )


def take_out(table: Table, intent: Intent, load: UndoneLoad, number: int) -> None:
    """Commit a snapshot without the load's files, and the number of the change.

    Where files were rewritten since, the rows with the load's job id are deleted from those that have them now.
    ``COMMIT_UNKNOWN`` where they were rewritten after the undo was planned, and nothing identifies the rows.
    """
    live = _find_live_files(table, load)
    # Rule undo-of-rewritten-files
    if is_rewritten(table, load):
        raise CommitUnknownError(
            f"Iceberg table {'.'.join(table.name())} has {len(live)} of the "
            f"{format_count(len(load.locations), 'file')} of load {load.job_id!r}: the others were rewritten since its "
            "undo was planned, which names none of the files that have their rows now.",
            remedy=(
                f"Give the undo up: lakewriter abandon LAKE {intent.job_id} --reason TEXT. Then undo the load again."
            ),
        )
    summary = make_summary(intent) | {UNDOES: load.job_id}
    column = load.column if len(live) < len(load.locations) else None
    if column is not None:
        require_deletable(table)
    with drop_history(table).transaction() as transaction:
        transaction.set_properties({name_count_property(intent.pipeline): str(number)})
        if column is not None:
            transaction.delete(EqualTo(term=column, value=load.job_id), snapshot_properties=summary)
        elif live:
            StreamedRemoval(transaction, table.io, lambda: iter(()), summary, live).commit()
