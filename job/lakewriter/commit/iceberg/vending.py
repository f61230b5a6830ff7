"""Load a table's credentials: read them from the catalog's answer to a load of the table."""

from datetime import UTC, datetime
from typing import Final

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from lakewriter import aws
from lakewriter.aws.vended import Vended
from lakewriter.commit.iceberg.catalog_errors import explain_errors
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService

_KEYS: Final = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
_EXPIRES: Final = "s3.session-token-expires-at-ms"


def load_credentials(service: AnyRestService, namespace: str, name: str, access: Access) -> Vended | None:
    """Return the credentials for the table's files; None where there is no table, or the catalog gives none."""
    clients = aws.get_shared_clients(access)
    # The driver has opened the catalog before there are tasks that ask for credentials.
    clients.reached.add(service.uri)
    catalog = open_catalog(service, clients, "", [])
    with explain_errors(service, clients, f"load credentials of table {namespace}.{name}"):
        try:
            return _read_credentials(catalog.load_table((namespace, name)))
        except NoSuchTableError:
            return None


def _read_credentials(table: Table) -> Vended | None:
    # The table's own properties, which any writer may set, are no credentials.
    given = {name: value for name, value in table.io.properties.items() if name not in table.properties}
    if not all(given.get(name) for name in _KEYS):
        return None
    access_key, secret_key, token = (str(given[name]) for name in _KEYS)
    at = given.get(_EXPIRES)
    return Vended(access_key, secret_key, token, datetime.fromtimestamp(int(at) / 1000, UTC) if at else None)
