"""Sessions, roles, endpoints and clients: the only door to the AWS SDK."""

from botocore.exceptions import BotoCoreError, ClientError

from lakewriter.aws.answers import explain
from lakewriter.aws.clients import (
    Clients,
    bucket_region,
    code_of,
    default_keys,
    list_objects,
    located,
    read_object,
    shared_clients,
    status_of,
)
from lakewriter.aws.credentials import resolve

__all__ = [
    "BotoCoreError",
    "ClientError",
    "Clients",
    "bucket_region",
    "code_of",
    "default_keys",
    "explain",
    "list_objects",
    "located",
    "read_object",
    "resolve",
    "shared_clients",
    "status_of",
]
