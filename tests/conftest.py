"""Fixtures that every test may use."""

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from infra.node import use_packaged_node
from lakewriter.source.class_archive import VARIABLE
from lakewriter.source.session import open_spark_session
from tests.support import java
from tests.support.server import StrictAws

# Node takes its environment when aws_cdk is imported, by whichever folder's tests come first; what tests validation
# starts a process of its own.
use_packaged_node()
os.environ["CDK_VALIDATION"] = "false"

# Sessions that tests start make none in the user's own folder: they have that of the tests.
os.environ[VARIABLE] = "off"

# How long a case takes is no finding: other processes share the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

pytest_plugins = ["tests.support.recording", "tests.support.fixtures", "tests.support.durations"]

EVERYTHING = os.environ.get("LAKEWRITER_FAULTS") == "all"

TOGETHER = ("tests/infra/bundle/", "tests/infra/destination/", "tests/infra/pipeline/", "tests/interop/")
"""Folders whose files share what takes its time to make, or may be made once only."""

LONG = tuple(f"tests/{name}/" for name in ("interop", "faults", "load", "iceberg", "deploy", "cli", "infra"))
"""Folders that go first, so that no process is left with a long file at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only scripts/nightly runs."""
    left_out = [] if EVERYTHING else [*_exhaustive(items), *_rows_left_out(items)]
    config.hook.pytest_deselected(items=left_out)
    chosen = [item for item in items if item not in left_out]
    items[:] = sorted(chosen, key=lambda item: not item.nodeid.startswith(LONG))


def _exhaustive(items: list[pytest.Item]) -> list[pytest.Item]:
    return [item for item in items if item.get_closest_marker("exhaustive")]


def _rows_left_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """The rows of a table that is marked ``one_in(n)``, but for the first of every n."""
    seen: Counter[str] = Counter()
    left_out = []
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and not item.get_closest_marker("exhaustive"):
            table = item.nodeid.partition("[")[0]
            if seen[table] % mark.args[0]:
                left_out.append(item)
            seen[table] += 1
    return left_out


class ByFile(LoadScopeScheduling):
    """Each file, or folder of files that go together, in one of the processes that share the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: what is killed, stalled or waited for leaves one idle."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """https://pytest-xdist.readthedocs.io/en/stable/how-to.html"""
    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def service_models() -> Iterator[None]:
    """Each service's model is parsed once: every load has sessions of its own, and each would parse S3's and Glue's."""
    load = cache(JSONFileLoader().load_file)
    with pytest.MonkeyPatch.context() as lasting:
        lasting.setattr(JSONFileLoader, "load_file", lambda _, path: load(path))
        yield


@pytest.fixture(scope="session")
def spark(aws_server: StrictAws) -> Iterator[SparkSession]:
    """One local session for all tests; its Python workers keep the environment it starts with."""
    with pytest.MonkeyPatch.context() as lasting:
        lasting.setenv("JDK_JAVA_OPTIONS", java.options())
        # Workers do not import from the working folder, and some functions that they run are the tests' own.
        lasting.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", aws_server.url)
            environment.setenv("AWS_ACCESS_KEY_ID", "testing")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
            environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
            environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
            session = open_spark_session("lakewriter-tests")
        yield session
        session.stop()
