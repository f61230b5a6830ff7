"""Fixtures of loads that are killed, held and lied to."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.books import EVENTS, Books
from tests.load.lakes import Lake
from tests.support.server import StrictAws


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> Lake:
    """A pipeline that writes to the empty bucket."""
    return Lake(tmp_path, aws, spark)


@pytest.fixture
def events(lake: Lake) -> Books:
    """The incremental table alone, in two files a load."""
    return Books(lake, EVENTS)
