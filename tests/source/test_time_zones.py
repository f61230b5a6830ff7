"""Values read where Java and Python started in another time zone than UTC."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakewriter.source.time_zone import add_utc

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

TIMES = [
    # A wall clock that New York (local mean time; the hours that daylight saving skips and repeats) or Calcutta (local
    # mean time) lacks or has with another offset, see tzdata's northamerica and asia; the last ones of the day.
    "0001-01-01 00:00:00",
    "1582-10-04 23:59:59",
    "1582-10-15 00:00:00",
    "1850-01-01 00:00:00",
    "1883-11-18 12:01:00",
    "1899-12-31 23:59:59.999999",
    "1906-01-01 00:00:00",
    "1941-10-01 00:20:00",
    # Not the last second before 1970: ORC has no sign for its nanoseconds, https://issues.apache.org/jira/browse/ORC-763
    "1969-12-31 23:59:58.999999",
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "9999-12-31 23:59:59.999999",
]

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from lakewriter.errors import SpecInvalidError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.source.session import open_spark_session
from tests.source.tables import DELETED, rows, table

folder, times = sys.argv[1], json.loads(sys.argv[2])
refused = None
theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    open_spark_session("in another zone")
except SpecInvalidError as error:
    refused = str(error)
theirs.stop()
spark = open_spark_session("in a JVM that runs")
derby = "jdbc:derby:memory:zones;create=true"
statement = spark._jvm.java.sql.DriverManager.getConnection(derby).createStatement()
statement.execute("create table t (n int, ts timestamp, d date, t time)")
for number, text in enumerate(times):
    day, _, clock = text.partition(" ")
    statement.execute(f"insert into t values ({number}, '{text}', '{day}', '{clock[:8]}')")
reads = {
    "jdbc": table(format="jdbc", options={"url": derby, "dbtable": "t"}),
    "orc": table(format="orc", path=f"{folder}/orc"),
    "int96": table(format="parquet", path=f"{folder}/int96", deleted="false"),
    "csv": table(format="csv", path=f"{folder}/csv", options={"header": "true", "inferSchema": "true"}),
    "json": table(format="json", path=f"{folder}/json", columns={"n": "int", "ts": "timestamp", "d": "date"}),
}
found = {
    name: sorted(rows(open_feed(RowsRequest(lambda: spark, read)))) for name, read in reads.items()
}
print(json.dumps([refused, found]))
"""


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """The times in files, written in UTC."""
    folder = tmp_path_factory.mktemp("zones")
    values = [f"({n}, timestamp_ntz'{text}', date'{text[:10]}')" for n, text in enumerate(TIMES)]
    frame = spark.sql(f"select n, cast(ts as timestamp) ts, d from values {', '.join(values)} as t(n, ts, d)").coalesce(
        1
    )
    frame.write.orc(f"{folder}/orc")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame.write.parquet(f"{folder}/int96")
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    (folder / "csv").write_text("".join(f"{row}\n" for row in ["n,ts,d", *_lines("{n},{ts},{d}")]), "utf-8")
    (folder / "json").write_text(
        "".join(f"{row}\n" for row in _lines('{{"n": {n}, "ts": "{ts}", "d": "{d}"}}')), "utf-8"
    )
    return folder


def _lines(form):
    return [form.format(n=n, ts=text, d=text[:10]) for n, text in enumerate(TIMES)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_values_where_java_started_in_another_zone(files, zone):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(files), json.dumps(TIMES)],
        env=os.environ | {"TZ": zone, "PYTHONPATH": f"{ROOT / 'job'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, found = json.loads(done.stdout)
    # "UTC" itself is right.
    assert (refused is None) == (zone == "UTC")
    assert refused is None or f"the driver of the running Spark session has the time zone '{zone}', expected" in refused
    expected: list[list[Any]] = [[n, f"{text}+00:00", text[:10]] for n, text in enumerate(TIMES)]
    clocks = [f"1970-01-01 {text[11:19]}+00:00" for text in TIMES]
    assert found == {
        "jdbc": [[*row, clock] for row, clock in zip(expected, clocks, strict=True)],
        "orc": expected,
        "int96": [[*row, False] for row in expected],
        "csv": expected,
        "json": [[day, n, moment] for n, moment, day in sorted(expected, key=lambda row: row[2])],
    }


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("", "-Duser.timezone=UTC"),
        ("-Xss4m -Duser.timezone=Asia/Kolkata", "-Xss4m -Duser.timezone=Asia/Kolkata -Duser.timezone=UTC"),
    ],
)
def test_with_utc(given, options):
    assert add_utc(given) == options
