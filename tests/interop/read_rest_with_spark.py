"""Run in a process of its own: what Spark with the Iceberg runtime sees by the statements that are printed, as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """Arguments: the jars, and a file with the statements of each catalog, by its name in Spark."""
    jars, file = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    seen: dict[str, list[object]] = {}
    for name, statements in json.loads(Path(file).read_text("utf-8")).items():
        try:
            *_, rows = (spark.sql(statement).collect() for statement in statements)
            seen[name] = [row["id"] for row in rows]
        except Exception as error:  # noqa: BLE001 - one catalog's fault hides no other's
            seen[name] = [str(error)[:2000]]
    sys.stdout.write("FOUND" + json.dumps(seen) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
