"""dlt's filesystem destination on the same rows, in an environment of its own: seconds and bytes on one line.

Arguments: the glob of the source files, the server's address, the bucket, and the query that makes the rows.
"""

import os
import sys
import tempfile
import time
import uuid

import boto3
import dlt
import duckdb
from dlt.destinations import filesystem

SIZE = 122_880


def main() -> None:
    """One run of one pipeline."""
    files, server, bucket, query = sys.argv[1:]
    os.environ["DATA_WRITER__COMPRESSION"] = "gzip"
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    name = f"dlt-{uuid.uuid4()}"
    keys = {name: os.environ[name.upper()] for name in ("aws_access_key_id", "aws_secret_access_key")}
    target = filesystem(f"s3://{bucket}/{name}", credentials={**keys, "endpoint_url": server})
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        rows = connection.sql(query.format(files=files)).to_arrow_reader(SIZE)
        pipeline = dlt.pipeline("bench", destination=target, dataset_name="bench", pipelines_dir=folder)
        pipeline.run(rows, table_name="flights", loader_file_format="parquet")
    seconds = time.monotonic() - clock
    pages = boto3.client("s3", endpoint_url=server).get_paginator("list_objects_v2")
    found = [o for page in pages.paginate(Bucket=bucket, Prefix=name) for o in page.get("Contents", [])]
    print(seconds, sum(o["Size"] for o in found if o["Key"].endswith(".parquet")))  # noqa: T201


if __name__ == "__main__":
    main()
