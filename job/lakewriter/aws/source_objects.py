"""List objects of a source's bucket, and read them as they were when they were listed."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import boto3
from botocore import UNSIGNED
from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError
from urllib3.exceptions import HTTPError as TransportError

from lakewriter.aws.answers import explain_settings
from lakewriter.aws.clients import BROKEN_ANSWERS, read_status
from lakewriter.aws.credentials import choose_addressing, make_config, make_default_client, make_default_session
from lakewriter.aws.request_hooks import watch_answers
from lakewriter.aws.required_fields import require_fields

_BLOCK: Final = 4 * 1024 * 1024
_CHANGED: Final = 412
"""The status of a request with ``If-Match`` for an object that has another ETag."""


class ObjectChangedError(OSError):
    """The object is no longer the one that was listed."""


class SourceObject(NamedTuple):
    """An object of a source's bucket, and when it was last written."""

    key: str
    size: int
    etag: str
    modified: datetime


def list_objects(bucket: str, prefix: str) -> tuple[list[SourceObject], list[str]]:
    """List the objects directly under a prefix of a source's bucket in key order, and the folders there."""
    lister = make_default_client("s3").get_paginator("list_objects_v2")
    objects, folders = list[SourceObject](), list[str]()
    # One page at a time: a folder may have so many objects that the answers' own dictionaries fill the memory.
    for page in lister.paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
        objects += map(_make_object, page.get("Contents", []))
        folders += (item["Prefix"] for item in page.get("CommonPrefixes", []))
    return objects, folders


def find_object(bucket: str, key: str) -> SourceObject | None:
    """Return one object of a source's bucket, None if it is not there."""
    answer = make_default_client("s3").list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    return next((_make_object(item) for item in answer.get("Contents", []) if item["Key"] == key), None)


def _make_object(item: dict[str, Any]) -> SourceObject:
    return SourceObject(item["Key"], item["Size"], item["ETag"].strip('"'), item["LastModified"])


def stream_object(
    region: str | None, endpoint: str | None, path: str, etag: str, start: int, end: int
) -> Iterator[bytes]:
    """Yield the bytes ``start`` to ``end`` of the object ``bucket/key`` that has this ETag, in blocks of 4 MiB at most.

    An answer that breaks off is asked for again from where it broke. ``ObjectChangedError`` says that the object has
    another ETag by now.
    """
    bucket, _, key = path.partition("/")
    client, broken = _get_client(region, endpoint), 0
    while start < end:
        try:
            answer = client.get_object(Bucket=bucket, Key=key, IfMatch=f'"{etag}"', Range=f"bytes={start}-{end - 1}")
            with closing(answer["Body"]) as body:
                for block in body.iter_chunks(_BLOCK):
                    start += len(block)
                    yield block
            broken += start < end
        except ClientError as error:
            if read_status(error) == _CHANGED:
                raise ObjectChangedError(f"s3://{path} has changed since the load listed it") from error
            raise
        except (TransportError, BotoCoreError) as error:
            broken += 1
            if broken >= BROKEN_ANSWERS:
                raise error if isinstance(error, BotoCoreError) else ResponseStreamingError(error=error) from error
        if broken >= BROKEN_ANSWERS:
            raise OSError(f"s3://{path} breaks off at byte {start}")


@lru_cache(maxsize=32)
def _get_client(region: str | None, endpoint: str | None) -> Any:
    """Return this process's client of a source; it reads unsigned where the default chain has no credentials."""
    unsigned = {} if make_default_session().get_credentials() is not None else {"signature_version": UNSIGNED}
    config = make_config(s3=choose_addressing(endpoint), **unsigned)
    with explain_settings():
        client = boto3.client("s3", region_name=region, endpoint_url=endpoint, config=config)
    require_fields(client)
    watch_answers(client, set())
    return client
