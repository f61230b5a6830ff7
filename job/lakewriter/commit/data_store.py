"""Open clients and a store for an intent's destination, whose role may not be the one in today's lake.yaml."""

from collections.abc import Callable

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.iceberg.catalog_vendor import find_vendor, make_data_clients
from lakewriter.commit.store import Store
from lakewriter.records.actions import CatalogAction
from lakewriter.spec.access import Access

OpenClients = Callable[[Access], Clients]
"""Opens the clients for an intent's destination."""


def reuse_clients(clients: Clients) -> OpenClients:
    """Return a function that gives ``clients`` for an intent with the same role and region, else clients of its own."""

    def open_clients(access: Access) -> Clients:
        same = (access.role_arn, access.region) == (clients.access.role_arn, clients.access.region)
        # Messages name keys as today's lake.yaml does; the catalog's account is in no intent.
        today = {"key_names": clients.access.key_names, "catalog_account": clients.access.catalog_account}
        named = access.model_copy(update=today)
        return clients if same else Clients(named)

    return open_clients


def open_data_store(store: Store, action: CatalogAction, access: Access, open_clients: OpenClients) -> Store:
    """Return the store of a load's data objects: ``store``, unless the catalog gives the credentials for them, or the
    table has a bucket of its own."""
    if find_vendor(action, access) is None and action.find_bucket(access.bucket) == access.bucket:
        return store
    clients = open_clients(access)
    return S3Store(make_data_clients(action, clients), clients)
