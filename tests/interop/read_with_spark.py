"""Run in a process of its own: what Spark with the Iceberg runtime sees of tables, as JSON."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession

SPLIT = {"split-size": "65536", "file-open-cost": "65536"}
"""A task for each file."""


def main() -> None:
    """Arguments: the jars, the endpoint, the first snapshot of ``t``, filters of the partitioned table ``p``."""
    jars, endpoint, first, filters = sys.argv[1:]
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalog.glue": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.glue.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "spark.sql.catalog.glue.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.glue.glue.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.path-style-access": "true",
        "spark.sql.catalog.glue.client.region": "us-east-1",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    table = spark.read.options(**SPLIT).table("glue.db.t")
    partitioned = spark.read.options(**SPLIT).table("glue.db.p")
    partitions = spark.sql("SELECT partition.*, record_count FROM glue.db.p.partitions")
    bounds = spark.sql("SELECT readable_metrics.key.lower_bound, readable_metrics.key.upper_bound FROM glue.db.t.files")
    found = {
        "columns": [[field.name, field.dataType.simpleString()] for field in table.schema],
        "rows": [row.asDict(recursive=True) for row in table.orderBy("key").collect()],
        "first": spark.read.option("versionAsOf", first).table("glue.db.t").count(),
        "bounds": sorted([row[0], row[1]] for row in bounds.collect()),
        "tasks": table.rdd.getNumPartitions(),
        "filtered": table.filter("key >= 10").rdd.getNumPartitions(),
        "partitions": [row.asDict() for row in partitions.collect()],
        "pruned": {text: files_and_ids(partitioned.filter(text)) for text in json.loads(filters)},
    }
    sys.stdout.write("FOUND" + json.dumps(found, default=str) + "\n")
    spark.stop()


def files_and_ids(rows: DataFrame) -> list[object]:
    """How many files are read for the rows, and which rows these are."""
    return [rows.rdd.getNumPartitions(), sorted(row.id for row in rows.collect())]


if __name__ == "__main__":
    main()
