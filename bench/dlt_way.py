"""dlt's filesystem destination on the same rows, in an environment of its own; see ``bench.turns`` for how it is run.

Arguments: the query that makes the rows, the server's address, the bucket, a codec, blank for dlt's own choice, and a
level that dlt does not take.
"""

import os
import sys
import tempfile
import uuid
from functools import partial

import dlt
import duckdb
from dlt.destinations import filesystem

from bench.turns import serve

SIZE = 122_880


def write(query: str, server: str, bucket: str, prefix: str) -> None:
    """One run of one pipeline."""
    keys = {name: os.environ[name.upper()] for name in ("aws_access_key_id", "aws_secret_access_key")}
    target = filesystem(f"s3://{bucket}/{prefix}", credentials={**keys, "endpoint_url": server})
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        rows = connection.sql(query).to_arrow_reader(SIZE)
        pipeline = dlt.pipeline(f"bench-{uuid.uuid4()}", destination=target, dataset_name="bench", pipelines_dir=folder)
        pipeline.run(rows, table_name="flights", loader_file_format="parquet")


def main() -> None:
    """Take turns until standard input ends."""
    query, server, bucket, codec, _ = sys.argv[1:]
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    if codec:
        os.environ["DATA_WRITER__COMPRESSION"] = codec
        workers = str(len(os.sched_getaffinity(0)))
        os.environ.update(EXTRACT__WORKERS=workers, NORMALIZE__WORKERS=workers, LOAD__WORKERS=workers)
    serve(partial(write, query, server, bucket))


if __name__ == "__main__":
    main()
