"""Check whether readers of an Iceberg table still see a committed load, or the table was rolled back.

A load is present while its snapshot is the current one or its ancestor, whatever later snapshots have rewritten,
compacted or deleted of its rows. When its snapshot has expired, the load counts as present unless the ancestors of the
current snapshot show that none of them can have been the load's. Sequence numbers show it: the catalog makes them grow,
a rollback does not take them back, and the intent knows the lowest one that the load can have. Times do not, since
every writer has a clock of its own. The table's count of loads does not either, as a rollback leaves properties as they
are.
"""

import json
from collections.abc import Collection, Iterator
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Intent
from lakewriter.report import COUNTS, Counts

LOAD: Final = "lakewriter.load"
"""In a snapshot's summary: ``{pipeline}/{job_id}/{attempt}``."""

REFRESHES: Final = "lakewriter.refreshes"
"""In the summary of a full refresh, whose files are all that the table has."""

UNDOES: Final = "lakewriter.undoes"
"""In the summary of an undo's snapshot: the job id of the load that it takes back."""

GIVES_UP: Final = "lakewriter.gives-up"
"""In the summary of a snapshot that changes nothing: the job id of the change that was given up."""

GIVEN_UP: Final = "lakewriter-given-up"
"""The property of a table with the last changes that were given up before the table had them, as JSON. Their numbers
are used. No pipeline's own property has this name."""

_KEPT_GIVEN_UP: Final = 20

FIRST: Final = 1
"""The sequence number of a table's first snapshot; any other one without a parent has lost it by expiry."""

_SOURCE: Final = "source-snapshot-id"
"""In the summary of a cherry-picked snapshot: the id of the original."""


def explain_absence(table: Table | None, intent: Intent) -> str | None:
    """Say why readers do not see a committed load; None where they see it, or the table cannot show it."""
    if not intent.changes_rows:
        return None
    if table is None:
        return "the table is gone from the catalog"
    if not is_same_table(table, intent):
        return "the table was dropped and made anew"
    current = table.current_snapshot()
    if current is None:
        return "the table has no current snapshot"
    load_snapshot = next((snapshot for snapshot in table.snapshots() if read_load(snapshot) == intent.load), None)
    ancestors = (
        {before.snapshot_id for before in walk_ancestors(table, load_snapshot)} if load_snapshot else frozenset()
    )
    for snapshot in walk_ancestors(table, current):
        if _is_of_load(snapshot, load_snapshot):
            return None
        # A table of format version 1 has no sequence numbers.
        if snapshot.snapshot_id in ancestors or _is_older(snapshot, load_snapshot, intent):
            return _explain_rollback(current, load_snapshot)
    return None


def is_same_table(table: Table, intent: Intent) -> bool:
    """Return whether it is the table that the intent is of, and no other of its name."""
    assert isinstance(intent.catalog, IcebergAction)
    return str(table.metadata.table_uuid) == intent.catalog.uuid


def is_given_up(table: Table, intent: Intent) -> bool:
    """Return whether the change was given up before the table had it."""
    return intent.load in _read_given_up(table)


def note_given_up(table: Table, intent: Intent) -> dict[str, str]:
    """Return the property that says that the change was given up."""
    return {GIVEN_UP: json.dumps([*_read_given_up(table), intent.load][-_KEPT_GIVEN_UP:])}


def list_given_up(table: Table, pipeline: str) -> frozenset[str]:
    """Return the last changes of the pipeline that were given up before the table had them."""
    return frozenset(load for load in _read_given_up(table) if load.startswith(f"{pipeline}/"))


def _read_given_up(table: Table) -> list[str]:
    """Return the loads that were given up, none where another writer has set the property to anything else."""
    try:
        loads = json.loads(table.properties.get(GIVEN_UP, "[]"))
    except ValueError:
        return []
    return [str(load) for load in loads] if isinstance(loads, list) else []


def make_summary(intent: Intent) -> dict[str, str]:
    """Return the properties that the summary of a change's snapshot has."""
    refreshes = {REFRESHES: "true"} if intent.effects.replaces != "nothing" else {}
    return {LOAD: intent.load, "lakewriter.job-id": intent.job_id} | refreshes


def note_counts(counts: Counts) -> dict[str, str]:
    """Return the property of a snapshot's summary that holds the change's row counts."""
    return {counts.name_property(): counts.model_dump_json()}


def read_counts(snapshot: Snapshot | None, kind: str) -> Counts | None:
    """Return the row counts of a change of this ``kind`` from its snapshot's summary. All counts are zero without a
    snapshot, or when it has expired; None for a kind that counts no rows."""
    of_kind = COUNTS.get(kind)
    if of_kind is None:
        return None
    properties = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    text = properties.get(of_kind.name_property())
    return of_kind() if text is None else of_kind.model_validate_json(text)


def read_load(snapshot: Snapshot) -> str | None:
    """Return the load in the snapshot's summary; None for another writer's snapshot."""
    return snapshot.summary.additional_properties.get(LOAD) if snapshot.summary else None


def gives_up(snapshot: Snapshot) -> bool:
    """Return whether the snapshot changes nothing, since it only gives a change up."""
    return snapshot.summary is not None and GIVES_UP in snapshot.summary.additional_properties


def read_undone(snapshot: Snapshot) -> str | None:
    """Return the job id of the load that the snapshot has taken back; None where it is no undo's."""
    return snapshot.summary.additional_properties.get(UNDOES) if snapshot.summary else None


def is_refresh(snapshot: Snapshot) -> bool:
    """Return whether the snapshot is a full refresh's."""
    return snapshot.summary is not None and REFRESHES in snapshot.summary.additional_properties


def lacks_parent(snapshot: Snapshot) -> bool:
    """Return whether the snapshot followed another one that it does not name any more: PyIceberg's expiry takes the
    name of an expired one out of those that followed it."""
    if snapshot.parent_snapshot_id is not None:
        return False
    # A table of format version 1 has no sequence numbers; its refreshes say that they have deleted files.
    removed = snapshot.summary.additional_properties.get("deleted-data-files", "0") if snapshot.summary else "0"
    return (snapshot.sequence_number or FIRST) != FIRST or removed != "0"


def find_change_since(table: Table, load: str, gone: Collection[str] = ()) -> Snapshot | None:
    """Find a snapshot after a load's that changed what readers see; ``load`` is the load in the snapshot's summary.
    Return None where the table has none.

    Loads that were undone since, their undos, and snapshots with the same rows, such as those of compactions, are no
    change. ``gone`` are job ids of the pipeline's loads that are to be undone before. The undo of an older load is a
    change: going back to a snapshot before the undo would show that load again.
    """
    pipeline, undone, taken_out = load.partition("/")[0], set(gone), dict[str, Snapshot]()
    current = table.current_snapshot()
    for snapshot in walk_ancestors(table, current) if current is not None else ():
        seen, summary = read_load(snapshot) or "", snapshot.summary
        writer, _, rest = seen.partition("/")
        job_id = rest.partition("/")[0]
        undoes = summary.additional_properties.get(UNDOES) if writer == pipeline and summary else None
        # Rule compaction-is-no-change
        if summary is not None and summary.operation is Operation.REPLACE:
            continue
        if undoes is not None:
            undone.add(undoes)
            if summary is not None and summary.operation is not Operation.APPEND:
                taken_out[undoes] = snapshot
        elif writer == pipeline and job_id in undone:
            taken_out.pop(job_id, None)
        else:
            return next(iter(taken_out.values()), None) if seen == load else snapshot
    return current


def walk_ancestors(table: Table, current: Snapshot) -> Iterator[Snapshot]:
    """Yield the current snapshot and its ancestors, up to the first one that has expired."""
    # PyIceberg's own search scans all snapshots for each ancestor.
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    snapshot: Snapshot | None = current
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else by_id.get(parent)


def _is_of_load(snapshot: Snapshot, load_snapshot: Snapshot | None) -> bool:
    """Return whether it is the load's snapshot, or was cherry-picked from it; where the load's snapshot has expired,
    whether it was cherry-picked at all.
    """
    source = snapshot.summary.additional_properties.get(_SOURCE) if snapshot.summary else None
    if load_snapshot is None:
        return source is not None
    return snapshot.snapshot_id == load_snapshot.snapshot_id or source == str(load_snapshot.snapshot_id)


def _is_older(snapshot: Snapshot, load_snapshot: Snapshot | None, intent: Intent) -> bool:
    """Return whether the snapshot, which is not the load's, has no higher sequence number than that can have, so that
    none of its ancestors is the load's; false where there are no sequence numbers."""
    assert isinstance(intent.catalog, IcebergAction)
    number = intent.catalog.sequence if load_snapshot is None else load_snapshot.sequence_number
    return bool(number) and (snapshot.sequence_number or 0) <= (number or 0)


def _explain_rollback(current: Snapshot, load_snapshot: Snapshot | None) -> str:
    what = f"snapshot {load_snapshot.snapshot_id} of the load is" if load_snapshot else "no snapshot of the load is"
    also = "not " if load_snapshot else ""
    return f"{what} {also}among the ancestors of the current snapshot {current.snapshot_id}: the table was rolled back"
