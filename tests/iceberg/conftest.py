"""Fixtures of whole Iceberg loads."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.iceberg.tables import IcebergLake
from tests.support.server import StrictAws


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> IcebergLake:
    """A pipeline that writes Iceberg tables in Glue to the empty bucket."""
    return IcebergLake(tmp_path, aws, spark)
