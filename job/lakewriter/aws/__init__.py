"""Make AWS clients, choose their credentials, explain their errors: the only package that imports the AWS SDK."""

from botocore.exceptions import BotoCoreError, ClientError

from lakewriter.aws.answers import LEAST_FREE, describe_full_disk, explain, make_room_remedy
from lakewriter.aws.clients import (
    Clients,
    ask,
    fill_region,
    find_account,
    find_bucket_region,
    get_shared_clients,
    read_answer,
    read_default_keys,
    read_error_code,
    read_object,
    read_status,
)
from lakewriter.aws.credentials import make_default_client, require_trusted, resolve, resolve_all

__all__ = [
    "LEAST_FREE",
    "BotoCoreError",
    "ClientError",
    "Clients",
    "ask",
    "describe_full_disk",
    "explain",
    "fill_region",
    "find_account",
    "find_bucket_region",
    "get_shared_clients",
    "make_default_client",
    "make_room_remedy",
    "read_answer",
    "read_default_keys",
    "read_error_code",
    "read_object",
    "read_status",
    "require_trusted",
    "resolve",
    "resolve_all",
]
