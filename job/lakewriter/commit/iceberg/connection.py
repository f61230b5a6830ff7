"""A catalog as a check sees it: opened, asked for a table, left as it is."""

from lakewriter import aws
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable
from lakewriter.commit.intent import IcebergAction
from lakewriter.spec.catalogs import GlueService, IcebergService


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

    def find_location(self, action: IcebergAction) -> str | None:
        """Where the table lies; None when there is none. ``CATALOG_REGION_MISMATCH`` where that is elsewhere."""
        table = IcebergTable(action, self._clients, "").load()
        return table.location() if table else None
