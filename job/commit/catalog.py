"""What a commit asks of a catalog, whichever it is; and the one that is none."""

from typing import Protocol

from job import aws
from job.commit.glue import GlueTables
from job.commit.intent import FilesAction, Intent


class CatalogWriter(Protocol):
    """Both calls may be made any number of times for one intent, by several processes at once."""

    def publish(self, intent: Intent) -> None:
        """Make the intent's files known to readers."""

    def read_back(self, intent: Intent) -> None:
        """Compare what the catalog says with the intent; ``COMMIT_UNKNOWN`` when they differ."""


class FilesOnly:
    """Readers list the bucket."""

    def publish(self, intent: Intent) -> None:
        """Complete objects are published."""

    def read_back(self, intent: Intent) -> None:
        """The store has answered for each object already."""


def catalog_writer(intent: Intent, clients: aws.Clients) -> CatalogWriter:
    """The catalog that the intent names."""
    return FilesOnly() if isinstance(intent.catalog, FilesAction) else GlueTables(clients)
