"""Load, create and change one Iceberg table: before a commit is tried again, the table is searched for it."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableUpdate

from lakewriter import aws
from lakewriter.commit.backoff import Backoff
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.iceberg.catalog_errors import check_region, explain_errors, explain_limits
from lakewriter.commit.iceberg.catalog_vendor import make_data_clients
from lakewriter.commit.iceberg.file_io import find_marked, split
from lakewriter.commit.iceberg.format3 import VERSION
from lakewriter.commit.iceberg.iceberg_catalogs import LostRace, UnclearCommit, open_catalog
from lakewriter.commit.iceberg.iceberg_columns import number_fields
from lakewriter.commit.iceberg.manifests import read_live_entries
from lakewriter.commit.iceberg.partition_specs import make_partition_spec
from lakewriter.commit.iceberg.snapshot_presence import read_load
from lakewriter.errors import CommitUnknownError, LakeError, SchemaIncompatibleError
from lakewriter.naming import CONTROL_DIRECTORY
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.table_spec import Partition

COMMIT_SECONDS: Final = 240.0
"""For how long a commit is tried again while other writers come first."""

MANIFEST: Final = ".avro"
"""Ends the names of manifests and of manifest lists."""
FENCE: Final = "lakewriter-fence"
"""The table property that fences attempts off; no pipeline's own property has this name."""

_FOLDERS: Final = (
    TableProperties.WRITE_DATA_PATH,
    TableProperties.WRITE_METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""The properties by which a table's writers write outside its location; the last two are old names of the first."""

SLACK: Final = timedelta(hours=1)
"""How far the clocks of two machines may differ."""

PROPERTIES: Final = {
    "write.parquet.compression-codec": "zstd",
    # Small loads leave many small manifests and many versions of the metadata.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class IcebergTable:
    """The table that an action names, in its catalog."""

    def __init__(
        self,
        action: IcebergAction,
        clients: aws.Clients,
        load: str,
        backoff: Callable[[], Backoff] = lambda: Backoff(COMMIT_SECONDS),
    ) -> None:
        self.action = action
        self._clients = make_data_clients(action, clients)
        self._load = load
        self._backoff = backoff
        self._written: list[str] = []
        self.left: list[str] = []
        """A sentence for each file that could not be deleted."""
        self._catalog = open_catalog(action.service, self._clients, load, self._written)

    @property
    def name(self) -> str:
        """``namespace.table``, for messages."""
        return f"{self.action.namespace}.{self.action.table}"

    def find_bucket(self, table: Table) -> str:
        """Return the bucket that the table's files must be in."""
        return self.action.model_copy(update={"location": table.location()}).find_bucket(self._clients.access.bucket)

    @property
    def _identifier(self) -> tuple[str, str]:
        return self.action.namespace, self.action.table

    def load(self) -> Table | None:
        """Load the table as it is now; None where there is none, ``SCHEMA_INCOMPATIBLE`` where it is not Iceberg."""
        doing = f"load table {self.name}"
        with explain_errors(self.action.service, self._clients, doing), explain_limits(doing):
            try:
                table = self._catalog.load_table(self._identifier)
            except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
                raise SchemaIncompatibleError(
                    f"{self.name} is in the catalog, and it is not an Iceberg table ({error}).",
                    remedy="Load into another schema, or drop the table from the catalog if nobody needs it.",
                ) from error
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
        check_region(table, self.action.service, self._clients.access)
        return table

    def make(self, schema: pa.Schema, partition: Partition = ()) -> Table:
        """Load the table, or create it with these columns where there is none."""
        existing = self.load()
        if existing is not None:
            self.require_version(existing)
            return existing
        self._make_namespace()
        self._written.clear()
        location = self.action.location or None
        columns = number_fields(schema)
        spec = make_partition_spec(columns, partition)
        with explain_errors(self.action.service, self._clients, f"create table {self.name}"):
            try:
                properties = {TableProperties.FORMAT_VERSION: str(self.action.format_version)} | PROPERTIES
                made = self._catalog.create_table(self._identifier, columns, location, spec, properties=properties)
                if made.format_version >= VERSION:
                    # The library's own object lacks what was written for it.
                    made = self._catalog.load_table(self._identifier)
            except TableAlreadyExistsError:
                made = self._catalog.load_table(self._identifier)
                self._delete_unless_committed(self._written, made)
        check_region(made, self.action.service, self._clients.access)
        return made

    def require_version(self, table: Table) -> None:
        """Raise ``SCHEMA_INCOMPATIBLE`` where the table has a lower format version than the file asks for."""
        asked = self.action.format_version
        # Version 2 is what new tables get, not what a file asks for.
        if table.format_version < asked == VERSION:
            raise SchemaIncompatibleError(
                f"Iceberg table {self.name} has format version {table.format_version}, and 'format_version' asks for "
                f"{asked}; a load upgrades no table.",
                remedy=f"Upgrade it, which cannot be taken back (Spark: ALTER TABLE {self.name} SET TBLPROPERTIES "
                f"('format-version'='{asked}')), or leave 'format_version' out.",
            )

    def _make_namespace(self) -> None:
        properties = {}
        if not self.action.service.chooses_location:
            properties = {"location": self.action.location.rpartition("/")[0]}
        with explain_errors(self.action.service, self._clients, f"create namespace {self.action.namespace}"):
            try:
                self._catalog.load_namespace_properties(self.action.namespace)
            except NoSuchNamespaceError:
                try:
                    self._catalog.create_namespace(self.action.namespace, properties)
                except NamespaceAlreadyExistsError:
                    return

    def change(self, table: Table, done: Callable[[Table], bool], commit: Callable[[Table], Any]) -> Table:
        """Call ``commit`` on the table as just read until ``done`` is true; return the table then.

        The files of a try that lost the race are deleted at once. Those of a try without a clear answer are deleted
        when a later commit has made it impossible for that try to succeed. ``COMMIT_UNKNOWN`` when time is up.
        """
        unclear: list[list[str]] = []
        backoff = self._backoff()
        while not done(table):
            self._written.clear()
            verdict = self._try_commit(table, commit)
            # The catalog's answer may be lost, and says nothing of the manifests that are left.
            table = self._reload()
            if verdict is None:
                self._delete_merged(self._written, table)
                continue
            if isinstance(verdict, UnclearCommit):
                # Rule iceberg-unclear-files
                unclear.append(list(self._written))
            else:
                self._delete_unless_committed(self._written, table)
            if isinstance(verdict, LakeError) and not done(table):
                raise verdict
            if not done(table) and not backoff.wait():
                raise CommitUnknownError(
                    f"{self.name}: other writers came first each time, or no answer did, for {COMMIT_SECONDS:.0f} s.",
                    remedy="Run the same job id again.",
                )
        for files in unclear:
            self._delete_unless_committed(files, table)
        return table

    def _try_commit(self, table: Table, commit: Callable[[Table], Any]) -> LostRace | UnclearCommit | LakeError | None:
        doing = f"commit to {self.name}"
        try:
            with explain_errors(self.action.service, self._clients, doing), explain_limits(doing):
                commit(table)
        except (LostRace, UnclearCommit, LakeError) as verdict:
            return verdict
        return None

    def _reload(self) -> Table:
        table = self.load()
        if table is None:
            raise CommitUnknownError(
                f"{self.name} has gone from its catalog during the load.", remedy="Run the same job id again."
            )
        return table

    def _delete_unless_committed(self, written: Sequence[str], table: Table) -> None:
        """Delete the files of one try, unless the table has them after all."""
        if not list_metadata_files(table).isdisjoint(written):
            self._delete_merged(written, table)
            return
        self._delete(written, table)

    def _delete_merged(self, written: Sequence[str], table: Table) -> None:
        """Delete the manifests that a commit wrote and merged into others: the library leaves them."""
        snapshots = [snapshot for snapshot in table.snapshots() if snapshot.manifest_list in written]
        # An undo may have written data files, which manifests list.
        unlisted = {location for location in written if location.endswith(MANIFEST)} - list_metadata_files(table)
        # An append of few files that merges nothing writes one manifest, which its snapshot lists.
        if not snapshots or len(unlisted) < 2:
            return
        with self._note_failed_cleanup("merged manifests"):
            live_paths = {manifest.manifest_path for snapshot in snapshots for manifest in snapshot.manifests(table.io)}
            self._delete(unlisted - live_paths, table)

    def delete_files(self, locations: Iterable[str]) -> None:
        """Delete files that the table does not have, such as those of a change that did not add them."""
        with self._note_failed_cleanup("files that were not added"):
            table = self.load()
            if table is not None:
                self._delete(locations, table)

    def delete_in_steps(self, what: str, list_steps: Callable[[Table], Iterable[Collection[str]]]) -> None:
        """Delete the files in the table's folders that are listed for the table as it is now, those of each step once
        those of the step before it are gone."""
        with self._note_failed_cleanup(what):
            table = self._reload()
            for step in list_steps(table):
                parts = [split(location) for location in step if is_within(table, location)]
                S3Store(self._clients).delete_all(
                    [key for bucket, key in parts if bucket == self._clients.access.bucket]
                )

    def _delete(self, locations: Iterable[str], table: Table) -> None:
        for location in locations:
            with self._note_failed_cleanup(location):
                table.io.delete(location)

    @contextmanager
    def _note_failed_cleanup(self, what: str) -> Iterator[None]:
        """Note a failed clean-up in ``left`` and continue: files that stay take storage and change no result."""
        try:
            with (
                explain_errors(self.action.service, self._clients, f"clear up {what}"),
                explain_limits(f"clear up {what}"),
            ):
                yield
        except LakeError as error:
            self.left.append(f"{what} of {self.name} was not cleared up, and takes room only: {error}")

    def find_strays(self, table: Table, load: str, since: datetime) -> list[str]:
        """List the metadata files that are not the table's and were written since then by a load that begins with
        ``load``."""
        since -= SLACK
        metadata = table.location_provider().new_metadata_location("")
        return list(find_marked(metadata, load, since, list_known_files(table, since), self._clients))

    def clear_up(self, load: str, since: datetime, made: Collection[str] = ()) -> None:
        """Delete the strays of a committed load: no attempt at it can commit any more. ``made`` has what the names of
        files begin with that its commits made, which lie among data files."""
        with self._note_failed_cleanup("what gone processes wrote"):
            table = self.load()
            if table is not None:
                self._delete(self.find_strays(table, load, since), table)
                if made:
                    self._delete(self._find_stray_files(table, load, since - SLACK, made), table)

    def _find_stray_files(self, table: Table, load: str, since: datetime, names: Collection[str]) -> list[str]:
        snapshots = [snapshot for snapshot in table.snapshots() if read_load(snapshot) == load]
        committed = _list_files(table, snapshots, {snapshot.snapshot_id for snapshot in snapshots})
        prefixes = map(table.location_provider().new_data_location, names)
        strays = {one for prefix in prefixes for one in find_marked(prefix, load, since, committed, self._clients)}
        # The manifests of all files may be many and large: they are read only where the load's own do not name all.
        return sorted(strays - _list_files(table, list_snapshots_since(table, since))) if strays else []

    def clear_up_fenced(self, table: Table, load: str, since: datetime) -> Table:
        """Delete the strays of attempts at ``load`` that may still try to commit them; return the table.

        The fence property is committed after the strays are listed and before they are deleted. A stray metadata file
        is based on an earlier version of the table, so after this its attempt can no longer commit it. A manifest is
        not tied to a version and could still be committed: stray manifests belong to a bound attempt, and are deleted
        once the load is committed.
        """
        strays: list[str] = []
        with self._note_failed_cleanup("what gone processes wrote"):
            strays = [stray for stray in self.find_strays(table, load, since) if not stray.endswith(MANIFEST)]
        if not strays:
            return table
        fence = uuid.uuid4().hex

        def is_fenced(seen: Table) -> bool:
            return seen.properties.get(FENCE) == fence

        def put_up(seen: Table) -> None:
            with seen.transaction() as transaction:
                transaction.set_properties({FENCE: fence})

        with self._note_failed_cleanup("what gone processes wrote"):
            table = self.change(table, is_fenced, put_up)
            self._delete(set(strays) - list_known_files(table, since - SLACK), table)
        return table


def drop_history(table: Table, io: FileIO | None = None, but: Collection[int] = ()) -> Table:
    """Return the table with its current snapshot alone, for a transaction that needs no other; ``but`` are the
    snapshots that one needs, of all branches and tags too.

    PyIceberg copies all metadata in a transaction: seconds where there are thousands of snapshots. A commit sends only
    what the transaction adds; the catalog has the other snapshots. The log of metadata files stays: PyIceberg deletes
    the oldest of them where the table's properties say so.
    """
    current, whole = table.current_snapshot(), table.metadata
    needed = {*but, *([current.snapshot_id] if current else [])}
    alone = {
        "snapshots": [snapshot for snapshot in whole.snapshots if snapshot.snapshot_id in needed],
        "snapshot_log": [],
        "refs": whole.refs if but else {MAIN_BRANCH: whole.refs[MAIN_BRANCH]} if current else {},
        "statistics": [file for file in whole.statistics if file.snapshot_id in but],
        "partition_statistics": [file for file in whole.partition_statistics if file.snapshot_id in but],
    }
    metadata = whole.model_copy(update=alone)
    return _TableAlone(table.name(), metadata, table.metadata_location, io or table.io, table.catalog)


class _TableAlone(Table):
    def transaction(self) -> Transaction:
        """See ``Table``."""
        return _Transaction(self)


class _Transaction(Transaction):
    """Makes its metadata once for each change: PyIceberg copies all of them some twenty times in an append."""

    _made: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """See ``Transaction``."""
        base, updates = self._table.metadata, self._updates
        if self._made is None or self._made[0] is not base or self._made[1] is not updates:
            self._made = base, updates, super().table_metadata
        return self._made[2]


def list_folders(table: Table) -> tuple[str, ...]:
    """Return the folders that the table's writers write to, without their scheme; none lies in another one."""
    given = (table.location(), *(table.properties[name] for name in _FOLDERS if name in table.properties))
    folders = sorted({f"{folder.partition('://')[2].rstrip('/')}/" for folder in given}, key=len)
    return tuple(folder for number, folder in enumerate(folders) if not folder.startswith(tuple(folders[:number])))


def is_within(table: Table, location: str) -> bool:
    """Return whether a file lies in one of the table's folders, and not among control objects."""
    path = location.partition("://")[2]
    return path.startswith(list_folders(table)) and CONTROL_DIRECTORY not in path.split("/")


def list_metadata_files(table: Table) -> set[str]:
    """Return the locations of the table's metadata files and of its snapshots' manifest lists."""
    metadata = table.metadata
    return {
        table.metadata_location,
        *(entry.metadata_file for entry in metadata.metadata_log),
        *(snapshot.manifest_list for snapshot in metadata.snapshots),
    }


def list_known_files(table: Table, since: datetime) -> set[str]:
    """Return ``list_metadata_files``, and the manifests of the current snapshot and of those from ``since`` on."""
    snapshots = list_snapshots_since(table, since)
    manifests = (manifest.manifest_path for snapshot in snapshots for manifest in snapshot.manifests(table.io))
    return list_metadata_files(table).union(manifests)


def _list_files(table: Table, snapshots: Sequence[Snapshot], of: Collection[int] | None = None) -> set[str]:
    """List the files in the manifests of snapshots; in those alone that the snapshots ``of`` these ids have written."""
    every = (manifest for snapshot in snapshots for manifest in snapshot.manifests(table.io))
    manifests = {one.manifest_path: one for one in every if of is None or one.added_snapshot_id in of}
    return {entry.path for manifest in manifests.values() for entry in read_live_entries(manifest, table.io)}


def list_snapshots_since(table: Table, since: datetime) -> list[Snapshot]:
    """Return the current snapshot and those from ``since`` on, which alone may have files that were written since."""
    first = since.timestamp() * 1000
    snapshots = [snapshot for snapshot in table.metadata.snapshots if snapshot.timestamp_ms >= first]
    current = table.current_snapshot()
    return snapshots if current is None else [*snapshots, current]
