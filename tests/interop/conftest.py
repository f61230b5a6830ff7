"""Fixtures of whole loads into real S3 servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tests.faults.process import Process
from tests.faults.without_spark import ForkedProcess
from tests.interop.servers import RealS3, serving
from tests.load.lakes import Lake
from tests.load.syncs import SyncLake
from tests.support.call import Call
from tests.support.server import StrictAws


class RealLake(Lake):
    """A pipeline whose destination is a real server; it has no Glue."""

    def write(self, *tables: dict[str, Any], **destination: Any) -> None:
        there = {"custom_s3_endpoint": self.aws.url, "update_aws_glue_catalog": False}
        super().write(*tables, **(there | destination))

    def killed(self, job_id: str, match: Callable[[Call], bool], *, after: int = 0) -> int:
        """See ``Lake.killed``."""
        return _killed(Process, self, job_id, match, after)


class RealSyncLake(SyncLake):
    """A connector's pipeline whose destination is a real server, and whose loads need no Spark."""

    def write(self, form: dict[str, Any], *, kind: str = "airbyte-s3", **top: Any) -> None:
        """See ``SyncLake``."""
        super().write({"s3_endpoint": self.aws.url} | form, kind=kind, **top)

    def killed(self, job_id: str, match: Callable[[Call], bool], *, after: int = 0) -> int:
        """See ``Lake.killed``."""
        return _killed(ForkedProcess, self, job_id, match, after)


def _killed(kind: type[Process], lake: Lake | SyncLake, job_id: str, match: Callable[[Call], bool], after: int) -> int:
    """The process has a lake.yaml of its own, which leads through the gate to the server."""
    own = lake.folder / "gated.yaml"
    process = kind(own, job_id, lake.aws.url).killed_at(match, after=after)
    own.write_text(lake.file.read_text("utf-8").replace(lake.aws.url, process.gate.url), "utf-8")
    with process:
        return process.wait()


class Started(dict[str, RealS3]):
    """Servers by name, each started when it is first asked for."""

    def __init__(self, stack: ExitStack, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._stack, self._folders = stack, folders

    def __missing__(self, name: str) -> RealS3:
        self[name] = self._stack.enter_context(serving(name, self._folders.mktemp(name)))
        return self[name]


@pytest.fixture(scope="session")
def s3_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RealS3]]:
    """The servers that tests have asked for so far, each started once."""
    with ExitStack() as stack:
        yield Started(stack, tmp_path_factory)


@pytest.fixture
def server(request: pytest.FixtureRequest, s3_servers: dict[str, RealS3]) -> RealS3:
    """The server named by the test's parameter, empty."""
    found = s3_servers[request.param]
    found.empty()
    return found


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, server: RealS3, spark: SparkSession) -> RealLake:
    """A pipeline that writes to the empty bucket."""
    # It answers what a lake asks of it.
    return RealLake(tmp_path, cast(StrictAws, server), spark)
