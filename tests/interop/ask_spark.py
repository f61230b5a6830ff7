"""Run in a process of its own: Spark with the Iceberg runtime, which answers each line of SQL with its rows as JSON."""

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Arguments: the jars, the endpoint."""
    jars, endpoint = sys.argv[1:]
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.glue": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.glue.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "spark.sql.catalog.glue.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.glue.glue.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.endpoint": endpoint,
        "spark.sql.catalog.glue.s3.path-style-access": "true",
        "spark.sql.catalog.glue.client.region": "us-east-1",
        "spark.sql.catalog.glue.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        rows = [row.asDict(recursive=True) for row in spark.sql(json.loads(line)).collect()]
        sys.stdout.write("FOUND" + json.dumps(rows, default=str) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
