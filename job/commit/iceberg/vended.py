"""Credentials for a table's files from its own catalog, where lake.yaml names neither a role nor keys."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from job import aws
from job.access import Access
from job.aws_vended import Vended, Vendor
from job.catalogs import RestService
from job.commit.iceberg.catalogs import explained, open_catalog
from job.commit.intent import CatalogAction, IcebergAction

_KEYS: Final = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
_EXPIRES: Final = "s3.session-token-expires-at-ms"


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
        clients = aws.shared_clients(self.access)
        catalog = open_catalog(self.service, clients, "", [])
        with explained(self.service, clients, f"load credentials of table {self.namespace}.{self.table}"):
            try:
                return _vended(catalog.load_table((self.namespace, self.table)))
            except NoSuchTableError:
                return None

    def __str__(self) -> str:
        return f"catalog {self.service.warehouse!r} at {self.service.uri}"


def vendor_of(action: CatalogAction, access: Access) -> Vendor | None:
    """Whom to ask for credentials to a load's files; None where the destination's own are used."""
    if not isinstance(action, IcebergAction) or not isinstance(action.service, RestService) or access.explicit:
        return None
    return CatalogVendor(action.service, action.namespace, action.table, access)


def data_clients(action: CatalogAction, clients: aws.Clients) -> aws.Clients:
    """The clients for a load's files: ``clients`` themselves unless the catalog is to be asked."""
    vendor = vendor_of(action, clients.access)
    return clients.by(vendor) if vendor else clients


def vendor_of_tasks(action: CatalogAction, clients: aws.Clients) -> Vendor | None:
    """Whom the tasks ask; None where the catalog gives none, so that they need not resolve its secret."""
    vendor = vendor_of(action, clients.access)
    return vendor if vendor and clients.by(vendor).vended else None


def _vended(table: Table) -> Vended | None:
    # What anybody may set as the table's own property is no credential.
    given = {name: value for name, value in table.io.properties.items() if name not in table.properties}
    if not all(given.get(name) for name in _KEYS):
        return None
    access_key, secret_key, token = (str(given[name]) for name in _KEYS)
    at = given.get(_EXPIRES)
    return Vended(access_key, secret_key, token, datetime.fromtimestamp(int(at) / 1000, UTC) if at else None)
