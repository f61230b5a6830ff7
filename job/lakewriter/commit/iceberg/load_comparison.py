"""Compare a committed load with its Iceberg table: the load's snapshot, the files of the current one, the columns.

Rows that were compacted since count as unchanged, rows that were deleted do not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakewriter.commit.change_count import name_count_property
from lakewriter.commit.iceberg.added_files import describe_file_differences, find_schema, read_added_files
from lakewriter.commit.iceberg.catalog_errors import explain_limits
from lakewriter.commit.iceberg.manifests import list_data_files, read_entries, read_manifests
from lakewriter.commit.iceberg.schema_evolution import count_loads
from lakewriter.commit.iceberg.snapshot_presence import (
    explain_absence,
    is_refresh,
    is_same_table,
    read_load,
    read_undone,
    walk_ancestors,
)
from lakewriter.commit.mismatch import Comparison, Kind, Mismatch
from lakewriter.errors import LoadGoneError, SchemaIncompatibleError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Intent
from lakewriter.report import MergeCounts


class LoadComparison:
    """Compares one load with the table as it is now."""

    def __init__(self, intent: Intent, name: str) -> None:
        self._intent, self._name = intent, name
        self._prefix = f"s3://{intent.bucket}/"
        self._mismatches: list[Mismatch] = []
        self._notes: list[str] = []
        self._replaced: set[str] = set()

    def compare(self, load: Callable[[], Table | None]) -> Comparison:
        """List everything that differs between the load and the table that ``load`` returns; every step is taken,
        whatever the one before it found."""
        if self._intent.changes_rows:
            with self._note_damage():
                self._compare_table(load())
        return Comparison(tuple(self._mismatches), tuple(self._notes), frozenset(self._replaced))

    def _compare_table(self, table: Table | None) -> None:
        why = explain_absence(table, self._intent)
        if why is not None and table is not None and self._intent.lets_loads_go_on:
            # An undo, or another writer, went back to a snapshot before the compaction: readers see the same rows in
            # other files.
            self._notes.append(f"readers do not see the files of {self._intent.job_id!r}: {why}")
            self._replaced = set(self._intent.files.list_keys())
        elif why is not None:
            is_same = table is not None and is_same_table(table, self._intent)
            kind = Kind.ROLLED_BACK if is_same else Kind.TABLE_GONE
            self._add(kind, f"load {self._intent.job_id!r} is committed, and readers do not see it any more: {why}")
        elif table is not None:
            for step in (self._compare_count, self._compare_columns, self._compare_snapshot, self._compare_files):
                with self._note_damage():
                    step(table)

    def _add(self, kind: Kind, what: str, *, key: str = "") -> None:
        # A Glue table can be created again over its files; an Iceberg table that is gone has lost the load.
        code = LoadGoneError.code if kind is Kind.TABLE_GONE else ""
        self._mismatches.append(Mismatch(kind, f"Iceberg table {self._name}: {what}.", key, code))

    @contextmanager
    def _note_damage(self) -> Iterator[None]:
        """Note metadata files that are gone or cannot be read: they keep every reader from the table."""
        try:
            with explain_limits(f"read the metadata of {self._name}"):
                yield
        except (LoadGoneError, SchemaIncompatibleError) as error:
            self._add(Kind.METADATA_DAMAGED, error.message.rstrip("."))
        except (EOFError, ArithmeticError, AttributeError) as error:
            # PyIceberg's Avro reader raises these for a file that was cut off or changed.
            self._add(Kind.METADATA_DAMAGED, f"its metadata cannot be read ({type(error).__name__}: {error})")

    def _compare_count(self, table: Table) -> None:
        if not count_loads(table, self._intent.pipeline):
            self._add(Kind.TABLE_CHANGED, f"it has no property {name_count_property(self._intent.pipeline)!r}")

    def _compare_columns(self, table: Table) -> None:
        assert isinstance(self._intent.catalog, IcebergAction)
        now = {field.field_id: field.name for field in table.schema().fields}
        for field in find_schema(table, self._intent.catalog).fields:
            if field.field_id not in now:
                self._add(Kind.COLUMN_GONE, f"column {field.name!r} is not there")
            elif now[field.field_id] != field.name:
                self._notes.append(f"column {field.name!r} of {self._name} is called {now[field.field_id]!r} by now")

    def _compare_snapshot(self, table: Table) -> None:
        """Compare the load's snapshot, while it is kept, with the files of the receipts."""
        snapshot = next(
            (candidate for candidate in table.snapshots() if read_load(candidate) == self._intent.load), None
        )
        if snapshot is None:
            return
        expected = {
            self._make_location(receipt.key): receipt.rows for receipt in self._intent.files.without_statistics()
        }
        for what in describe_file_differences(read_added_files(table, snapshot), expected):
            self._add(Kind.TABLE_CHANGED, what)

    def _compare_files(self, table: Table) -> None:
        """Find the load's files that the current snapshot lacks: they were rewritten, or their rows deleted."""
        current = table.current_snapshot()
        if current is None:
            return
        live = set(list_data_files(table, current))
        gone = {self._make_location(key) for key in self._intent.files.list_keys()} - live
        self._replaced = {location.removeprefix(self._prefix) for location in gone}
        for snapshot in walk_ancestors(table, current):
            if not gone or read_load(snapshot) == self._intent.load:
                break
            removed = gone.intersection(_list_removed(table, snapshot))
            gone -= removed
            for location in sorted(removed):
                self._tell_removal(location, snapshot)
        if gone:
            self._notes.append(
                f"{len(gone)} of the load's {len(self._intent.files)} files are no longer in {self._name}, and the "
                "snapshot that took them out has expired: whether their rows were rewritten or deleted is not known"
            )

    def _tell_removal(self, location: str, snapshot: Snapshot) -> None:
        operation = snapshot.summary.operation.value if snapshot.summary else "unknown"
        by = f"snapshot {snapshot.snapshot_id} ({operation})"
        if is_refresh(snapshot):
            self._notes.append(f"{location} was replaced by a full refresh, {by}")
        elif (undone := read_undone(snapshot)) is not None:
            # The file of a compaction has rows of several loads.
            self._notes.append(f"{location} was taken out, or written again without rows of load {undone!r}, by {by}")
        elif snapshot.summary is not None and MergeCounts.name_property() in snapshot.summary.additional_properties:
            # A merge takes out no other file, and of those with rows that readers see it counts these.
            self._notes.append(f"{location} went with a truncate, or a new snapshot of its source, by {by}")
        elif _is_rewrite(snapshot):
            self._notes.append(f"{location} was rewritten into other files by {by}, with as many rows")
        else:
            key = location.removeprefix(self._prefix)
            self._add(Kind.ROWS_REMOVED, f"file {location} was removed by {by}", key=key)

    def _make_location(self, key: str) -> str:
        return self._prefix + key


def _list_removed(table: Table, snapshot: Snapshot) -> Iterator[str]:
    """Yield the data files that this snapshot itself removed."""
    for manifest in read_manifests(table.metadata, snapshot, table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in read_entries(manifest, table.io):
            if entry.status == ManifestEntryStatus.DELETED:
                yield entry.path


def _is_rewrite(snapshot: Snapshot) -> bool:
    """Return whether the snapshot changed files and no rows: a replace, or an overwrite that added as many rows as it
    removed.
    """
    if snapshot.summary is None:
        return False
    if snapshot.summary.operation == Operation.REPLACE:
        return True
    numbers = snapshot.summary.additional_properties
    added, deleted = numbers.get("added-records"), numbers.get("deleted-records")
    return snapshot.summary.operation == Operation.OVERWRITE and added is not None and added == deleted
