"""awswrangler on the same rows, in an environment of its own; see ``bench.turns`` for how it is run.

Arguments: the query that makes the rows, the server's address, the bucket, a codec, blank for awswrangler's own choice,
and the codec's level.
"""

import os
import sys
from functools import partial

import awswrangler
import duckdb

from bench.turns import serve


def write(query: str, bucket: str, codec: str, level: str, prefix: str) -> None:
    """DuckDB makes a pandas frame, awswrangler writes it with threads, and a file for each core."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        frame = connection.sql(query).df()
    path = f"s3://{bucket}/{prefix}/"
    if not codec:
        awswrangler.s3.to_parquet(frame, path, dataset=True)
        return
    files = len(os.sched_getaffinity(0))
    awswrangler.s3.to_parquet(
        frame, path, dataset=True, use_threads=True, max_rows_by_file=-(-len(frame) // files), compression=codec,
        pyarrow_additional_kwargs={"compression_level": int(level) if level else None},
    )  # fmt: skip


def main() -> None:
    """Take turns until standard input ends."""
    query, server, bucket, codec, level = sys.argv[1:]
    awswrangler.config.s3_endpoint_url = server
    serve(partial(write, query, bucket, codec, level))


if __name__ == "__main__":
    main()
