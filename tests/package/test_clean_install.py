"""The wheel beside pinned packages from the index, in an environment that never saw the repository."""

from pathlib import Path

import pytest

from tests.package.environments import ROOT, Environment, write_spark_pins
from tests.package.use import use
from tests.support.server import StrictAws

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]


@pytest.mark.usefixtures("bucket")
def test_clean_install(wheel: Path, environment: Environment, aws: StrictAws, tmp_path: Path) -> None:
    spark = write_spark_pins(tmp_path / "spark.txt")
    environment.pip("install", "--require-hashes", "-r", str(ROOT / "requirements-job.txt"), "-r", str(spark))
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    assert environment.pip("check") == "No broken requirements found.\n"
    use(environment, aws)
