"""Expire snapshots of an Iceberg table: choose those that nothing needs any more, remove them in one commit, and then
delete the files that no other snapshot has.

The table that the commit is based on decides: a snapshot stays if a branch, a tag or an undo needs it by then. The
library's own expiry asks for no branch, and deletes no files.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final, Self

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    TableUpdate,
)

from lakewriter import aws
from lakewriter.commit.change_count import name_count_property
from lakewriter.commit.iceberg.iceberg_tables import drop_history, is_within
from lakewriter.commit.iceberg.manifests import StreamedRewrite, read_live_entries
from lakewriter.commit.iceberg.schema_evolution import open_changeable
from lakewriter.commit.iceberg.snapshot_presence import (
    is_refresh,
    lacks_parent,
    make_summary,
    note_counts,
    read_load,
    read_undone,
    walk_ancestors,
)
from lakewriter.errors import LoadGoneError, SchemaIncompatibleError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Effects, Intent
from lakewriter.records.facets import ExpiredSnapshot, ExpireIntent
from lakewriter.records.state import TableState
from lakewriter.report import ExpireCounts, MergeCounts

MOST_SNAPSHOTS: Final = 1_000
"""One change removes at most so many snapshots: its intent names each."""

_MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
GC: Final = "gc.enabled"
"""https://iceberg.apache.org/docs/latest/configuration/#table-behavior-properties"""


@dataclass(frozen=True)
class Rules:
    """The rules of a pipeline's expiry. ``now`` and ``before`` are times in milliseconds: no snapshot that is younger
    than ``before`` goes. ``keep`` snapshots of each branch stay. Branches and tags may say otherwise for themselves."""

    pipeline: str
    now: int
    before: int
    keep: int

    @classmethod
    def of(cls, intent: Intent, work: ExpireIntent) -> Self:
        """Return the rules by which an intent's snapshots were chosen."""
        return cls(intent.pipeline, work.now, work.before, work.keep)


@dataclass(frozen=True)
class Expired:
    """The snapshots that an expiry removes, the oldest first, the branches and tags, and the loads whose undo goes."""

    snapshots: tuple[Snapshot, ...]
    refs: tuple[str, ...]
    undos: tuple[str, ...]

    def make_intent(self, table: Table, rules: Rules) -> ExpireIntent:
        """Return it as an intent has it."""
        metadata, statistics = table.metadata, dict[int, list[str]]()
        for file in (*metadata.statistics, *metadata.partition_statistics):
            statistics.setdefault(file.snapshot_id, []).append(file.statistics_path)
        snapshots = tuple(
            ExpiredSnapshot(
                id=snapshot.snapshot_id,
                manifest_list=snapshot.manifest_list,
                statistics=tuple(statistics.get(snapshot.snapshot_id, ())),
            )
            for snapshot in self.snapshots
        )
        return ExpireIntent(
            now=rules.now,
            before=rules.before,
            keep=rules.keep,
            snapshots=snapshots,
            refs=self.refs,
            undos=self.undos,
        )


@dataclass
class UnusedFiles:
    """Files that only expired snapshots name, with their sizes where manifests have them. They are deleted in this
    order, so that those which are left can be found again."""

    data: dict[str, int] = field(default_factory=dict)
    statistics: set[str] = field(default_factory=set)
    manifests: dict[str, int] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)

    @property
    def steps(self) -> Iterator[Collection[str]]:
        """The files whose deletion may begin once those before it are gone."""
        # Rule expired-data-first
        yield [*self.data, *self.statistics]
        yield self.manifests
        yield self.lists

    def __len__(self) -> int:
        return sum(map(len, self.steps))

    def within(self, table: Table) -> "UnusedFiles":
        """Return those in the table's folders: others are left."""
        return UnusedFiles(
            {path: size for path, size in self.data.items() if is_within(table, path)},
            {path for path in self.statistics if is_within(table, path)},
            {path: size for path, size in self.manifests.items() if is_within(table, path)},
            {path for path in self.lists if is_within(table, path)},
        )

    @property
    def bytes(self) -> int:
        """Return the sizes that manifests and their lists have."""
        return sum(self.data.values()) + sum(self.manifests.values())


class Expirable:
    """A table before an expiry: what an intent says of it; ``action`` is the present one."""

    def __init__(self, table: Table, action: IcebergAction, rules: Rules) -> None:
        chosen = choose_expired(table, rules)
        self._table, self.action, self.intent = table, action, chosen.make_intent(table, rules)
        self.snapshots = len(table.metadata.snapshots)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to expire."""
        return not self.intent.snapshots and not self.intent.refs

    def find_unused(self) -> UnusedFiles:
        """Find the files that would be deleted."""
        expired = self.intent.snapshots
        unused = find_unused(self._table, expired, {snapshot.id for snapshot in expired})
        return unused.within(self._table)


def find_expirable(
    action: IcebergAction, clients: aws.Clients, rules: Rules, read_state: Callable[[], TableState]
) -> Expirable | None:
    """Find the snapshots of a table that nothing needs; None without a table. ``SCHEMA_INCOMPATIBLE`` for a table whose
    files are not to be deleted.

    ``STATE_LOST`` where the table has more changes of the pipeline than its state.
    """
    opened = open_changeable(action, clients, f"{rules.pipeline}/expire/expire", read_state)
    if opened is None:
        return None
    table, present = opened
    require_deletable_files(table)
    return Expirable(table, present, rules)


def to_milliseconds(at: datetime) -> int:
    """Return a time as Iceberg's metadata have it."""
    return int(at.timestamp() * 1000)


def choose_expired(table: Table, rules: Rules, most: int = MOST_SNAPSHOTS) -> Expired:
    """Choose what an expiry removes now, the oldest snapshots where there are more than ``most``.

    Branches and tags keep what the specification says, https://iceberg.apache.org/spec/#snapshot-retention-policy. A
    snapshot that none of them has leaves at its age.
    """
    metadata = table.metadata
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    # An expiry leaves a branch or tag whose snapshot is gone.
    refs = {name: ref for name, ref in metadata.refs.items() if ref.snapshot_id in by_id}
    ended = {name for name, ref in refs.items() if _has_ended(table, name, ref, by_id[ref.snapshot_id], rules)}
    needed, referenced = _find_needed_by_undos(table, rules.pipeline), set[int]()
    for name in refs.keys() - ended:
        ref = refs[name]
        # Rule expiry-keeps-refs
        needed.add(ref.snapshot_id)
        referenced.add(ref.snapshot_id)
        if ref.snapshot_ref_type is SnapshotRefType.BRANCH:
            line = list(walk_ancestors(table, by_id[ref.snapshot_id]))
            referenced.update(snapshot.snapshot_id for snapshot in line)
            needed.update(snapshot.snapshot_id for snapshot in _list_retained(line, ref, rules))
    # Rule expiry-keeps-young
    needed.update(
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in referenced and snapshot.timestamp_ms >= rules.before
    )
    going = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in needed]
    going.sort(key=_order)
    chosen = going[:most]
    left = by_id.keys() - {snapshot.snapshot_id for snapshot in chosen}
    before = list_undoable(table, rules.pipeline, by_id.keys())
    after = frozenset(list_undoable(table, rules.pipeline, left))
    return Expired(tuple(chosen), tuple(sorted(ended)), tuple(job_id for job_id in before if job_id not in after))


def _order(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number or 0, snapshot.timestamp_ms


def _has_ended(table: Table, name: str, ref: SnapshotRef, snapshot: Snapshot, rules: Rules) -> bool:
    age = ref.max_ref_age_ms
    if age is None and (common := table.properties.get(_MAX_REF_AGE)) is not None:
        age = int(common)
    return name != MAIN_BRANCH and age is not None and rules.now - snapshot.timestamp_ms > age


def _list_retained(line: list[Snapshot], ref: SnapshotRef, rules: Rules) -> Iterator[Snapshot]:
    """Yield the snapshots that a branch keeps of its ``line``, the newest first."""
    least = ref.min_snapshots_to_keep or rules.keep
    before = rules.before if ref.max_snapshot_age_ms is None else rules.now - ref.max_snapshot_age_ms
    for number, snapshot in enumerate(line):
        # Rule expiry-keeps-least
        if number >= least and snapshot.timestamp_ms < before:
            return
        yield snapshot


def _find_needed_by_undos(table: Table, pipeline: str) -> set[int]:
    """Find the snapshots of the last load and before it: of the pipeline, and of any other one whose load is the last.

    Those after the last load are needed as well where an undo looks through them.
    """
    undone, last, current = set[tuple[str, str]](), list[Snapshot](), table.current_snapshot()
    line = list(walk_ancestors(table, current)) if current is not None else []
    for number, snapshot in enumerate(line):
        if (load := _read_last(snapshot, undone)) is not None:
            last = line[: number + 1] if load[0] else []
            break
    # An expiry may have left a load's snapshot without those that followed it.
    for snapshots in (line, sorted(table.metadata.snapshots, key=_order, reverse=True)):
        loads = (snapshot for snapshot in snapshots if (_read_last(snapshot, undone) or ("",))[0] == pipeline)
        last += islice(loads, 1)
    # Rule expiry-keeps-undo
    needed = {snapshot.snapshot_id for snapshot in last}
    parents = {snapshot.parent_snapshot_id for snapshot in last if _read_last(snapshot, undone) is not None}
    return needed | {parent for parent in parents if parent is not None}


def _read_last(snapshot: Snapshot, undone: set[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the pipeline and the job id of the load that a snapshot is of, blank for another writer's; None where it
    changes nothing that an undo takes back. What an undo's snapshot says is added to ``undone``."""
    if _is_no_change(snapshot):
        return None
    load = _read_writer(snapshot)
    if (undoes := read_undone(snapshot)) is not None:
        undone.add((load[0], undoes))
        return None
    return load if load not in undone else None


def _is_no_change(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE


def _read_writer(snapshot: Snapshot) -> tuple[str, str]:
    """Return the pipeline and the job id of the load in a snapshot's summary; blank for another writer's."""
    writer, _, rest = (read_load(snapshot) or "").partition("/")
    return writer, rest.partition("/")[0]


def list_undoable(table: Table, pipeline: str, left: Collection[int]) -> list[str]:
    """List the loads whose undo needs an older snapshot, and has it, if the table has the snapshots ``left`` alone; the
    newest first. A load that has only added files is undone without any."""
    jobs, undone = list[str](), set[str]()
    current = table.current_snapshot()
    for snapshot in walk_ancestors(table, current) if current is not None else ():
        if snapshot.snapshot_id not in left:
            break
        writer, job_id = _read_writer(snapshot)
        if _is_no_change(snapshot):
            continue
        if writer != pipeline:
            break
        if (undoes := read_undone(snapshot)) is not None:
            undone.add(undoes)
        elif job_id not in undone and _needs_parent(snapshot):
            parent = snapshot.parent_snapshot_id
            if parent in left if parent is not None else not lacks_parent(snapshot):
                jobs.append(job_id)
    return jobs


def _needs_parent(snapshot: Snapshot) -> bool:
    summary = snapshot.summary
    return is_refresh(snapshot) or (
        summary is not None and MergeCounts.name_property() in summary.additional_properties
    )


def commit_expiry(table: Table, intent: Intent, effects: Effects, number: int) -> None:
    """Remove the intent's snapshots that nothing needs, with the number of the change, in a commit that adds one which
    changes nothing: it keeps a process that has read an earlier version from committing anything on top of it."""
    work = effects.work
    assert isinstance(work, ExpireIntent)
    chosen = choose_expired(table, Rules.of(intent, work), len(table.metadata.snapshots))
    # Rule expiry-as-it-is
    ids = {snapshot.snapshot_id for snapshot in chosen.snapshots} & {snapshot.id for snapshot in work.snapshots}
    refs = [name for name in work.refs if name in chosen.refs]
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    requirements = tuple(
        AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id) for name, ref in table.metadata.refs.items()
    )
    counts = ExpireCounts(snapshots=len(ids), refs=len(refs))
    with drop_history(table, but=ids | heads).transaction() as transaction:
        transaction.set_properties({name_count_property(intent.pipeline): str(number)})
        transaction._apply(tuple(_list_updates(table, ids, refs)), requirements)
        summary = make_summary(intent) | note_counts(counts)
        StreamedRewrite(transaction, table.io, lambda: iter(()), summary, ()).commit()


def _list_updates(table: Table, ids: Collection[int], refs: Iterable[str]) -> Iterator[TableUpdate]:
    metadata = table.metadata
    yield from (RemoveSnapshotRefUpdate(ref_name=name) for name in refs)
    for of in sorted({file.snapshot_id for file in metadata.statistics}.intersection(ids)):
        yield RemoveStatisticsUpdate(snapshot_id=of)
    for of in sorted({file.snapshot_id for file in metadata.partition_statistics}.intersection(ids)):
        yield RemovePartitionStatisticsUpdate(snapshot_id=of)
    if ids:
        yield RemoveSnapshotsUpdate(snapshot_ids=sorted(ids))


def find_unused(table: Table, expired: Iterable[ExpiredSnapshot], without: Collection[int] = ()) -> UnusedFiles:
    """Find the files of snapshots that the table lacks, or will lack: those that no other snapshot has. A file that is
    gone was found before; ``without`` are the snapshots that the table still has and that are to leave it."""
    metadata, unused = table.metadata, UnusedFiles()
    staying = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in without]
    there = {snapshot.snapshot_id for snapshot in staying}
    gone = [snapshot for snapshot in expired if snapshot.id not in there]
    if not gone:
        return unused
    live = _read_lists(staying, metadata.current_snapshot_id, table.io)
    for snapshot in gone:
        _add_files(unused, snapshot, live, table.io)
    unused.lists.difference_update(snapshot.manifest_list for snapshot in staying)
    files = (*metadata.statistics, *metadata.partition_statistics)
    unused.statistics.difference_update(file.statistics_path for file in files if file.snapshot_id in there)
    for manifest in live.values():
        if not unused.data:
            break
        for entry in read_live_entries(manifest, table.io):
            # Rule expired-files-of-others
            unused.data.pop(entry.path, None)
    return unused


def _add_files(unused: UnusedFiles, snapshot: ExpiredSnapshot, live: Container[str], io: FileIO) -> None:
    """Add a snapshot's files, those of its ``live`` manifests left out, which other snapshots have too."""
    unused.statistics.update(snapshot.statistics)
    listed = Snapshot(snapshot_id=snapshot.id, manifest_list=snapshot.manifest_list, timestamp_ms=0)
    with suppress(LoadGoneError):
        manifests = listed.manifests(io)
        unused.lists.add(snapshot.manifest_list)
        for manifest in manifests:
            path = manifest.manifest_path
            if path in live or path in unused.manifests:
                continue
            with suppress(LoadGoneError):
                unused.data |= {entry.path: entry.size for entry in read_live_entries(manifest, io)}
                unused.manifests[path] = manifest.manifest_length


def _read_lists(snapshots: Iterable[Snapshot], current: int | None, io: FileIO) -> Mapping[str, ManifestFile]:
    """Return the manifests of the snapshots by their paths, those of the current one first: it has most files."""
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.snapshot_id != current)
    return {manifest.manifest_path: manifest for snapshot in ordered for manifest in snapshot.manifests(io)}


def require_deletable_files(table: Table) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` where the table shares its files with others, and says so by a property."""
    if not allows_deletion(table):
        raise SchemaIncompatibleError(
            f"Iceberg table {'.'.join(table.name())} has {GC}=false: its files may be another table's too.",
            remedy=f"Remove the property {GC} if they are its own, or leave 'maintenance' out.",
        )


def allows_deletion(table: Table) -> bool:
    """Return whether the table's files may be deleted."""
    return table.properties.get(GC, "true").lower() != "false"
