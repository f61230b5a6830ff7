"""Run in a process of its own: what Spark with the Iceberg runtime sees of a table, as JSON."""

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Arguments: the jars, the endpoint, the first snapshot."""
    jars, endpoint, first = sys.argv[1:]
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
    split = {"split-size": "65536", "file-open-cost": "65536"}
    table = spark.read.options(**split).table("glue.db.t")
    bounds = spark.sql("SELECT readable_metrics.key.lower_bound, readable_metrics.key.upper_bound FROM glue.db.t.files")
    found = {
        "columns": [[field.name, field.dataType.simpleString()] for field in table.schema],
        "rows": [row.asDict(recursive=True) for row in table.orderBy("key").collect()],
        "first": spark.read.option("versionAsOf", first).table("glue.db.t").count(),
        "bounds": sorted([row[0], row[1]] for row in bounds.collect()),
        "tasks": table.rdd.getNumPartitions(),
        "filtered": table.filter("key >= 10").rdd.getNumPartitions(),
    }
    sys.stdout.write("FOUND" + json.dumps(found, default=str) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
