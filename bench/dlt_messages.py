"""What dlt makes of Airbyte messages, in an environment of its own: seconds, bytes and MiB on one line.

Arguments: the file of messages, the format as dlt calls it, the server's address, and the bucket.
"""

import json
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import dlt
from dlt.destinations import filesystem


def main() -> None:
    """One run of one pipeline; nested values stay in their columns."""
    source, form, server, bucket = sys.argv[1:]
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    if form == "parquet":
        os.environ["DATA_WRITER__COMPRESSION"] = "gzip"
    name = f"dlt-{uuid.uuid4()}"
    keys = {name: os.environ[name.upper()] for name in ("aws_access_key_id", "aws_secret_access_key")}
    target = filesystem(f"s3://{bucket}/{name}", credentials={**keys, "endpoint_url": server})

    @dlt.resource(name="users", max_table_nesting=0)
    def users() -> Iterator[Any]:
        with open(source, "rb") as file:  # noqa: PTH123
            for line in file:
                message = json.loads(line)
                if message["type"] == "RECORD":
                    yield message["record"]["data"]

    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        pipeline = dlt.pipeline("bench", destination=target, dataset_name="bench", pipelines_dir=folder)
        pipeline.run(users(), loader_file_format=form)
    seconds = time.monotonic() - clock
    pages = boto3.client("s3", endpoint_url=server).get_paginator("list_objects_v2")
    found = [o for page in pages.paginate(Bucket=bucket, Prefix=name) for o in page.get("Contents", [])]
    # Some of dlt's work is done by processes of its own.
    held = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(seconds, sum(o["Size"] for o in found if "/users/" in o["Key"]), held / 1024)  # noqa: T201


if __name__ == "__main__":
    main()
