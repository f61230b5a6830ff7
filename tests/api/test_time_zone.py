"""A program whose Java is in another time zone writes the same instants."""

import os
import subprocess
import sys

import pytest

from tests.support import java

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import lakewriter
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark._jvm.java.util.TimeZone.getDefault().getID() == "Asia/Tokyo"
noted = spark.sql("SELECT 1 AS id, timestamp'2024-01-01 09:00:00' AS noted, date'2024-01-01' AS day")
lakewriter.write(noted, lake=sys.argv[1], table="flights", job_id="function")
lakewriter.register(spark)
noted.write.format("lakewriter").mode("append").options(lake=sys.argv[1], table="flights", job_id="writer").save()
"""


@pytest.mark.exhaustive
def test_a_program_in_tokyo_writes_the_same_instants(lake, tmp_path):
    lake.write({"table": "flights", "schema": "public", "primary_key": ["id"], "index": "sparse"})
    environment = os.environ | {
        "AWS_ENDPOINT_URL": lake.aws.url,
        "JDK_JAVA_OPTIONS": f"{java.options()} -Duser.timezone=Asia/Tokyo",
        "TZ": "Asia/Tokyo",
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(lake.file)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    query = "SELECT _supa_job_id, epoch(noted), CAST(day AS VARCHAR) FROM t ORDER BY 1"
    # Nine in the morning in Tokyo is midnight in UTC.
    assert lake.rows(query, "supaflow_nyc_public/flights") == [
        ("function", 1704067200.0, "2024-01-01"),
        ("writer", 1704067200.0, "2024-01-01"),
    ]
