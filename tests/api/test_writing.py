"""A DataFrame is written as the rows of a file are, once under its job id, and its session stays as it was."""

import logging
import os
import shutil

import pytest
import yaml
from pyspark.errors import StreamingQueryException

import lakewriter
from lakewriter.errors import ExpectationFailedError, LakeError

GIVEN = {"table": "flights", "schema": "public", "primary_key": ["id"]}
PATH = "supaflow_nyc_public/flights"


def write(lake, df, job_id, table="flights"):
    return lakewriter.write(df, lake=lake.file, table=table, job_id=job_id)


def test_a_dataframe_is_written_once_under_its_job_id(lake, spark):
    lake.write(GIVEN)
    evaluated = spark.sparkContext.accumulator(0)

    def note(row):
        evaluated.add(1)
        return row

    rows = spark.createDataFrame(spark.range(0, 10, 1, 3).rdd.map(note), "id bigint")
    report = write(lake, rows, "j1")
    assert (report.status, report.tables[0].rows, report.tables[0].files) == ("done", 10, 3)
    once = evaluated.value
    # A job id that is done: Spark evaluates nothing.
    assert write(lake, rows, "j1").tables[0].status == "already_done"
    assert evaluated.value == once
    assert lake.rows("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t", PATH) == [(10, 10, 0, 9)]
    # Rows are numbered without gaps, over all partitions.
    assert lake.rows("SELECT min(_supa_index), max(_supa_index) FROM t", PATH) == [(1, 10)]
    assert write(lake, rows, "j2").tables[0].rows == 10
    assert lake.rows("SELECT count(*) FROM t", PATH) == [(20,)]


VALUES = [
    # The DataFrame as SQL; its columns in the files; their rows. As the same SQL in a read writes them.
    ("SELECT 1 AS id, map('a', 1) AS m, array(named_struct('x', 2)) AS n", "m, n", [({"a": 1}, [{"x": 2}])]),
    ("SELECT 1 AS id, timestamp_ntz'2024-03-31 02:30:00' AS noted", "CAST(noted AS VARCHAR)",
     [("2024-03-31 02:30:00",)]),
    ("SELECT 1 AS id, CAST(NULL AS STRING) AS name", "id, name", [(1, None)]),
    ("SELECT 1 AS id, 2 AS x, 3 AS x", "x, x_1", [(2, 3)]),
    ("SELECT 1 AS id, interval '1' day AS took", "took", [('"INTERVAL \'1\' DAY"',)]),
    ("SELECT 1 AS id, parse_json('{\"a\": [1, null]}') AS v", "v", [('{"a":[1,null]}',)]),
    ("SELECT 1 AS id, CAST(1.50 AS DECIMAL(5, 2)) AS d, X'00FF' AS b", "CAST(d AS VARCHAR), hex(b)",
     [("1.50", "00FF")]),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("sql", "columns", "expected"), VALUES)
def test_values_are_those_of_a_read_with_the_same_sql(lake, spark, sql, columns, expected):
    twin = {"table": "twin", "schema": "public", "primary_key": ["id"], "read": {"sql": sql}}
    lake.write(GIVEN)
    write(lake, spark.sql(sql), "given")
    assert lake.rows(f"SELECT {columns} FROM t", PATH) == expected
    lake.write(twin)
    assert lake.load("read").status == "done"
    assert lake.rows(f"SELECT {columns} FROM t", "supaflow_nyc_public/twin") == expected


def test_an_empty_dataframe_is_a_load_without_files(lake, spark):
    lake.write(GIVEN)
    report = write(lake, spark.range(0), "j1")
    assert (report.status, report.tables[0].rows) == ("done", 0)
    assert lake.data() == {}


def test_a_cursor_leaves_out_rows_that_are_not_above_it(lake, spark):
    lake.write({**GIVEN, "cursor": "id"})
    assert write(lake, spark.range(0, 5), "j1").tables[0].rows == 5
    assert write(lake, spark.range(3, 8), "j2").tables[0].rows == 3
    assert lake.rows("SELECT count(*), count(DISTINCT id) FROM t", PATH) == [(8, 8)]


def test_nothing_of_the_session_is_changed(lake, spark):
    lake.write(GIVEN)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.sql.variable.substitute", "true")
    try:
        rows = spark.sql("SELECT 1 AS id, timestamp'2024-01-01 09:00:00' AS noted")
        handlers = [(handler, handler.formatter) for handler in logging.getLogger().handlers]
        before = (dict(spark.conf.getAll), dict(os.environ), handlers, logging.getLoggerClass())
        write(lake, rows, "j1")
        handlers = [(handler, handler.formatter) for handler in logging.getLogger().handlers]
        assert (dict(spark.conf.getAll), dict(os.environ), handlers, logging.getLoggerClass()) == before
        # The program's own statements are Spark's affair.
        assert spark.sql("SELECT '${x}' AS x").collect()[0].x == ""
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.variable.substitute", "false")
    # Nine in the morning in Tokyo is midnight in UTC, which has nine hours less.
    assert lake.rows("SELECT epoch(noted) FROM t", PATH) == [(1704067200.0,)]


REFUSALS = [
    ("nope", "SPEC_INVALID: table 'nope' names no table of the file. Expected one of 'public.flights'."),
    ("flights", "SPEC_INVALID: df is a builtins.list, expected a DataFrame of Spark. Make one with "
     "spark.createDataFrame(df)."),
]  # fmt: skip


@pytest.mark.parametrize(("table", "message"), REFUSALS)
def test_what_cannot_be_written_is_refused_before_anything_is(lake, table, message):
    lake.write(GIVEN)
    with pytest.raises(LakeError) as raised:
        write(lake, [1], "j1", table)
    assert str(raised.value) == message
    assert lake.aws.objects("acme-lake") == {}


def test_a_table_that_is_replaced_takes_no_batches(tmp_path):
    destination = {"type": "lakewriter-s3", "location": "s3://acme-lake/data", "region": "us-east-1"}
    content = {"pipeline": "p", "destination": destination, "tables": [GIVEN | {"mode": "refresh"}]}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(LakeError, match="mode 'refresh': each batch would replace the one before"):
        lakewriter.sink(tmp_path / "lake.yaml", "flights")


def test_a_batch_that_spark_gives_again_is_written_once(lake, spark, tmp_path):
    lake.write(GIVEN)
    source = tmp_path / "arriving"
    spark.range(0, 6, 1, 1).write.parquet(str(source))
    write_batch = lakewriter.sink(lake.file, "flights")

    def write_twice(df, number):
        write_batch(df, number)
        write_batch(df, number)

    stream(spark, tmp_path, write_twice)
    spark.range(6, 9, 1, 1).write.mode("append").parquet(str(source))
    # As after a restart: another function, the same checkpoint.
    stream(spark, tmp_path, lakewriter.sink(lake.file, "flights"))
    assert lake.rows("SELECT count(*), count(DISTINCT id) FROM t", PATH) == [(9, 9)]


def test_a_checkpoint_that_is_put_back_is_lost(lake, spark, tmp_path):
    """Spark plans the last batch anew under its number, with rows that no batch had."""
    lake.write(GIVEN)
    source, checkpoint = tmp_path / "arriving", tmp_path / "checkpoint"
    for rows in ((0, 6), (6, 9)):
        spark.range(*rows, 1, 1).write.mode("append").parquet(str(source))
        if checkpoint.exists():
            shutil.copytree(checkpoint, tmp_path / "older")
        stream(spark, tmp_path, lakewriter.sink(lake.file, "flights"))
    shutil.rmtree(checkpoint)
    (tmp_path / "older").rename(checkpoint)
    spark.range(9, 12, 1, 1).write.mode("append").parquet(str(source))
    with pytest.raises(StreamingQueryException, match=r"CHECKPOINT_LOST: .*planned that batch anew"):
        stream(spark, tmp_path, lakewriter.sink(lake.file, "flights"))
    assert lake.rows("SELECT count(*), max(id) FROM t", PATH) == [(9, 8)]


def stream(spark, folder, write_batch):
    """Batches of what has arrived in the folder by now, by its checkpoint."""
    query = (
        spark.readStream.schema("id bigint")
        .parquet(str(folder / "arriving"))
        .writeStream.foreachBatch(write_batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_run_refuses_a_table_without_a_read(lake):
    lake.write(GIVEN)
    with pytest.raises(LakeError) as raised:
        lakewriter.load(lake.file, job_id="j1")
    assert str(raised.value) == (
        "SPEC_INVALID: table 'flights' has no read: nothing says where its rows come from. Write it with "
        "lakewriter.write, from a DataFrame; or give it a read."
    )
    assert lake.aws.objects("acme-lake") == {}


def test_a_plan_says_that_a_program_writes_the_table(lake):
    lake.write(GIVEN)
    (table,) = lakewriter.plan(lake.file, job_id="j1").tables
    assert (table.error, table.warnings) == (
        None,
        ("it has no read: a program writes it from a DataFrame, and its columns are known then",),
    )


def test_a_check_does_not_look_for_what_a_program_writes(lake):
    lake.write(GIVEN)
    (finding,) = (f for f in lakewriter.check(lake.file).findings if f.probe.startswith("source"))
    assert (finding.probe, finding.status, finding.message) == (
        "source supaflow_nyc_public.flights",
        "skipped",
        "it has no read: a program writes it from a DataFrame.",
    )


def test_a_written_load_verifies(lake, spark):
    lake.write(GIVEN)
    write(lake, spark.range(3), "j1")
    assert lakewriter.verify(lake.file, "j1", rows=True).differences == ()


def test_a_dataframe_is_judged_before_it_is_seen(lake, spark):
    lake.write(GIVEN | {"expect": [{"unique": "id"}, {"sql": "id > 0", "name": "above"}]})
    rows = spark.sql("SELECT explode(array(0, 1, 1)) AS id")
    with pytest.raises(ExpectationFailedError, match="2 of 2 expectations not met") as raised:
        write(lake, rows, "j1")
    assert [verdict.samples for verdict in raised.value.verdicts] == [("1 (2 times)",), ("(id=0)",)]
    assert lake.data() == {}
    accept = {"unique.id": "sent twice", "above": "zero is new"}
    with pytest.raises(LakeError, match="SPEC_INVALID: --accept 'nope'"):
        lakewriter.write(rows, lake=lake.file, table="flights", job_id="j1", accept={"nope": "x"})
    report = lakewriter.write(rows, lake=lake.file, table="flights", job_id="j1", accept=accept)
    assert [verdict.outcome for verdict in report.tables[0].expectations] == ["accepted", "accepted"]
    assert report.tables[0].expectations[0].reason == "sent twice; zero is new"
