"""The ways to merge rows by key into an Iceberg table of a REST catalog, each with a table of its own: one merge, in a
process that runs or in one that begins with it (``python -m bench.merge_ways WAY FACTS``).

Each way imports its own libraries, so that a cold start waits for no other's.
"""

import importlib.util
import json
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession

    from lakewriter.aws import Clients

DATABASE: Final = "bench"
WAYS: Final = {
    "Lakewriter": "ours", "DuckDB's MERGE": "duckdb", "Spark's MERGE": "spark", "PyIceberg's upsert": "pyiceberg",
}  # fmt: skip
"""The ways by their names; what their tables are called begins so."""


class MergeWays:
    """The ways, for tables whose names end in ``suffix``; ``folder`` has what is merged."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.options: dict[str, str] = facts["options"]
        self.folder = Path(facts["folder"])
        self.source = self.folder / "source"
        self._spark: SparkSession | None = None
        self._clients: Clients | None = None
        self._duckdb: duckdb.DuckDBPyConnection | None = None

    def merge(self, way: str) -> None:
        """Merge by a way."""
        ways = {
            "ours": self._load, "duckdb": self._merge_with_duckdb, "spark": self._merge_with_spark,
            "pyiceberg": self._upsert,
        }  # fmt: skip
        ways[WAYS[way]]()

    def close(self) -> None:
        """End Spark, and wait for its Java: the CPU of a process counts once it was waited for."""
        if self._spark is not None:
            gateway: Any = self._spark.sparkContext._gateway
            self._spark.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()

    def name_table(self, way: str) -> str:
        """Return the name of a way's table."""
        return f"{WAYS[way]}_{self.facts['suffix']}"

    def open_catalog(self) -> "Catalog":
        """Open the catalog as PyIceberg does."""
        from pyiceberg.catalog import load_catalog

        stores = {"s3.endpoint": self.facts["bucket"], "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", **self.options, **stores)

    def _open_spark(self) -> "SparkSession":
        from lakewriter.source.session import open_spark_session

        self._spark = self._spark or open_spark_session("bench")
        return self._spark

    def _load(self) -> None:
        """Load by the product."""
        import yaml

        from lakewriter.aws import Clients
        from lakewriter.dialects.lake_yaml import load_spec
        from lakewriter.run.load import run

        content = {
            "pipeline": "bench",
            "destination": {
                "type": "lakewriter-s3", "location": self.facts["location"], "region": "us-east-1",
                "database": DATABASE, **self.facts["settings"],
            },
            "tables": [
                {
                    "table": self.name_table("Lakewriter"), "read": {"format": "parquet", "path": str(self.source)},
                    "mode": "merge", "primary_key": ["id"], "order_by": ["at"],
                }
            ],
        }  # fmt: skip
        file = self.folder / "lake.yaml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        spec = load_spec(file)
        self._clients = self._clients or Clients(spec.access)
        report = run(spec, job_id=str(uuid.uuid4()), clients=self._clients, spark=self._open_spark)
        if report.status != "done":
            raise SystemExit(report.tables[0].message)

    def _merge_with_duckdb(self) -> None:
        """Merge on read, in this process and as many threads as there are cores."""
        self._duckdb = self._duckdb or self._attach()
        table = self.name_table("DuckDB's MERGE")
        self._duckdb.execute(
            f"MERGE INTO lake.{DATABASE}.{table} t USING read_parquet('{self.source}/*.parquet') s ON t.id = s.id "
            'WHEN MATCHED AND s."at" > t."at" THEN UPDATE WHEN NOT MATCHED THEN INSERT'
        )

    def _attach(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        connection, options = duckdb.connect(config={"allow_unsigned_extensions": "true"}), self.options
        for name in ("httpfs", "avro", "iceberg"):
            package = importlib.util.find_spec(f"duckdb_extension_{name}")
            assert package is not None
            assert package.origin is not None
            (file,) = Path(package.origin).parent.rglob(f"v{duckdb.__version__}/{name}.duckdb_extension")
            connection.load_extension(str(file))
        connection.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'bench', REGION 'us-east-1', URL_STYLE 'path', "
            f"USE_SSL false, ENDPOINT '{self.facts['bucket'].removeprefix('http://')}')"
        )
        client_id, _, secret = options["credential"].partition(":")
        form = {"client_id": client_id, "client_secret": secret, "scope": options["scope"]}
        with urlopen(options["oauth2-server-uri"], urlencode(form).encode()) as answer:
            token = json.load(answer)["access_token"]
        connection.execute(f"CREATE SECRET lake (TYPE iceberg, TOKEN '{token}')")
        connection.execute(
            f"ATTACH '{options['warehouse']}' AS lake (TYPE iceberg, ENDPOINT '{options['uri']}', SECRET lake, "
            "ACCESS_DELEGATION_MODE 'none')"
        )
        return connection

    def _merge_with_spark(self) -> None:
        """Merge on read, as Iceberg's own runtime does it."""
        spark, options = self._open_spark(), self.options
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": options["uri"],
            ".warehouse": options["warehouse"],
            ".credential": options["credential"],
            ".scope": options["scope"],
            ".oauth2-server-uri": options["oauth2-server-uri"],
            ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            ".s3.endpoint": self.facts["bucket"],
            ".s3.path-style-access": "true",
            ".client.region": "us-east-1",
        }.items():
            spark.conf.set(f"spark.sql.catalog.rest{key}", value)
        spark.read.parquet(str(self.source)).createOrReplaceTempView("changes")
        table = self.name_table("Spark's MERGE")
        spark.sql(
            f"MERGE INTO rest.{DATABASE}.{table} t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.at > t.at THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def _upsert(self) -> None:
        """Merge by PyIceberg, which compares all columns instead of an order."""
        import pyarrow.parquet as pq

        table = self.open_catalog().load_table((DATABASE, self.name_table("PyIceberg's upsert")))
        table.upsert(pq.read_table(self.source), join_cols=["id"])


if __name__ == "__main__":
    ways = MergeWays(json.loads(Path(sys.argv[2]).read_text("utf-8")))
    ways.merge(sys.argv[1])
    ways.close()
