"""The SDK as a stranger would use it: no retries, nothing of the product's."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import boto3
import pytest
from botocore.client import Config
from botocore.exceptions import ClientError


def sdk(service: Any, region: str = "us-east-1", **session: Any) -> Any:
    """A client of the service that asks once."""
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    return _session(**session).client(service, region_name=region, config=config)


@lru_cache(maxsize=4)
def _session(**options: Any) -> boto3.Session:
    return boto3.Session(**options)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    """Status and code of the error that the call meets."""
    with pytest.raises(ClientError) as caught:
        call()
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]
