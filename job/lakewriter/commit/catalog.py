"""What a load asks of a catalog, whichever it is, before it writes and when it commits; and the one that is none."""

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from lakewriter import aws
from lakewriter.commit.glue import GlueTables, GlueTargetTable
from lakewriter.commit.intent import CatalogAction, FilesAction, GlueAction, Intent
from lakewriter.commit.mismatch import Comparison
from lakewriter.commit.state import TableState
from lakewriter.report import TableHealth
from lakewriter.spec.specification import Partition


class CatalogTable(Protocol):
    """The table as a load finds it; nothing is changed but by ``ready``."""

    def find_location(self) -> str | None:
        """The ``s3://`` URI that the catalog keeps the table at; None where the layout decides."""

    def explain_occupied(self) -> str | None:
        """What tells that others have written to the table, in words; None where only its path can."""

    @property
    def left(self) -> tuple[str, ...]:
        """What of earlier attempts ``ready`` could not clear up, in words."""

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """What columns have to become to fit, those of ``wanted`` that differ; both by name in lower case."""

    def read_columns(self) -> Mapping[str, pa.DataType] | None:
        """All of the table's columns by name in lower case; None where there is no table, or nothing tells."""

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """What the load would change, in words; ``SCHEMA_INCOMPATIBLE`` where it could not."""

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[CatalogAction, pa.Schema]:
        """Do what has to be done before a file is encoded: the action to commit, and the schema to encode by.

        ``state`` is the table's own, with this attempt registered; ``latest`` reads it anew. ``partition`` has none but
        Iceberg's fields.
        """


class CatalogWriter(Protocol):
    """Every call may be made any number of times for one intent, by several processes at once."""

    def publish(self, intent: Intent, number: int) -> None:
        """Make the intent's files known to readers, as load ``number`` of its pipeline in this table."""

    def read_back(self, intent: Intent) -> TableHealth | None:
        """Compare what the catalog says with the intent; ``COMMIT_UNKNOWN`` when they differ."""

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """Once the intent is published, delete what processes that are ``gone`` left in the catalog's own files.

        What could not be cleared up, now or while the intent was published, is told in words, never raised.
        """

    def explain_absence(self, intent: Intent) -> str | None:
        """Why readers no longer see the load of a committed intent, in words; None where they do, or nothing tells."""

    def compare(self, intent: Intent) -> Comparison:
        """All that keeps a query from seeing a committed load as it was written."""


class NoTable:
    """Readers list the bucket."""

    def find_location(self) -> str | None:
        """See ``CatalogTable``."""
        return None

    def explain_occupied(self) -> str | None:
        """See ``CatalogTable``."""
        return None

    @property
    def left(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return ()

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """Files are what they are."""
        return {}

    def read_columns(self) -> Mapping[str, pa.DataType] | None:
        """Nothing tells."""
        return None

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """There is nothing to change."""
        return []

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[CatalogAction, pa.Schema]:
        """There is nothing to do."""
        return FilesAction(), schema


class FilesOnly:
    """Readers list the bucket."""

    def publish(self, intent: Intent, number: int) -> None:
        """Complete objects are published."""

    def read_back(self, intent: Intent) -> TableHealth | None:
        """The store has answered for each object already."""
        return None

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """There is nothing of its own."""
        return ()

    def explain_absence(self, intent: Intent) -> str | None:
        """Whoever deletes objects of a load may be meant to: ``verify`` tells."""
        return None

    def compare(self, intent: Intent) -> Comparison:
        """There is nothing but the objects."""
        return Comparison()


def open_catalog_table(action: CatalogAction, clients: aws.Clients, load: str) -> CatalogTable:
    """The table that the action names; ``load`` is ``{pipeline}/{job_id}/{attempt}``."""
    if isinstance(action, FilesAction):
        return NoTable()
    if isinstance(action, GlueAction):
        return GlueTargetTable(action, clients)
    # PyIceberg is loaded where there is an Iceberg table: it takes a second, which every other load would wait for.
    from lakewriter.commit.iceberg.evolve import IcebergTargetTable

    return IcebergTargetTable(action, clients, load)


def open_catalog_writer(intent: Intent, clients: aws.Clients) -> CatalogWriter:
    """The catalog that the intent names."""
    action = intent.catalog
    if isinstance(action, FilesAction):
        return FilesOnly()
    if isinstance(action, GlueAction):
        return GlueTables(clients)
    from lakewriter.commit.iceberg.append import IcebergTables

    return IcebergTables(action, clients, intent.load)
