"""Run in a process of its own: what Spark with the Iceberg runtime sees of a table at its snapshots, as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """Arguments: the jars, the endpoint, a file with the ids of snapshots, and the filters."""
    jars, endpoint, file, filters = sys.argv[1:]
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.catalog.glue": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.glue.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "spark.sql.catalog.glue.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.glue.glue.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.path-style-access": "true",
        "spark.sql.catalog.glue.client.region": "us-east-1",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    seen = {}
    for snapshot in json.loads(Path(file).read_text("utf-8")):
        rows = spark.read.option("versionAsOf", snapshot).table("glue.db.t").select("id", "at", "day", "v")
        seen[snapshot] = [sorted(map(list, rows.filter(text).collect()), key=str) for text in json.loads(filters)]
    sys.stdout.write("FOUND" + json.dumps(seen) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
