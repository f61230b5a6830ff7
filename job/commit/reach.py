"""The clients for an intent's destination, which may name another role than today's lake.yaml."""

from job.aws import Clients
from job.commit.recover import Reach
from job.spec import Access


def reach_from(clients: Clients) -> Reach:
    """Today's clients where the intent was bound with the same role, else clients for the intent's own."""

    def reach(access: Access) -> Clients:
        same = (access.role_arn, access.region) == (clients.access.role_arn, clients.access.region)
        return clients if same else Clients(access)

    return reach
