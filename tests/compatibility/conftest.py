"""What an earlier release left behind, as fixtures."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.compatibility.released import Released, released
from tests.support.open_catalog import CLIENT_SECRET
from tests.support.server import StrictAws

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


@pytest.fixture
def put_back(
    tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Released]]:
    """Puts a set of 0.1.0 back, as a pipeline that can be gone on with."""
    monkeypatch.setenv("OPEN_CATALOG_SECRET", CLIENT_SECRET)
    aws.role(ROLE, "shared-with-vendor")
    with ExitStack() as stack:
        yield lambda name, *, grown=False: stack.enter_context(
            released(f"0.1.0/{name}", tmp_path, aws, spark, grown=grown)
        )
