"""Get credentials for a table's files from its catalog, where lake.yaml names neither a role nor keys."""

from dataclasses import dataclass

from lakewriter import aws
from lakewriter.aws.vended import Vended, Vendor
from lakewriter.records.actions import CatalogAction, IcebergAction
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService, RestService


@dataclass(frozen=True)
class CatalogVendor:
    """Loads the table: the catalog's answer contains the credentials.

    They are the answer's ``storage-credentials``, or else in its ``config``; see https://iceberg.apache.org/spec/.
    """

    service: AnyRestService
    namespace: str
    table: str
    access: Access

    def __call__(self) -> Vended | None:
        """See ``Vendor``."""
        # Imported here, so that only loads that ask a catalog import PyIceberg.
        from lakewriter.commit.iceberg.vending import load_credentials

        return load_credentials(self.service, self.namespace, self.table, self.access)

    def __str__(self) -> str:
        return str(self.service)


def find_vendor(action: CatalogAction, access: Access) -> Vendor | None:
    """Return what gives the credentials for a load's files; None where the destination's own are used."""
    if not isinstance(action, IcebergAction) or access.explicit:
        return None
    service = action.service
    if not isinstance(service, RestService) or not service.vends_credentials:
        return None
    return CatalogVendor(service, action.namespace, action.table, access)


def make_data_clients(action: CatalogAction, clients: aws.Clients) -> aws.Clients:
    """Return the clients for a load's files: ``clients`` themselves, unless the catalog gives the credentials, or the
    table has a bucket of its own."""
    vendor = find_vendor(action, clients.access)
    data_clients = clients.with_vendor(vendor) if vendor else clients
    return data_clients.at(action.find_bucket(clients.access.bucket), action.abilities)


def find_task_vendor(action: CatalogAction, clients: aws.Clients) -> Vendor | None:
    """Return what gives the tasks' credentials; None where the catalog gives none, so that no task resolves its
    secret."""
    vendor = find_vendor(action, clients.access)
    return vendor if vendor and clients.with_vendor(vendor).is_vended else None
