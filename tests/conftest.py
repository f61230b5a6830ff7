"""Fixtures that every test may use."""

import gc
import os
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling

from infra.node import use_packaged_node
from lakewriter.source.class_archive import VARIABLE
from lakewriter.source.session import open_spark_session
from tests.support import java
from tests.support.quick_sdk import share_models
from tests.support.sample import IS_NIGHTLY, list_left_out
from tests.support.server import StrictAws

# What is made while modules are imported and tests are collected stays to the end: looking through it again and again
# would take half of that time, and much of every test's.
gc.disable()

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

TOGETHER = ("tests/infra/bundle/", "tests/infra/destination/", "tests/infra/pipeline/", "tests/interop/")
"""Folders whose files share what takes its time to make, or may be made once only."""

LONG = (
    *("tests/infra/bundle/", "tests/infra/pipeline/", "tests/interop/", "tests/examples/test_first_hour.py"),
    *("tests/simulation/test_simulation.py", "tests/faults/test_given.py", "tests/package/", "tests/deploy/"),
    *("tests/infra/test_application.py", "tests/infra/test_deployer.py", "tests/api/", "tests/cli/test_acceptance.py"),
    *("tests/load/test_refresh.py", "tests/load/test_replay.py", "tests/operate/test_undo.py"),
    *("tests/load/test_states_of_all_streams.py", "tests/iceberg/test_merge.py", "tests/load/test_continuous.py"),
    *("tests/faults/", "tests/cli/", "tests/load/", "tests/iceberg/", "tests/source/test_", "tests/operate/"),
    *("tests/infra/", "tests/examples/", "tests/source/", "tests/encode/", "tests/doctor/"),
)
"""What goes first, the longest before others, so that no process is left with a long file at the end.

The durations at the end of a whole run say which these are.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Have Java's archive made while tests are collected, once for all processes."""
    if not hasattr(config, "workerinput"):
        java.make_archive_in_background()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only scripts/nightly runs."""
    left_out = set() if IS_NIGHTLY else set(list_left_out(items))
    config.hook.pytest_deselected(items=list(left_out))
    chosen = [item for item in items if item not in left_out]
    items[:] = sorted(chosen, key=lambda item: _find_rank(item.nodeid.partition("::")[0]))


@cache
def _find_rank(file: str) -> int:
    return next((rank for rank, beginning in enumerate(LONG) if file.startswith(beginning)), len(LONG))


def pytest_collection_finish() -> None:
    """Take up the search for garbage again, in what tests make."""
    gc.freeze()
    gc.enable()


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
    """See ``quick_sdk``."""
    with pytest.MonkeyPatch.context() as lasting:
        share_models(lasting)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Every Java that a test starts, in whichever process, starts in two fifths of the time."""
    with pytest.MonkeyPatch.context() as lasting:
        lasting.setenv("JDK_JAVA_OPTIONS", java.options())
        yield


@pytest.fixture(autouse=True)
def staging_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark stage the only small table of a load in every other test, by its name: elsewhere the driver does it.

    Nearly all tests load such a table. ``staged_by`` says by which of both a test has to be run.
    """
    wanted, module = request.node.get_closest_marker("staged_by"), sys.modules.get("lakewriter.run.table_staging")
    by_spark = wanted.args[0] == "spark" if wanted else zlib.crc32(request.node.nodeid.encode()) % 2 == 0
    if module is not None and by_spark:
        monkeypatch.setattr(module, "SMALL_BYTES", -1)


INTERPRETED = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
"""Spark makes and compiles a class for each query, which takes longer than the few rows of a test; sessions that tests
start in processes of their own do so."""


@pytest.fixture(scope="session")
def spark(aws_server: StrictAws) -> Iterator[SparkSession]:
    """One local session for all tests; its Python workers keep the environment it starts with."""
    with pytest.MonkeyPatch.context() as lasting:
        # Workers do not import from the working folder, and some functions that they run are the tests' own.
        root = Path(__file__).parents[1]
        lasting.setenv("PYTHONPATH", str(root))
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", aws_server.url)
            environment.setenv("AWS_ACCESS_KEY_ID", "testing")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
            environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
            environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
            environment.setenv("PYSPARK_SUBMIT_ARGS", f"{INTERPRETED} pyspark-shell")
            environment.setenv("PYTHONPATH", os.pathsep.join([str(root), str(root / "tests/support/workers")]))
            session = open_spark_session("lakewriter-tests")
        yield session
        session.stop()
