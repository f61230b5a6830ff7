"""Ways to read files and write gzip Parquet: ``python -m bench.reader_ways WAY PLAN``.

Each is a process of its own, as those of ``bench.outside_ways``. All write the columns of the source and nothing else.
``PLAN`` is JSON.
"""

import importlib.util
import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bench.data import KEYS
from bench.outside_ways import CORES
from bench.sinks import BUCKET
from bench.turns import serve
from bench.ways import add_tracking, load_file

TRACKING: Final = ["loaded_at", "load_id", "row_number", "row_id", "deleted"]
_NUMBERS: Final = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("flight", "air_time", "distance", "hour", "minute"),
)
NAMES: Final = (
    *("row_id", "token", *_NUMBERS[:9], "carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance"),
    *("hour", "minute", "time_hour"),
)
TYPES: Final = {name: "BIGINT" if name in ("row_id", *_NUMBERS) else "STRING" for name in NAMES} | {
    "time_hour": "TIMESTAMP"
}
"""Types of the columns in Spark's words, by their names in the order of the source."""
TYPED: Final = ("parquet", "orc", "avro")
"""Formats that say the types of their columns."""


@dataclass(frozen=True)
class ReaderPlan:
    """``path`` is a file or a folder of ``form`` csv, json, parquet, orc or avro.

    ``server`` is an S3 server, which ``discards`` or not. ``tracks`` adds the five tracking columns.
    """

    form: str
    path: str
    folder: str
    server: str
    discards: bool = False
    tracks: bool = False


Write = Callable[[str], object]
"""Writes the table under the prefix."""


def lakewriter(plan: ReaderPlan) -> Write:
    """A load whose columns are declared by ``read.columns``, where files do not say their types."""
    return _load(plan, _make_read(plan))


def lakewriter_sql(plan: ReaderPlan) -> Write:
    """The same load through a statement, in Spark's plan."""
    return _load(plan, {"sql": "SELECT * FROM flights", "views": {"flights": _make_read(plan)}})


def _make_read(plan: ReaderPlan) -> dict[str, Any]:
    read = {"format": plan.form, "path": plan.path, "options": _make_options(plan)}
    return read if plan.form in TYPED else read | {"columns": _list_columns()}


def _load(plan: ReaderPlan, read: dict[str, Any]) -> Write:
    from lakewriter.source.session import open_spark_session

    spark = open_spark_session("bench")
    destination: dict[str, Any] = {
        "type": "lakewriter-s3", "region": "us-east-1", "endpoint": plan.server, "partition_strategy": "none",
        "tracking": TRACKING if plan.tracks else [], "compression": "gzip",
    }  # fmt: skip

    def write(prefix: str) -> None:
        content = {
            "pipeline": f"bench-{uuid.uuid4().hex[:8]}",
            "destination": destination | {"location": f"s3://{BUCKET}/{prefix}"},
            "tables": [{"table": "flights", "read": read, "primary_key": list(KEYS)}],
        }
        file = Path(plan.folder, f"{uuid.uuid4()}.yaml")
        file.write_text(yaml.safe_dump(content), "utf-8")
        load_file(spark, file)

    return write


def spark(plan: ReaderPlan) -> Write:
    """Spark's reader and writer; its files go over the local disk, since it writes S3 with a package only."""
    import boto3

    from lakewriter.source.session import open_spark_session

    session = open_spark_session("bench")
    client = boto3.client("s3", endpoint_url=plan.server)

    def write(prefix: str) -> None:
        out = Path(plan.folder, f"spark-{uuid.uuid4()}")
        reader = session.read.format(plan.form).options(**_make_options(plan))
        frame = (reader if plan.form in TYPED else reader.schema(_list_columns())).load(plan.path)
        frame = add_tracking(frame) if plan.tracks else frame
        frame.write.option("compression", "gzip").parquet(str(out))
        if not plan.discards:
            with ThreadPoolExecutor(CORES) as pool:
                files = sorted(out.glob("*.parquet"))
                list(pool.map(lambda file: client.upload_file(str(file), BUCKET, f"{prefix}/{file.name}"), files))
        shutil.rmtree(out)

    return write


def duckdb(plan: ReaderPlan) -> Write:
    """``COPY`` with a file for each thread, to the local disk where the server discards: its uploads are looked for."""
    import duckdb as library

    package = importlib.util.find_spec("duckdb_extension_httpfs")
    assert package is not None
    assert package.origin is not None
    extension = Path(package.origin).parent / "extensions" / f"v{library.__version__}" / "httpfs.duckdb_extension"
    types = {
        name: kind.replace("STRING", "VARCHAR").replace("TIMESTAMP", "TIMESTAMPTZ") for name, kind in TYPES.items()
    }
    reader = "read_csv" if plan.form == "csv" else "read_json"
    settings = "header = true, auto_detect = false" if plan.form == "csv" else "format = 'newline_delimited'"
    path = f"{plan.path}/*" if Path(plan.path).is_dir() else plan.path
    query = f"SELECT * FROM {reader}('{path}', {settings}, columns = {types})"
    if plan.form == "parquet":
        query = f"SELECT * FROM read_parquet('{path}')"

    def write(prefix: str) -> None:
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        place = f"ENDPOINT '{plan.server.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1'"
        out = Path(plan.folder, f"duckdb-{uuid.uuid4()}")
        target = str(out) if plan.discards else f"s3://{BUCKET}/{prefix}"
        with library.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"LOAD '{extension}'")
            connection.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{key}', SECRET '{secret}', {place})")
            chosen = "FORMAT parquet, COMPRESSION gzip, PER_THREAD_OUTPUT true"
            connection.execute(f"COPY ({query}) TO '{target}' ({chosen})")
        if plan.discards:
            shutil.rmtree(out)

    return write


def _list_columns() -> str:
    return ", ".join(f"{name} {kind}" for name, kind in TYPES.items())


def _make_options(plan: ReaderPlan) -> dict[str, str]:
    return {"header": "true"} if plan.form == "csv" else {}


WAYS: Final[dict[str, Callable[[ReaderPlan], Write]]] = {
    "lakewriter": lakewriter, "lakewriter_sql": lakewriter_sql, "spark": spark, "duckdb": duckdb,
}  # fmt: skip

if __name__ == "__main__":
    name, given = sys.argv[1:]
    serve(WAYS[name](ReaderPlan(**json.loads(given))))
