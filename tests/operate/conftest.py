"""A shop to load and undo."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.operate.shop import Shop
from tests.support.server import StrictAws


@pytest.fixture
def shop(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> Callable[..., Shop]:
    """Makes one by settings of its destination."""
    return lambda settings, **more: Shop(tmp_path, aws, spark, settings, **more)
