"""SQL over exactly what a table was made of when a load had been committed, run by DuckDB and by Spark."""

import duckdb
import pytest
import sqlglot

from lakewriter.commit.committed_loads import read_table_loads
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.as_of import AsOf, find_as_of
from lakewriter.operate.queries import write_as_of
from lakewriter.operate.sql_text import Engine
from tests.load.lakes import BUCKET
from tests.operate.shop import BY_DAY, FILES, ICEBERG


def as_of(shop, job, *engines):
    """The statements that read the table, by engine."""
    spec, pipeline = shop.lake.spec, shop.pipeline
    tables = read_table_loads(list(pipeline.controls.values()))
    found = find_as_of(spec, tables, job, pipeline.clients)
    written = write_as_of(spec, engines or (Engine.DUCKDB,), found)
    return {query.engine: query.sql for query in written if query.title.startswith("The table as of")}


def copy(shop):
    """The bucket as a folder, in which its readers are here."""
    root = shop.folder / "bucket"
    for key, body in shop.aws.objects(BUCKET).items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(body)
    return root


@pytest.mark.parametrize("settings", [FILES, FILES | BY_DAY, {}], ids=["files", "day", "glue"])
def test_duckdb_reads_the_loads_up_to_it(shop, settings):
    shop = shop(settings)
    shop.load("a", "b", "c")
    shop.undo("b").run()
    root = copy(shop)
    read = {job: as_of(shop, job)[Engine.DUCKDB].replace(f"s3://{BUCKET}/", f"{root}/") for job in "ac"}
    rows = {
        job: sorted(duckdb.sql(f"SELECT id, _supa_job_id FROM ({sql.rstrip(';')})").fetchall())
        for job, sql in read.items()
    }
    assert rows["a"] == [(0, "a"), (1, "a")]
    # Each load reads all that is there.
    assert rows["c"] == sorted([(0, "a"), (1, "a"), *((number, "c") for number in range(6))])


def test_spark_reads_the_loads_up_to_it(shop, spark):
    shop = shop(FILES | BY_DAY)
    shop.load("a", "b")
    root = copy(shop)
    sql = as_of(shop, "b", Engine.SPARK)[Engine.SPARK].replace(f"s3a://{BUCKET}/", f"{root}/")
    for statement in sql.split(";\n"):
        rows = spark.sql(statement.rstrip(";"))
    assert sorted(row["id"] for row in rows.collect()) == [0, 0, 1, 1, 2, 3]
    one = as_of(shop, "a", Engine.SPARK)[Engine.SPARK].replace(f"s3a://{BUCKET}/", f"{root}/")
    for statement in one.split(";\n"):
        rows = spark.sql(statement.rstrip(";"))
    assert sorted(row["id"] for row in rows.collect()) == [0, 1]


def test_spark_finds_the_files_of_a_glue_table(shop):
    shop = shop({})
    shop.load("a")
    (key,) = [key for key in shop.aws.objects(BUCKET) if "part-" in key and "_lakewriter" not in key]
    assert as_of(shop, "a", Engine.SPARK)[Engine.SPARK] == (
        "SELECT *\nFROM `supaflow_nyc_public`.`shots`\n"
        f"WHERE substring_index(_metadata.file_path, '://{BUCKET}/', -1) IN (\n    '{key}'\n);"
    )


def test_what_the_other_engines_are_given(shop):
    shop = shop({})
    shop.load("a")
    (key,) = [key for key in shop.aws.objects(BUCKET) if "part-" in key and "_lakewriter" not in key]
    written = as_of(shop, "a", Engine.ATHENA, Engine.REDSHIFT, Engine.TRINO)
    assert written == {
        Engine.ATHENA: f"SELECT *\nFROM supaflow_nyc_public.shots\nWHERE \"$path\" IN (\n    's3://{BUCKET}/{key}'\n);",
        Engine.REDSHIFT: f'SELECT *\nFROM "supaflow_nyc_public"."shots"\nWHERE "$path" IN (\n'
        f"    's3://{BUCKET}/{key}'\n);",
        Engine.TRINO: f"SELECT *\nFROM lake.supaflow_nyc_public.shots\nWHERE \"$path\" IN (\n    's3://{BUCKET}/{key}'\n);",
    }
    for engine, sql in written.items():
        sqlglot.parse_one(sql, read=engine.value)


def test_iceberg_by_its_snapshot(shop):
    shop = shop(ICEBERG)
    shop.load("a", "b")
    first = shop.iceberg().snapshots()[0].snapshot_id
    assert as_of(shop, "a", Engine.ATHENA, Engine.DUCKDB, Engine.REDSHIFT, Engine.SPARK, Engine.TRINO) == {
        Engine.REDSHIFT: "-- Redshift reads the newest snapshot alone. Athena, DuckDB, Spark and Trino read load a, "
        f"snapshot {first}.",
        Engine.ATHENA: f"SELECT *\nFROM supaflow_nyc_public.shots\nFOR VERSION AS OF {first};",
        Engine.DUCKDB: f'SELECT *\nFROM "lake"."supaflow_nyc_public"."shots" AT (VERSION => {first});',
        Engine.SPARK: f"SELECT *\nFROM `lake`.`supaflow_nyc_public`.`shots`\nVERSION AS OF {first};",
        Engine.TRINO: f"SELECT *\nFROM lake.supaflow_nyc_public.shots\nFOR VERSION AS OF {first};",
    }
    assert sorted(shop.iceberg().scan(snapshot_id=first).to_arrow()["id"].to_pylist()) == [0, 1]


def test_a_table_that_the_load_did_not_touch(shop):
    """It is as its last load before left it."""
    shop = shop(FILES, tables=("shots", "sales"))
    shop.load("a")
    shop.undo("a", tables=["nyc_public.shots"]).run()
    shop.load("a.r2", "b")
    spec, pipeline = shop.lake.spec, shop.pipeline
    found = find_as_of(spec, read_table_loads(list(pipeline.controls.values())), "a.r2", pipeline.clients)
    assert {table: each.job_id for table, each in found.items()} == {
        "nyc_public.shots": "a.r2",
        "nyc_public.sales": "a",
    }


REFUSED = [
    ("x", "--as-of 'x': the load is committed in no table of this pipeline."),
    ("b", "--as-of 'b': the load is undone."),
]


@pytest.mark.parametrize(("job", "message"), REFUSED)
def test_a_load_that_is_not_there_is_refused(shop, job, message):
    shop = shop(FILES)
    shop.load("a", "b")
    shop.undo("b").run()
    with pytest.raises(SpecInvalidError) as refused:
        as_of(shop, job)
    assert refused.value.message == message


def test_files_of_a_load_whose_record_is_gone_cannot_be_told(shop):
    shop = shop(FILES)
    shop.load("a", "b")
    shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=shop.control.keys.report("a", shop.control.table_id))
    with pytest.raises(SpecInvalidError) as refused:
        as_of(shop, "b")
    assert refused.value.message == (
        "--as-of 'b': table nyc_public.shots cannot be shown as it was: records of loads up to it were cleared away "
        "after keep_loads_days."
    )


EMPTY = [
    (Engine.DUCKDB, 'CREATE OR REPLACE VIEW "nyc_public_shots" AS\nSELECT *\nFROM read_parquet('),
    (Engine.ATHENA, "SELECT *\nFROM nyc_public.shots\nWHERE false;"),
    # The view is made first.
    (Engine.SPARK, "-- spark-sql --packages"),
]


@pytest.mark.parametrize(("engine", "beginning"), EMPTY)
def test_a_table_of_which_no_load_has_files(shop, engine, beginning):
    shop = shop(FILES)
    written = write_as_of(shop.lake.spec, [engine], {"nyc_public.shots": AsOf("a")})
    (sql,) = [query.sql for query in written if query.title.startswith("The table as of")]
    assert sql.startswith(beginning)
    assert sql.endswith("\nWHERE false;")
