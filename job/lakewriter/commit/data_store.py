"""What reaches an intent's destination, which may name another role than today's lake.yaml."""

from collections.abc import Callable

from lakewriter.aws import Clients
from lakewriter.commit.iceberg.catalog_vendor import find_vendor, make_data_clients
from lakewriter.commit.intent import CatalogAction
from lakewriter.commit.s3_store import S3Store
from lakewriter.commit.store import Store
from lakewriter.spec.access import Access

OpenClients = Callable[[Access], Clients]
"""The clients for an intent's destination."""


def reuse_clients(clients: Clients) -> OpenClients:
    """Today's clients where the intent was bound with the same role, else clients for the intent's own."""

    def open_clients(access: Access) -> Clients:
        same = (access.role_arn, access.region) == (clients.access.role_arn, clients.access.region)
        # What messages call the keys is what today's lake.yaml does.
        named = access.model_copy(update={"key_names": clients.access.key_names})
        return clients if same else Clients(named)

    return open_clients


def open_data_store(store: Store, action: CatalogAction, access: Access, open_clients: OpenClients) -> Store:
    """The store for a load's objects: ``own``, unless the catalog is to be asked for credentials to them."""
    if find_vendor(action, access) is None:
        return store
    clients = open_clients(access)
    return S3Store(make_data_clients(action, clients), clients)
