"""Fixtures that every test may use."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from job.source.session import spark_session
from tests.support.server import StrictAws

pytest_plugins = ["tests.support.recording", "tests.support.fixtures"]

TOGETHER = ("tests/infra/bundle", "tests/infra/destination", "tests/infra/pipeline", "tests/interop")
"""Folders whose files share what takes its time to make, or may be made once only."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes that share the tests take them by file."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        folder = next((folder for folder in TOGETHER if file.startswith(folder + "/")), file)
        item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def spark(aws_server: StrictAws) -> Iterator[SparkSession]:
    """One local session for all tests; its Python workers keep the environment it starts with."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", aws_server.url)
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        session = spark_session("lakewriter-tests")
    yield session
    session.stop()
