"""Open a catalog for ``lakewriter check``, which looks for a table and changes nothing."""

from lakewriter import aws
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.catalogs import IcebergService


class Connection:
    """A connection to a catalog, opened at once; an error of the catalog is raised as one a user can act on."""

    def __init__(self, service: IcebergService, clients: aws.Clients) -> None:
        self._service = service
        self._clients = clients
        open_catalog(service, clients, "", [])

    @property
    def name(self) -> str:
        """The catalog's name in messages."""
        return str(self._service)

    def find_location(self, action: IcebergAction) -> str | None:
        """Return the table's location, None where there is no table; ``CATALOG_REGION_MISMATCH`` where it is in another
        region than the bucket."""
        table = IcebergTable(action, self._clients, "").load()
        return table.location() if table else None
