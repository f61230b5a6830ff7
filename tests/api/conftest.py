"""The lakes that the functions of the package write to."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.load.lakes import Lake
from tests.support.server import StrictAws


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> Lake:
    """A pipeline that writes to the empty bucket."""
    return Lake(tmp_path, aws, spark)
