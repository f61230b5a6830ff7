"""Iceberg pipelines on the embedded AWS, and their tables as strangers see them."""

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from tests.load.lakes import BUCKET, Lake

SCHEMA = "supaflow_nyc_public"
ICEBERG = {"table_format": "ICEBERG", "update_aws_glue_catalog": None, "partition_strategy": None}


class IcebergLake(Lake):
    """A pipeline whose tables are Iceberg's."""

    def write(self, *tables: dict[str, Any], **destination: Any) -> None:
        """The lake.yaml; ``destination`` is laid over an Iceberg destination with Glue."""
        super().write(*tables, **(ICEBERG | destination))

    def catalog(self) -> Catalog:
        """The catalog as PyIceberg opens it by itself."""
        return load_catalog("glue", **{"type": "glue", "s3.endpoint": self.aws.url, "s3.region": "us-east-1"})

    def table(self, name: str) -> Table:
        """A table as PyIceberg finds it."""
        return self.catalog().load_table((SCHEMA, name))

    def scan(self, name: str, **options: Any) -> pa.Table:
        """All rows, by PyIceberg and its own reader."""
        return self.table(name).scan(**options).to_arrow()

    def files_of(self, name: str) -> set[str]:
        """The keys of all objects under the table's location."""
        prefix = f"data/production/{SCHEMA}/{name}/"
        return {key for key in self.aws.objects(BUCKET) if key.startswith(prefix)}
