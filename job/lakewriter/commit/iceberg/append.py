"""Append a load to an Iceberg table, or replace its files: one snapshot, committed with the number of the load."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import NoneType
from typing import Final

from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from lakewriter import aws
from lakewriter.commit.change_count import CountedChanges, name_count_property
from lakewriter.commit.iceberg.added_files import (
    DELETES,
    MOVED,
    describe_file_differences,
    find_schema,
    list_moved_files,
    make_data_files,
    name_made,
    read_added_files,
)
from lakewriter.commit.iceberg.catalog_errors import explain_limits
from lakewriter.commit.iceberg.compact_snapshot import commit_compaction
from lakewriter.commit.iceberg.expire_snapshots import allows_deletion, commit_expiry, find_unused
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable, drop_history
from lakewriter.commit.iceberg.load_comparison import LoadComparison
from lakewriter.commit.iceberg.manifests import (
    StreamedAppend,
    StreamedPartitions,
    StreamedReplacement,
    StreamedRewrite,
    list_data_files,
    read_live_entries,
    read_manifests,
)
from lakewriter.commit.iceberg.merge import KeyMerge, read_deletes
from lakewriter.commit.iceberg.obstacles import require_changeable, require_committable
from lakewriter.commit.iceberg.partition_specs import make_partition, require_one_spec
from lakewriter.commit.iceberg.removal import commit_undo, require_deletable
from lakewriter.commit.iceberg.renaming import rename_columns
from lakewriter.commit.iceberg.schema_evolution import count_loads
from lakewriter.commit.iceberg.snapshot_presence import (
    GIVES_UP,
    explain_absence,
    find_change_since,
    is_given_up,
    is_same_table,
    lacks_parent,
    list_given_up,
    make_summary,
    note_given_up,
    read_counts,
    read_load,
)
from lakewriter.commit.mismatch import Comparison
from lakewriter.errors import CommitUnknownError, LakeError, PendingUnrecoverableError, SchemaIncompatibleError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Effects, Intent, Load, require_able
from lakewriter.records.facets import CompactIntent, ExpireIntent, MergeIntent, UndoneLoad
from lakewriter.records.state import GivenUp
from lakewriter.report import Counts, ExpireCounts, TableHealth, format_count
from lakewriter.spec.specification import MIB

MANIFESTS: Final = 20
"""How many manifests are read at most to count files: appends merge manifests beyond that number."""

COUNTED_BATCHES: Final = 20
"""One in so many batches of a continuous run counts the table's files."""

SMALL_FILE: Final = 32 * MIB


class IcebergTables:
    """Appends loads; every call may be repeated for one intent, by several processes at once."""

    def __init__(self, action: IcebergAction, clients: aws.Clients, load: str) -> None:
        self._table = IcebergTable(action, clients, load)
        self._merge: KeyMerge | None = None
        self._lasting = clients.lasting
        self._commits: Mapping[type, Commit] = {**COMMITS, MergeIntent: self._merge_files}
        self.version: str | None = None
        self.counts: Counts | None = None

    def note_deleted_keys(self, intent: Intent) -> tuple[str, bytes] | None:
        """See ``CatalogWriter``."""
        merge = intent.merge if isinstance(intent, Load) else None
        if not isinstance(intent, Load) or merge is None or merge.deleted_keys is None:
            return None
        table = _require_same_table(self._table.load(), intent)
        schema = find_schema(table, _require_iceberg(intent))
        files = list(make_data_files(intent.files, schema, table.specs()[_require_iceberg(intent).spec_id]))
        return merge.deleted_keys, self._open_merge(intent).list_deleted_keys(table, schema, files)

    def _open_merge(self, intent: Load) -> KeyMerge:
        if self._merge is None:
            assert intent.merge is not None
            self._merge = KeyMerge(intent, intent.merge, self._lasting)
        return self._merge

    def _merge_files(self, table: Table, intent: Intent, effects: Effects, number: int) -> None:
        assert isinstance(intent, Load)
        _add_files(table, intent, effects, number, self._open_merge(intent))

    def publish(self, intent: Intent, number: int) -> None:
        """Append the intent's files as load ``number`` of its pipeline, unless the table has it already.

        The number is a table property, committed together with the snapshot on the table just read: a second writer is
        refused, reads the table again, and finds the number.
        """
        effects = intent.effects
        require_able(effects, self._commits)
        # A commit names what it is based on: the table as it was before files were staged would lose each race.
        table, commit = _require_same_table(self._table.load(), intent), self._commits[type(effects.work)]

        def done(seen: Table) -> bool:
            # Rule iceberg-property
            return _count_committed(_require_same_table(seen, intent), intent) >= number

        if intent.changes_rows or not isinstance(effects.work, MergeIntent | None) or effects.replaces != "nothing":
            # Rule iceberg-property/2
            table = self._table.change(table, done, lambda seen: commit(seen, intent, effects, number))
        # Before anything is published or deleted beside the table.
        # Rule given-up-first
        if is_given_up(table, intent):
            raise GivenUp

    def read_back(self, intent: Intent) -> TableHealth | None:
        """Compare the load's snapshot with the receipts, ``COMMIT_UNKNOWN`` where they differ; return the table's
        health, None where it cannot be read."""
        # Read once more: what is retired was deleted since the commit, and a replay deletes its bad rows after this.
        table = _require_same_table(self._table.load(), intent)
        if (removes := intent.effects.removes) is not None:
            self._require_removed(table, removes)
            return self._read_health(table, intent)
        snapshot = _find_snapshot(table, intent)
        self.counts = read_counts(snapshot, intent.kind)
        dropped = self._list_dropped()
        differences = _describe_differences(table, intent.leave_out(dropped), snapshot) if intent.files else []
        if differences:
            raise CommitUnknownError(
                f"Iceberg table {self._table.name} does not show the load as it was written: {'; '.join(differences)}.",
                remedy="Look for another writer that rolled the table back.",
            )
        self.version = str(snapshot.snapshot_id) if snapshot is not None else None
        return self._read_health(table, intent)

    def _read_health(self, table: Table, intent: Intent) -> TableHealth | None:
        try:
            with explain_limits(f"count the files of {self._table.name}"):
                return read_health(table, counts_files=_counts_files(intent))
        except LakeError:
            # The change is committed: it does not fail because its table's files could not be counted.
            return None

    def _require_removed(self, table: Table, load: UndoneLoad) -> None:
        left = sorted(frozenset(load.locations).intersection(list_data_files(table, table.current_snapshot())))
        if left:
            raise CommitUnknownError(
                f"Iceberg table {self._table.name} still has {format_count(len(left), 'file')} of load "
                f"{load.job_id!r} after its undo, such as {left[0]}.",
                remedy="Look for another writer that rolled the table back.",
            )

    def find_changes(self, pipeline: str) -> CountedChanges:
        """Return the changes of the pipeline that the table counts, and the loads that its snapshots name."""
        table = self._table.load()
        if table is None:
            return CountedChanges()
        loads = frozenset(load for load in map(read_load, table.snapshots()) if load)
        return CountedChanges(count_loads(table, pipeline), loads, list_given_up(table, pipeline))

    def find_snapshot_id(self, intent: Intent) -> int | None:
        """Return the id of the snapshot that a committed load made; None where it has expired."""
        snapshot = _find_snapshot(_require_same_table(self._table.load(), intent), intent)
        return snapshot.snapshot_id if snapshot is not None else None

    def look_before(self, intent: Intent, gone: Collection[str] = ()) -> tuple[str | None, int | None]:
        """Return why the snapshot before a full refresh cannot be shown again, and the id of that snapshot.

        ``gone`` are job ids of loads that are taken back before it. Both results are None where the refresh made the
        table's first snapshot, or made none because it has no rows.
        """
        table = _require_same_table(self._table.load(), intent)
        current, snapshot = table.current_snapshot(), _find_snapshot(table, intent)
        if not intent.files and (current is None or intent.effects.replaces == "partitions"):
            return None, None
        if snapshot is None:
            return "its snapshot has expired", None
        changed = find_change_since(table, intent.load, gone)
        if current is None or changed is not None:
            of = read_load(changed) if changed is not None else None
            return f"the table has changed since, by {f'load {of!r}' if of else 'another writer'}", None
        parent = snapshot.parent_snapshot_id
        # Rule undo-of-expired
        if lacks_parent(snapshot) or (parent is not None and table.snapshot_by_id(parent) is None):
            return "the snapshot before it has expired", None
        if parent is None and (self.find_missing(intent) or self._find_missing(table, self.find_moved(intent))):
            return "its files were rewritten since, and the table had no snapshot before it", None
        return None, parent

    def require_changeable(self, intent: Intent) -> None:
        """Raise ``SCHEMA_INCOMPATIBLE`` where no change of the table of a committed load could be committed now."""
        table = _require_same_table(self._table.load(), intent)
        require_changeable(table, intent.bucket, self._table.name)

    def has_change(self, intent: Intent, number: int) -> bool:
        """Return whether the table has the change of this number, and it was not given up."""
        table = self._table.load()
        if table is None or not is_same_table(table, intent):
            return False
        return _count_committed(table, intent) >= number and not is_given_up(table, intent)

    def decide(self, intent: Intent, number: int) -> bool | None:
        """See ``CatalogWriter``. A change that the table lacks becomes impossible, since its number is used without it,
        in a snapshot that changes nothing. A process that has begun its commit before is refused, since a commit names
        the snapshot that it follows; any other one finds the number."""
        table = self._table.load()
        if table is None or not is_same_table(table, intent):
            return False

        def is_used(seen: Table) -> bool:
            return _count_committed(_require_same_table(seen, intent), intent) >= number

        def use_up(seen: Table) -> None:
            with drop_history(seen).transaction() as transaction:
                number_property = {name_count_property(intent.pipeline): str(number)}
                transaction.set_properties(number_property | note_given_up(seen, intent))
                # Rule given-up-snapshot
                StreamedRewrite(transaction, seen.io, lambda: iter(()), {GIVES_UP: intent.job_id}, ()).commit()

        return not is_given_up(self._table.change(table, is_used, use_up), intent)

    def find_missing(self, intent: Intent) -> list[str]:
        """List the files of a committed load that the current snapshot does not have: they were rewritten since, or
        the table was rolled back."""
        table = _require_same_table(self._table.load(), intent)
        return self._find_missing(table, (f"s3://{intent.bucket}/{key}" for key in intent.files.list_keys()))

    @staticmethod
    def _find_missing(table: Table, locations: Iterable[str]) -> list[str]:
        return sorted(frozenset(locations).difference(list_data_files(table, table.current_snapshot())))

    def find_moved(self, intent: Intent) -> list[str]:
        """List the files that rows of a committed load were moved into when it was committed."""
        table = _require_same_table(self._table.load(), intent)
        snapshot = _find_snapshot(table, intent)
        return [] if snapshot is None else list_moved_files(table, snapshot)

    def require_deletable(self, intent: Intent) -> None:
        """Raise ``SCHEMA_INCOMPATIBLE`` where rows of the load could not be deleted from files that were rewritten."""
        require_deletable(_require_same_table(self._table.load(), intent))

    def explain_absence(self, intent: Intent) -> str | None:
        """See ``CatalogWriter``: the table may have been rolled back or dropped."""
        return explain_absence(self._table.load(), intent)

    def compare(self, intent: Intent) -> Comparison:
        """See ``CatalogWriter``."""
        return LoadComparison(intent, self._table.name).compare(self._table.load)

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """See ``CatalogWriter``: metadata files that were written for this load and never committed, and files of a
        compaction that do not become the table's."""
        if dropped := self._list_dropped():
            keys = (receipt.key for receipt in intent.files.at_hand if receipt.partition in dropped)
            self._table.delete_files(f"s3://{intent.bucket}/{key}" for key in keys)
        work = intent.effects.work
        if isinstance(work, ExpireIntent):
            self._delete_expired(intent, work)
        if gone:
            kinds = (DELETES, MOVED) if intent.effects.writes_deletes else ()
            self._table.clear_up(intent.load, intent.started, [name_made(kind, intent.load) for kind in kinds])
        return tuple(self._table.left)

    def _delete_expired(self, intent: Intent, work: ExpireIntent) -> None:
        """Delete the files that only the snapshots of an expiry have, and count them."""

        def list_steps(table: Table) -> Iterator[Collection[str]]:
            if not is_same_table(table, intent) or not allows_deletion(table):
                return
            unused = find_unused(table, work.snapshots).within(table)
            yield from unused.steps
            if isinstance(self.counts, ExpireCounts):
                self.counts = self.counts.model_copy(update={"files": len(unused), "bytes": unused.bytes})

        self._table.delete_in_steps("files of expired snapshots", list_steps)

    def _list_dropped(self) -> tuple[int, ...]:
        return self.counts.list_dropped() if self.counts is not None else ()


def _require_iceberg(intent: Intent) -> IcebergAction:
    assert isinstance(intent.catalog, IcebergAction)
    return intent.catalog


def _require_same_table(table: Table | None, intent: Intent) -> Table:
    """Return the table; ``PENDING_UNRECOVERABLE`` where it is another one of this name, whose field ids may mean other
    columns."""
    action = _require_iceberg(intent)
    # Rule same-table
    if table is None or not is_same_table(table, intent):
        what = "is gone" if table is None else "was dropped and made anew"
        raise PendingUnrecoverableError(
            f"Iceberg table {action.namespace}.{action.table} {what} after load {intent.job_id!r} had "
            "written its files.",
            remedy=f"Give the load up: lakewriter abandon LAKE {intent.job_id}. Then load again.",
        )
    return table


def _count_committed(table: Table, intent: Intent) -> int:
    return count_loads(table, intent.pipeline)


def _add_files(table: Table, intent: Intent, effects: Effects, number: int, merge: KeyMerge | None = None) -> None:
    spec_id = _require_iceberg(intent).spec_id
    # Rule partition-spec
    if table.spec().spec_id != spec_id:
        raise PendingUnrecoverableError(
            f"Iceberg table {'.'.join(table.name())} was partitioned in another way ({table.spec()}) after load "
            f"{intent.job_id!r} had written its files.",
            remedy=f"Bring the table's partition fields back ({table.specs()[spec_id]}: ALTER TABLE ... ADD or DROP "
            f"PARTITION FIELD) and run the load again, or give it up: lakewriter abandon LAKE {intent.job_id}.",
        )
    schema = find_schema(table, _require_iceberg(intent))
    require_committable(table, intent, schema, ".".join(table.name()))
    summary = make_summary(intent)
    is_replacement = effects.replaces != "nothing" and table.current_snapshot() is not None
    keeps_others = is_replacement and effects.replaces == "partitions"
    replaced = _list_replaced(table, intent, schema) if keeps_others else None
    with drop_history(table).transaction() as transaction:
        transaction.set_properties({name_count_property(intent.pipeline): str(number)})
        rename_columns(transaction, _require_iceberg(intent).renamed)
        if not intent.changes_rows and (not is_replacement or replaced is not None):
            # A refresh without rows, of a table without a snapshot, or one that replaces no partition.
            return

        def make_files() -> Iterator[DataFile]:
            return make_data_files(intent.files, schema, table.spec())

        if merge is not None and intent.changes_rows:
            merge.commit(table, transaction, intent.load, schema, make_files, summary, replaces=is_replacement)
        elif replaced is not None:
            StreamedPartitions(transaction, table.io, make_files, summary, replaced).commit()
        elif is_replacement:
            StreamedReplacement(transaction, table.io, make_files, summary).commit()
        else:
            StreamedAppend(transaction, table.io, make_files, summary).commit()


Commit = Callable[[Table, Intent, Effects, int], None]
"""Commits a change to the table as it was read, with the number of the change."""
COMMITS: Final[Mapping[type, Commit]] = {
    NoneType: _add_files,
    CompactIntent: commit_compaction,
    ExpireIntent: commit_expiry,
    UndoneLoad: commit_undo,
}
"""The function that commits each type of work. A merge has its own, since it may be tried on several table versions."""


def _list_replaced(table: Table, intent: Intent, schema: Schema) -> frozenset[Record]:
    """Return the partitions that the load has files in."""
    try:
        require_one_spec(table, ".".join(table.name()))
    except SchemaIncompatibleError as error:
        raise PendingUnrecoverableError(
            error.message, remedy=f"Give the load up: lakewriter abandon LAKE {intent.job_id}. {error.remedy}"
        ) from error
    partition_type = table.spec().partition_type(schema)
    return frozenset(make_partition(receipt, partition_type) for receipt in intent.files.without_statistics())


def _find_snapshot(table: Table, intent: Intent) -> Snapshot | None:
    """Return the load's snapshot; None where it has expired, and for a load without files."""
    return next((snapshot for snapshot in table.snapshots() if read_load(snapshot) == intent.load), None)


def _describe_differences(table: Table, intent: Intent, snapshot: Snapshot | None) -> list[str]:
    if not _count_committed(table, intent):
        return [f"it has no property {name_count_property(intent.pipeline)!r}"]
    if snapshot is None:
        # Snapshots expire; the count does not.
        return []
    expected = {f"s3://{receipt.bucket}/{receipt.key}": receipt.rows for receipt in intent.files.without_statistics()}
    rows = read_added_files(table, snapshot)
    return [] if rows == expected else describe_file_differences(rows, expected)


def _counts_files(intent: Intent) -> bool:
    """Return whether to count the files in the manifests: of a continuous run, which commits often, few batches do."""
    batch = intent.batch if isinstance(intent, Load) else None
    return batch is None or batch.number % COUNTED_BATCHES == 0


def read_health(table: Table, *, counts_files: bool = True) -> TableHealth:
    """Count the table's snapshots, files and small files, which grow with small loads."""
    snapshot = table.current_snapshot()
    deletes = read_deletes(snapshot) if snapshot is not None else None
    if not counts_files:
        return TableHealth(snapshots=len(table.metadata.snapshots), files=None, small_files=None, deletes=deletes)
    manifests = read_manifests(table.metadata, snapshot, table.io) if snapshot else []
    entries = (entry for manifest in manifests[:MANIFESTS] for entry in read_live_entries(manifest, table.io))
    sizes = [entry.size for entry in entries if entry.content == DataFileContent.DATA]
    complete = len(manifests) <= MANIFESTS
    return TableHealth(
        snapshots=len(table.metadata.snapshots),
        files=len(sizes) if complete else None,
        small_files=sum(size < SMALL_FILE for size in sizes) if complete else None,
        deletes=deletes,
    )
