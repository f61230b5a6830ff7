"""Credentials for a table's files from its own catalog, where lake.yaml names neither a role nor keys."""

from dataclasses import dataclass

from lakewriter import aws
from lakewriter.aws.vended import Vended, Vendor
from lakewriter.commit.intent import CatalogAction, IcebergAction
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import RestService


@dataclass(frozen=True)
class CatalogVendor:
    """Loads the table, in whose answer the credentials are.

    https://iceberg.apache.org/spec/: ``storage-credentials`` of a load, or else its ``config``.
    """

    service: RestService
    namespace: str
    table: str
    access: Access

    def __call__(self) -> Vended | None:
        """See ``Vendor``."""
        # Here, so that PyIceberg is loaded by those alone who ask a catalog.
        from lakewriter.commit.iceberg.vending import load_credentials

        return load_credentials(self.service, self.namespace, self.table, self.access)

    def __str__(self) -> str:
        return f"catalog {self.service.warehouse!r} at {self.service.uri}"


def find_vendor(action: CatalogAction, access: Access) -> Vendor | None:
    """Whom to ask for credentials to a load's files; None where the destination's own are used."""
    if not isinstance(action, IcebergAction) or not isinstance(action.service, RestService) or access.explicit:
        return None
    return CatalogVendor(action.service, action.namespace, action.table, access)


def make_data_clients(action: CatalogAction, clients: aws.Clients) -> aws.Clients:
    """The clients for a load's files: ``clients`` themselves unless the catalog is to be asked."""
    vendor = find_vendor(action, clients.access)
    return clients.with_vendor(vendor) if vendor else clients


def find_task_vendor(action: CatalogAction, clients: aws.Clients) -> Vendor | None:
    """Whom the tasks ask; None where the catalog gives none, so that they need not resolve its secret."""
    vendor = find_vendor(action, clients.access)
    return vendor if vendor and clients.with_vendor(vendor).vended else None
