"""What a user would write the same table with, each in a process of its own: ``python -m bench.outside_ways WAY PLAN``.

All read the same Parquet files, add the same five tracking columns, and write Parquet to the same bucket. ``PLAN`` is
JSON. A way imports its own library only, so that the memory of its process is its own.
"""

import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml

from bench.data import ROWS_A_FILE, TRACKED
from bench.sinks import BUCKET
from bench.turns import serve
from bench.ways import add_tracking, load_file

BATCH_ROWS: Final = 122_880
CORES: Final = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Plan:
    """``codec`` and ``level`` are blank and None for the way's defaults; then it has no other setting of ours either.

    glue   the address of a catalog, for the way that needs one
    """

    folder: str
    server: str
    glue: str = ""
    codec: str = ""
    level: int | None = None

    @property
    def files(self) -> list[str]:
        """The source."""
        return sorted(map(str, Path(self.folder, "flights").glob("*.parquet")))


Write = Callable[[str], object]
"""Writes the table under the prefix."""


def lakewriter(plan: Plan) -> Write:
    """A load of the splits feed."""
    from lakewriter.source.session import open_spark_session

    spark = open_spark_session("bench")
    chosen = {"compression": plan.codec, "compression_level": plan.level} if plan.codec else {}
    tracking = ["loaded_at", "load_id", "row_number", "row_id", "deleted"]

    def write(prefix: str) -> None:
        destination: dict[str, Any] = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/{prefix}", "region": "us-east-1",
            "endpoint": plan.server, "partition_strategy": "none", "tracking": tracking,
        }  # fmt: skip
        read = {"format": "parquet", "path": str(Path(plan.folder, "flights"))}
        table = {"table": "flights", "read": read, "primary_key": ["time_hour", "carrier", "flight"]}
        content = {"pipeline": "bench", "destination": destination | chosen, "tables": [table]}
        file = Path(plan.folder, f"{uuid.uuid4()}.yaml")
        file.write_text(yaml.safe_dump(content), "utf-8")
        load_file(spark, file)

    return write


def spark(plan: Plan) -> Write:
    """Spark's own writer to the local disk, then boto3, a file a thread: Spark writes S3 with a package only."""
    from lakewriter.source.session import open_spark_session

    session, client = open_spark_session("bench"), _open_s3(plan)
    options = {"compression": plan.codec} if plan.codec else {}
    if plan.codec == "gzip":
        # Hadoop's name of the level, which its classes have by words.
        options["zlib.compress.level"] = ("NO_COMPRESSION", "BEST_SPEED", "TWO", "THREE", "FOUR")[plan.level or 4]
    if plan.codec == "zstd":
        options["parquet.compression.codec.zstd.level"] = str(plan.level)

    def write(prefix: str) -> None:
        out = Path(plan.folder, f"spark-{uuid.uuid4()}")
        frame = add_tracking(session.read.parquet(str(Path(plan.folder, "flights"))))
        frame.write.options(**options).parquet(str(out))
        with ThreadPoolExecutor(CORES) as pool:
            files = sorted(out.glob("*.parquet"))
            list(pool.map(lambda file: client.upload_file(str(file), BUCKET, f"{prefix}/{file.name}"), files))
        shutil.rmtree(out)

    return write


def pyarrow_one_file(plan: Plan) -> Write:
    """DuckDB makes the rows, pyarrow's writer streams them into one file."""
    return lambda prefix: _stream(plan, plan.files, 0, f"{prefix}/0.parquet")


def pyarrow(plan: Plan) -> Write:
    """The same with a file for each core, each by a thread."""

    def write(prefix: str) -> None:
        files = plan.files
        ends = [len(files) * number // CORES for number in range(CORES + 1)]
        shares = [
            (files[first:end], first, f"{prefix}/{first}.parquet") for first, end in pairwise(ends) if end > first
        ]
        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(lambda share: _stream(plan, *share), shares))

    return write


def _stream(plan: Plan, files: Sequence[str], first: int, path: str) -> None:
    import pyarrow.parquet as pq
    from pyarrow import fs

    store = fs.S3FileSystem(endpoint_override=plan.server, allow_bucket_creation=False)
    chosen: dict[str, Any] = {"compression": plan.codec, "compression_level": plan.level} if plan.codec else {}
    with _open_duckdb() as connection:
        query = f"SELECT * REPLACE (_supa_index + {first * ROWS_A_FILE} AS _supa_index) FROM ({_track(files)})"
        rows = connection.sql(query).to_arrow_reader(BATCH_ROWS)
        with (
            store.open_output_stream(f"{BUCKET}/{path}") as stream,
            pq.ParquetWriter(stream, rows.schema, **chosen) as file,
        ):
            for batch in rows:
                file.write_batch(batch)


def pyiceberg(plan: Plan) -> Write:
    """DuckDB makes an Arrow table, PyIceberg appends it to a new Iceberg table, with a file for each core."""
    from pyiceberg.catalog import load_catalog

    settings = {"type": "glue", "glue.endpoint": plan.glue, "s3.endpoint": plan.server, "client.region": "us-east-1"}
    catalog = load_catalog("glue", **settings)
    catalog.create_namespace_if_not_exists("bench")

    def write(prefix: str) -> None:
        with _open_duckdb() as connection:
            rows = connection.sql(_track(plan.files)).to_arrow_table()
        chosen = {
            "write.parquet.compression-codec": plan.codec,
            "write.parquet.compression-level": str(plan.level),
            "write.target-file-size-bytes": str(rows.nbytes // CORES + 1),
        }
        name = ("bench", prefix.replace("/", "_").replace("-", "_"))
        properties = chosen if plan.codec else {}
        catalog.create_table(name, rows.schema, f"s3://{BUCKET}/{prefix}", properties=properties).append(rows)

    return write


def duckdb(plan: Plan) -> Write:
    """``COPY`` with a file for each thread; it has levels for zstd only."""
    import importlib.util

    import duckdb as library

    package = importlib.util.find_spec("duckdb_extension_httpfs")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "extensions" / f"v{library.__version__}"
    chosen = f", COMPRESSION {plan.codec}, PER_THREAD_OUTPUT true" if plan.codec else ""
    chosen += f", COMPRESSION_LEVEL {plan.level}" if plan.codec == "zstd" else ""

    def write(prefix: str) -> None:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        place = f"ENDPOINT '{plan.server.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1'"
        path = f"s3://{BUCKET}/{prefix}" + ("" if plan.codec else "/0.parquet")
        with _open_duckdb() as connection:
            connection.execute(f"LOAD '{folder / 'httpfs.duckdb_extension'}'")
            connection.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{key}', SECRET '{secret}', {place})")
            connection.execute(f"COPY ({_track(plan.files)}) TO '{path}' (FORMAT parquet{chosen})")

    return write


def _open_duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _track(files: Sequence[str]) -> str:
    return TRACKED.format(files=list(files))


def _open_s3(plan: Plan) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=plan.server)


WAYS: Final[dict[str, Callable[[Plan], Write]]] = {
    "lakewriter": lakewriter,
    "spark": spark,
    "pyarrow_one_file": pyarrow_one_file,
    "pyarrow": pyarrow,
    "pyiceberg": pyiceberg,
    "duckdb": duckdb,
}

if __name__ == "__main__":
    name, given = sys.argv[1:]
    serve(WAYS[name](Plan(**json.loads(given))))
