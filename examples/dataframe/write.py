"""Write three DataFrames: one by a function, one by Spark's own writer, one from a stream of files.

spark-submit --py-files lakewriter.zip write.py 2026-11-22 clicks
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import lakewriter

LAKE = Path(__file__).with_name("lake.yaml")


def write_tables(spark: SparkSession, day: str, clicks: str, lake: Path = LAKE) -> None:
    """The day's rows, each of them once, however often this runs for the same day."""
    customers = spark.createDataFrame([(1, "Ada"), (2, "Grace")], "customer_id int, name string")
    report = lakewriter.write(customers, lake=lake, table="customers", job_id=day)
    print(f"{report.tables[0].table}: {report.tables[0].status}, {report.tables[0].rows} rows")  # noqa: T201

    lakewriter.register(spark)
    orders = spark.range(0, 100).selectExpr("id AS order_id", "id % 2 + 1 AS customer_id", "id * 1.5 AS amount")
    orders.write.format("lakewriter").mode("append").options(lake=str(lake), table="orders", job_id=day).save()

    query = (
        spark.readStream.schema("seen_at timestamp, page string")
        .json(clicks)
        .writeStream.foreachBatch(lakewriter.sink(lake, "clicks"))
        .option("checkpointLocation", f"{clicks}-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    write_tables(SparkSession.builder.appName("shop").getOrCreate(), sys.argv[1], sys.argv[2])
