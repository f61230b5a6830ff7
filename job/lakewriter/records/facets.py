"""The facets of a change's intent: what a load, a merge, a refresh, an undo, a compaction or an expiry has beside the
others."""

from typing import Annotated

from pydantic import ConfigDict, Field

from lakewriter.control_object import ControlObject, sparse
from lakewriter.receipt import DeletedKeys, Floor, Receipt, ReceiptPart
from lakewriter.records.actions import FilesAction, GlueAction
from lakewriter.records.sync_records import SourceState
from lakewriter.spec.access import Access


class IntentAccess(Access):
    """The destination of lake.yaml, as an intent stores it: unknown fields of later releases are kept."""

    model_config = ConfigDict(extra="allow")


class Removal(ControlObject):
    """An object to delete, unless it was replaced since it had this etag."""

    key: str
    etag: str


class Quarantine(ControlObject):
    """The files with the rows that a load keeps out of its table. They belong to a table of their own, ``catalog``, and
    are published together with the load or not at all. Many ``receipts`` are in ``parts``. A replay ``takes`` the files
    whose rows it loads: they are deleted once it is published."""

    catalog: Annotated[FilesAction | GlueAction, Field(discriminator="kind")]
    receipts: tuple[Receipt, ...] = ()
    parts: tuple[ReceiptPart, ...] = sparse(())
    takes: tuple[Removal, ...] = sparse(())


class Before(ControlObject):
    """Fields of a table's state that a load moves and an undo sets back, as they were when the load began."""

    source: SourceState | None = None
    unfinished: bool = sparse(False)
    begins_anew: bool = sparse(False)
    deleted_keys: DeletedKeys | None = sparse(None)
    knows_inputs: bool = sparse(False)
    """Whether no load had read files that the state does not name."""


class UndoneLoad(ControlObject):
    """The load that an undo takes back, and what becomes of its table.

    files, rows      what leaves the table
    next             the job id that loads the rows again
    drops_partition  whether the load is alone in its Glue partition, which is dropped before the objects are deleted
    grace_seconds    for how long queries that began before that may still read the objects
    restores_cursor  whether the table's cursor becomes the intent's ``cursor_after``, None included
    restores_source  whether the source's state becomes that of ``before``
    restores_keys    whether the deleted keys become those of ``before``: it has merged rows, or replaced them all
    restores_inputs  whether the record of files that were read lacks no load once this one is undone
    column           the tracking column with the job id: its rows are deleted from files that were rewritten since
    snapshot_before  the id of the Iceberg snapshot that becomes the current one again, of a full refresh
    is_absent        whether its Iceberg snapshot had been rolled back already, so that the table has none of its rows
    """

    job_id: str
    attempt: str
    files: int
    rows: int
    reason: str
    next: str
    drops_partition: bool = False
    grace_seconds: float = 0.0
    restores_cursor: bool = False
    restores_source: bool = False
    restores_keys: bool = sparse(False)
    before: Before = Before()
    restores_inputs: bool = sparse(False)
    column: str | None = None
    snapshot_before: int | None = sparse(None)
    is_absent: bool = sparse(False)
    locations: tuple[str, ...] = ()
    """The URIs of the files, in an Iceberg table, whose objects stay for its older snapshots."""
    quarantined: tuple[Removal, ...] = sparse(())
    """The files with its bad rows."""


class Switch(ControlObject):
    """The numbers of the generations of files that a table's readers leave and see next; 0 is the empty one.

    keep_seconds     for how long the files of ``before`` are kept
    job_id, attempt  the refresh whose files are ``after``, in an undo
    latest           the key of the object that names the files which readers are to read; None in Iceberg
    """

    before: int
    after: int
    latest: str | None = None
    keep_seconds: float = 0.0
    job_id: str | None = None
    attempt: str | None = None


class MergeIntent(ControlObject):
    """The columns, by their written names, by which a load's rows replace the table's rows of the same key.

    deleted          the column that is true for a row that deletes; None where no row does
    keeps_deleted    whether such a row takes the place of the table's, and is read
    deleted_keys     the object that the load creates with the keys that it deletes, for later loads; None for none
    deleted_seconds  for how long these keep older rows out, from the load's start on
    deleted_before   the objects of the loads before it
    deleted_folds    how many of these, the newest ones, its own object stands for as well
    deleted_level    the level of its own object
    compared         the columns that decide between rows of the load with the same key and order. None where these rows
                     are in the order of the files that they were read from: then the last one stays
    fills            the columns whose unchanged values some of the load's events leave out: these are taken from
                     earlier events or the table's row, anew on each snapshot that the commit is based on
    wins_ties        whether a row of the load replaces the table's of the same key and order, as one does that was
                     read again to correct it
    floors           the floors that the load brings: rows of the table below them go
    floors_before    those of the loads before it that still keep older rows out
    source           the column with a row's source table; None where there are no floors
    is_history       whether the table has a row of each key for each order, which is a part of ``keys``, and a row
                     without a key for each change of the whole table
    """

    keys: tuple[str, ...]
    order_by: tuple[str, ...]
    deleted: str | None = None
    keeps_deleted: bool = False
    deleted_keys: str | None = sparse(None)
    deleted_seconds: float = sparse(0.0)
    deleted_before: DeletedKeys | None = sparse(None)
    deleted_folds: int = sparse(0)
    deleted_level: int = sparse(0)
    compared: tuple[str, ...] | None = sparse(None)
    fills: tuple[str, ...] = sparse(())
    wins_ties: bool = sparse(False)
    floors: tuple[Floor, ...] = sparse(())
    floors_before: tuple[Floor, ...] = sparse(())
    source: str | None = sparse(None)
    is_history: bool = sparse(False)


class CompactedGroup(ControlObject):
    """Files of an Iceberg table that are replaced together, or not at all. Their rows are in the receipts whose
    ``partition`` is the group's number.

    removes   the URIs of the data files
    deletes   the URIs of the files with deletes that are already applied to these rows
    """

    removes: tuple[str, ...]
    deletes: tuple[str, ...] = ()


class CompactIntent(ControlObject):
    """The files that a compaction replaces. ``snapshot`` is the id of the snapshot that it has read, ``sequence`` its
    sequence number."""

    snapshot: int
    sequence: int
    groups: tuple[CompactedGroup, ...]


class ExpiredSnapshot(ControlObject):
    """An Iceberg snapshot that leaves its table, by its id, with the files that its table's metadata name for it alone:
    its list of manifests, from which all others are found, and its statistics."""

    id: int
    manifest_list: str
    statistics: tuple[str, ...] = sparse(())


class ExpireIntent(ControlObject):
    """The snapshots that an expiry removes, unless the table needs one when it is committed.

    now     the time in milliseconds at which they were chosen
    before  likewise: no younger snapshot is removed, unless its branch says so
    keep    how many snapshots of a branch stay, however old, unless the branch says so
    refs    the branches and tags whose own time has passed
    undos   the loads that can no longer be undone
    """

    now: int
    before: int
    keep: int
    snapshots: tuple[ExpiredSnapshot, ...]
    refs: tuple[str, ...] = sparse(())
    undos: tuple[str, ...] = sparse(())
