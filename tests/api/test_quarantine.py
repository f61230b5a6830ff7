"""Rows of a DataFrame that fail a check, or that cannot be written, are kept out whichever way it is written."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lakewriter
from tests.api.test_data_source import save
from tests.api.test_writing import stream
from tests.load.lakes import BUCKET

TABLE = {
    "table": "flights", "schema": "public", "primary_key": ["id"], "index": "sparse",
    "on_bad_row": {"action": "quarantine", "at_most": 0.5},
    "expect": [{"range": {"column": "id", "at_least": 2}, "on_violation": "quarantine"}],
}  # fmt: skip
CONDITION = {"sql": "id <> 5", "name": "five", "on_violation": "quarantine"}


def by_function(lake, spark, folder):
    lakewriter.write(spark.range(10), lake=lake.file, table="flights", job_id="j1")


def by_spark(lake, spark, folder):
    # Spark looks for a format in the thread's active session, which the function leaves as it was.
    before = SparkSession.getActiveSession()
    lakewriter.write(spark.range(0), lake=lake.file, table="flights", job_id="j0")
    after = SparkSession.getActiveSession()
    assert before is not None
    assert after is not None
    assert before._jsparkSession.equals(after._jsparkSession)
    lakewriter.register(spark)
    save(lake, spark.range(10))


def by_sink(lake, spark, folder):
    spark.range(0, 10, 1, 1).write.parquet(str(folder / "arriving"))
    stream(spark, folder, lakewriter.sink(lake.file, "flights"))


WAYS = [
    # how it is written, whether Spark looks at conditions, the checks and the rows in the quarantine
    (by_function, [CONDITION], [("five", 5), ("range.id", 0), ("range.id", 1)]),
    (by_spark, [], [("range.id", 0), ("range.id", 1)]),
    (by_sink, [CONDITION], [("five", 5), ("range.id", 0), ("range.id", 1)]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("write", "more", "kept_out"), WAYS, ids=["function", "spark", "sink"])
def test_rows_that_fail_a_check_are_kept_out(lake, spark, tmp_path, write, more, kept_out):
    lake.write(TABLE | {"expect": [*TABLE["expect"], *more]})
    write(lake, spark, tmp_path)
    objects = lake.aws.objects(BUCKET)
    files = [pq.read_table(pa.BufferReader(body)) for key, body in objects.items() if "__quarantine/" in key]
    rows = [(row["_lake_check"], json.loads(row["_lake_row"])["id"]) for each in files for row in each.to_pylist()]
    assert sorted(rows) == kept_out
    bad = {number for _, number in kept_out}
    found = lake.rows("SELECT id FROM t ORDER BY 1", "supaflow_nyc_public/flights")
    assert found == [(number,) for number in range(10) if number not in bad]
