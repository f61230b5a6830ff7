"""List the objects of a source with what tells one state of an object apart from another."""

from datetime import datetime
from typing import NamedTuple

from lakewriter.aws.credentials import make_default_client


class DatedObject(NamedTuple):
    """One object of a source's bucket, and when it was last written."""

    key: str
    size: int
    etag: str
    modified: datetime


def list_dated_objects(bucket: str, prefix: str) -> tuple[list[DatedObject], list[str]]:
    """List the objects directly under a prefix of a source's bucket in key order, and the folders there."""
    pages = (
        make_default_client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    )
    objects: list[DatedObject] = []
    folders: list[str] = []
    for page in pages:
        objects += [
            DatedObject(item["Key"], item["Size"], item["ETag"].strip('"'), item["LastModified"])
            for item in page.get("Contents", [])
        ]
        folders += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
    return objects, folders


def find_dated_object(bucket: str, key: str) -> DatedObject | None:
    """Return one object of a source's bucket, None where it is not there."""
    answer = make_default_client("s3").list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    for item in answer.get("Contents", []):
        if item["Key"] == key:
            return DatedObject(key, item["Size"], item["ETag"].strip('"'), item["LastModified"])
    return None
