"""What a load asks of a catalog, whichever it is, before it writes and when it commits; and the one that is none."""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from job import aws
from job.commit.glue import GlueTables
from job.commit.glue_before import GlueBefore
from job.commit.iceberg.append import IcebergTables
from job.commit.iceberg.evolve import IcebergBefore
from job.commit.intent import CatalogAction, FilesAction, GlueAction, Intent


class CatalogTable(Protocol):
    """The table as a load finds it; nothing is changed but by ``ready``."""

    def location(self) -> str | None:
        """The ``s3://`` URI that the catalog keeps the table at; None where the layout decides."""

    def types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """What columns have to become to fit, those of ``wanted`` that differ; both by name in lower case."""

    def changes(self, schema: pa.Schema) -> list[str]:
        """What the load would change, in words; ``SCHEMA_INCOMPATIBLE`` where it could not."""

    def ready(self, schema: pa.Schema, committed: int) -> tuple[CatalogAction, pa.Schema]:
        """Do what has to be done before a file is encoded: the action to commit, and the schema to encode by.

        ``committed`` is how many loads the table's state counts.
        """


class CatalogWriter(Protocol):
    """Both calls may be made any number of times for one intent, by several processes at once."""

    def publish(self, intent: Intent, number: int) -> None:
        """Make the intent's files known to readers, as load ``number`` of its pipeline in this table."""

    def read_back(self, intent: Intent) -> None:
        """Compare what the catalog says with the intent; ``COMMIT_UNKNOWN`` when they differ."""


class NoTable:
    """Readers list the bucket."""

    def location(self) -> str | None:
        """See ``CatalogTable``."""
        return None

    def types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """Files are what they are."""
        return {}

    def changes(self, schema: pa.Schema) -> list[str]:
        """There is nothing to change."""
        return []

    def ready(self, schema: pa.Schema, committed: int) -> tuple[CatalogAction, pa.Schema]:
        """There is nothing to do."""
        return FilesAction(), schema


class FilesOnly:
    """Readers list the bucket."""

    def publish(self, intent: Intent, number: int) -> None:
        """Complete objects are published."""

    def read_back(self, intent: Intent) -> None:
        """The store has answered for each object already."""


def catalog_table(action: CatalogAction, clients: aws.Clients, pipeline: str) -> CatalogTable:
    """The table that the action names."""
    if isinstance(action, FilesAction):
        return NoTable()
    return GlueBefore(action, clients) if isinstance(action, GlueAction) else IcebergBefore(action, clients, pipeline)


def catalog_writer(intent: Intent, clients: aws.Clients) -> CatalogWriter:
    """The catalog that the intent names."""
    if isinstance(intent.catalog, FilesAction):
        return FilesOnly()
    return GlueTables(clients) if isinstance(intent.catalog, GlueAction) else IcebergTables(clients)
