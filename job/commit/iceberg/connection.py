"""A catalog as a check sees it: opened, asked for a table, left as it is."""

from job import aws
from job.catalogs import GlueService, IcebergService
from job.commit.iceberg.catalogs import open_catalog
from job.commit.iceberg.tables import IcebergTable
from job.commit.intent import IcebergAction


class Connection:
    """Opened at once; what refuses it is raised as an error a user can act on."""

    def __init__(self, service: IcebergService, clients: aws.Clients) -> None:
        self._service = service
        self._clients = clients
        open_catalog(service, clients, "", [])

    @property
    def told(self) -> str:
        """The catalog, for people."""
        if isinstance(self._service, GlueService):
            return "the Glue Data Catalog"
        return f"catalog {self._service.warehouse!r} at {self._service.uri}"

    def location(self, action: IcebergAction) -> str | None:
        """Where the table lies; None when there is none. ``CATALOG_REGION_MISMATCH`` where that is elsewhere."""
        table = IcebergTable(action, self._clients, "").load()
        return table.location() if table else None
