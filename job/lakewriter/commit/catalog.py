"""Define what a load asks of its catalog before it writes and when it commits, and open the catalog it names."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import pyarrow as pa

from lakewriter import aws
from lakewriter.commit.change_count import CountedChanges, require_counted
from lakewriter.commit.glue import GlueTables
from lakewriter.commit.glue_target import GlueTargetTable
from lakewriter.commit.mismatch import Comparison
from lakewriter.records.actions import CatalogAction, FilesAction, GlueAction, IcebergAction
from lakewriter.records.changes import Intent, require_able
from lakewriter.records.facets import UndoneLoad
from lakewriter.records.state import TableState
from lakewriter.report import Counts, TableHealth
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.table_spec import Mode, Partition

if TYPE_CHECKING:
    from lakewriter.commit.iceberg.append import IcebergTables


class CatalogTable(Protocol):
    """The table as a load finds it in its catalog; only ``prepare`` changes anything."""

    grows_decimals: ClassVar[bool]
    """Whether readers take the table's older decimals as ones of a higher precision."""

    def find_location(self) -> str | None:
        """Return the ``s3://`` URI of the table in the catalog; None where the pipeline's layout decides."""

    def explain_occupied(self) -> str | None:
        """Describe the catalog's evidence that others have written to the table; None where only its path can show
        it."""

    def list_writers(self) -> tuple[str, ...]:
        """Return the pipelines that have a load count in the table, since they have committed to it; none without
        counts."""

    def require_counted(self, began: TableState, latest: Callable[[], TableState]) -> None:
        """Raise ``STATE_LOST`` where the table counts changes of the pipeline that the state ``began`` does not know;
        ``latest`` reads the state again."""

    @property
    def left(self) -> tuple[str, ...]:
        """Return the files of earlier attempts that ``prepare`` could not delete: a sentence for each."""

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """Return the types that columns of ``wanted`` must have to fit the table, only those that differ.

        Both are by name in lower case.
        """

    def read_columns(self) -> Mapping[str, pa.DataType] | None:
        """Return the types of all of the table's columns by name in lower case; None without a table or a catalog."""

    def rename(self, renames: Mapping[str, str]) -> "CatalogTable":
        """Return the table as it is once the load has renamed columns: the keys are the names before, the values those
        after. The other methods raise ``SCHEMA_INCOMPATIBLE`` where it has both columns of a pair, or neither."""

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """List the changes that the load would make in the catalog, a phrase for each; ``SCHEMA_INCOMPATIBLE`` where it
        cannot."""

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[CatalogAction, pa.Schema]:
        """Create or evolve the table if its catalog needs that before files are encoded.

        Returns the action to commit and the schema to encode files with. ``state`` is the table's state with this
        attempt registered; ``latest`` reads it again. ``partition`` are the fields of an Iceberg table.
        """


class CatalogWriter(Protocol):
    """Publishes loads in a catalog; every call may be repeated for one intent, by several processes at once."""

    @property
    def version(self) -> str | None:
        """The version of the table that the load made, once it is read back; None in a catalog without versions."""

    @property
    def counts(self) -> Counts | None:
        """Return what became of the rows of a change that counts them, once it is read back; None for others."""

    def note_deleted_keys(self, intent: Intent) -> tuple[str, bytes] | None:
        """Return key and body of the control object with the keys that a merge deletes; None where it notes none."""

    def publish(self, intent: Intent, number: int) -> None:
        """Make the intent's files visible to readers, as load ``number`` of its pipeline in this table; ``GivenUp``
        where ``decide`` has used the number up."""

    def read_back(self, intent: Intent) -> TableHealth | None:
        """Compare the catalog with the intent after publishing; ``COMMIT_UNKNOWN`` where they differ."""

    def decide(self, intent: Intent, number: int) -> bool | None:
        """Return whether readers see change ``number``, which is given up; None where that cannot be known.

        After False no process can publish it any more: its number is used up, or its table is gone.
        """

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """After publishing, delete catalog files that other processes wrote for the intent, if those processes are
        ``gone``.

        Returns a sentence for each file that could not be deleted, now or during ``publish``; raises nothing.
        """

    def explain_absence(self, intent: Intent) -> str | None:
        """Say why readers no longer see a committed load; None where they see it, or the catalog cannot show it."""

    def compare(self, intent: Intent) -> Comparison:
        """List everything that keeps a query from seeing a committed load as it was written."""


class NoTable:
    """The ``CatalogTable`` of files without a catalog: readers list the bucket."""

    grows_decimals: ClassVar[bool] = False

    def find_location(self) -> str | None:
        """See ``CatalogTable``."""
        return None

    def explain_occupied(self) -> str | None:
        """See ``CatalogTable``."""
        return None

    def list_writers(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return ()

    def require_counted(self, began: TableState, latest: Callable[[], TableState]) -> None:
        """Do nothing: no catalog counts changes."""

    @property
    def left(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return ()

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """See ``CatalogTable``: files of one table may have different types."""
        return {}

    def read_columns(self) -> Mapping[str, pa.DataType] | None:
        """See ``CatalogTable``."""
        return None

    def rename(self, renames: Mapping[str, str]) -> "NoTable":
        """See ``CatalogTable``: files have their columns by name, and ``renamed_from`` is refused for them."""
        assert not renames
        return self

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """See ``CatalogTable``."""
        return []

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[CatalogAction, pa.Schema]:
        """See ``CatalogTable``."""
        return FilesAction(), schema


class FilesOnly:
    """The ``CatalogWriter`` of files without a catalog: readers list the bucket."""

    version: ClassVar[None] = None
    counts: ClassVar[None] = None

    def note_deleted_keys(self, intent: Intent) -> None:
        """Return None: rows are merged in Iceberg tables alone."""

    def publish(self, intent: Intent, number: int) -> None:
        """Do nothing: a completed object is visible, and a deleted one is not."""
        require_able(intent.effects, (NoneType, UndoneLoad))

    def read_back(self, intent: Intent) -> TableHealth | None:
        """Do nothing: S3 has confirmed each object already."""
        return None

    def decide(self, intent: Intent, number: int) -> bool:
        """Return True: a completed object is visible."""
        return True

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """Do nothing: there are no catalog files."""
        return ()

    def explain_absence(self, intent: Intent) -> str | None:
        """Return None: objects may be deleted on purpose, and ``verify`` reports it."""
        return None

    def compare(self, intent: Intent) -> Comparison:
        """Return no mismatch: there is nothing but the objects."""
        return Comparison()


class Catalog(ABC):
    """A kind of catalog, opened for the table that an action names."""

    @abstractmethod
    def open_table(
        self, clients: aws.Clients, load: str, maintenance: Maintenance | None, mode: Mode, keys: tuple[str, ...] = ()
    ) -> CatalogTable:
        """Open the table as a load of this mode finds it. ``keys`` are the columns that have a value in every row."""

    @abstractmethod
    def open_writer(self, clients: aws.Clients, load: str, is_pending: Callable[[], bool]) -> CatalogWriter:
        """Open the table to publish a load in it."""

    def find_changes(self, clients: aws.Clients, pipeline: str) -> CountedChanges:
        """Return the changes of the pipeline that the catalog counts."""
        return CountedChanges()

    def require_known(
        self, clients: aws.Clients, table_id: str, pipeline: str, began: TableState, latest: Callable[[], TableState]
    ) -> None:
        """Raise ``STATE_LOST`` where the catalog counts changes of the pipeline that the state ``began`` does not know;
        ``latest`` reads the state again. A change that is prepared in no ``CatalogTable`` asks this."""
        number = self.find_changes(clients, pipeline).number
        require_counted(f"table {table_id}", pipeline, number, began, latest)

    def has_partition(self, action: CatalogAction, clients: aws.Clients) -> bool:
        """Return whether the catalog has the partition of another load; True where it cannot show that."""
        return True

    def list_partitions(self, clients: aws.Clients) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield values and location of every partition that the catalog has of the table."""
        yield from ()


class Files(Catalog):
    """No catalog: readers list the bucket."""

    def __init__(self, _: FilesAction) -> None:
        """Take the action, which names nothing."""

    def open_table(
        self, clients: aws.Clients, load: str, maintenance: Maintenance | None, mode: Mode, keys: tuple[str, ...] = ()
    ) -> CatalogTable:
        """See ``Catalog``."""
        return NoTable()

    def open_writer(self, clients: aws.Clients, load: str, is_pending: Callable[[], bool]) -> CatalogWriter:
        """See ``Catalog``."""
        return FilesOnly()


class Glue(Catalog):
    """Hive-style tables in Glue."""

    def __init__(self, action: GlueAction) -> None:
        self._action = action

    def open_table(
        self, clients: aws.Clients, load: str, maintenance: Maintenance | None, mode: Mode, keys: tuple[str, ...] = ()
    ) -> CatalogTable:
        """See ``Catalog``."""
        return GlueTargetTable(self._action, clients, load.split("/")[0])

    def open_writer(self, clients: aws.Clients, load: str, is_pending: Callable[[], bool]) -> CatalogWriter:
        """See ``Catalog``."""
        return GlueTables(clients, is_pending)

    def find_changes(self, clients: aws.Clients, pipeline: str) -> CountedChanges:
        """See ``Catalog``: tables that are refreshed count their changes."""
        if self._action.root is None:
            return CountedChanges()
        return GlueTables(clients).find_last_switch(self._action, pipeline)

    def has_partition(self, action: CatalogAction, clients: aws.Clients) -> bool:
        """See ``Catalog``."""
        return not isinstance(action, GlueAction) or GlueTables(clients).find_partition_location(action) is not None

    def list_partitions(self, clients: aws.Clients) -> Iterator[tuple[tuple[str, ...], str]]:
        """See ``Catalog``."""
        yield from GlueTables(clients).list_partitions(self._action)


class Iceberg(Catalog):
    """Iceberg tables, in Glue or a REST catalog. Importing PyIceberg takes a second: only their loads wait for it."""

    def __init__(self, action: IcebergAction) -> None:
        self._action = action

    def open_table(
        self, clients: aws.Clients, load: str, maintenance: Maintenance | None, mode: Mode, keys: tuple[str, ...] = ()
    ) -> CatalogTable:
        """See ``Catalog``."""
        from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable

        return IcebergTargetTable(self._action, clients, load, maintenance, mode, keys)

    def open_writer(
        self, clients: aws.Clients, load: str, is_pending: Callable[[], bool] = lambda: True
    ) -> "IcebergTables":
        """See ``Catalog``."""
        from lakewriter.commit.iceberg.append import IcebergTables

        return IcebergTables(self._action, clients, load)

    def find_changes(self, clients: aws.Clients, pipeline: str) -> CountedChanges:
        """See ``Catalog``: snapshots name their loads."""
        return self.open_writer(clients, f"{pipeline}/rebuild/rebuild").find_changes(pipeline)


CATALOGS: Final[Mapping[str, Callable[[Any], Catalog]]] = {"none": Files, "glue": Glue, "iceberg": Iceberg}
"""The kinds of catalogs, by the ``kind`` of their actions."""


def find_catalog(action: CatalogAction) -> Catalog:
    """Return the catalog that the action is for."""
    return CATALOGS[action.kind](action)


def open_iceberg_writer(intent: Intent, clients: aws.Clients) -> "IcebergTables":
    """Open the Iceberg table that the intent names."""
    assert isinstance(intent.catalog, IcebergAction)
    return Iceberg(intent.catalog).open_writer(clients, intent.load)


def open_catalog_writer(
    intent: Intent, clients: aws.Clients, is_pending: Callable[[], bool] = lambda: True
) -> CatalogWriter:
    """Open the catalog that the intent names; ``is_pending`` asks whether the intent is still the table's pending one,
    for a catalog that has no conditional call."""
    return find_catalog(intent.catalog).open_writer(clients, intent.load, is_pending)
