"""Loads in processes of their own that need no Spark: their tasks run in the process itself, which begins as a fork.

So it makes its first call in a fraction of the time that Python and Java take to start. Its sources are messages and
bare Parquet files; everything else is the command line as it is.
"""

import multiprocessing
import os
import pkgutil
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final
from unittest.mock import patch

import lakewriter
from lakewriter.cli.main import main
from lakewriter.operate import context
from lakewriter.receipts import parts as receipt_parts
from lakewriter.source import file_splits
from tests.faults.process import ROOT, Process, Started
from tests.support.local_tasks import local_session

BOUNDS: Final = "TEST_RECEIPT_BOUNDS"
"""The variable with the bounds of receipts, for loads that have parts of them without having thousands of files."""
_FORKS: Final = multiprocessing.get_context("forkserver")


class ForkedProcess(Process):
    """``lakewriter run``; what can be done to a process from outside can be done to it."""

    def _start(self, environment: dict[str, str]) -> Started:
        names = [module.name for module in pkgutil.walk_packages(lakewriter.__path__, "lakewriter.")]
        _FORKS.set_forkserver_preload(["pytest", __name__, *(name for name in names if "__main__" not in name)])
        return _Fork(self.command[3:], environment, self.folder)


class _Fork:
    def __init__(self, arguments: list[str], environment: dict[str, str], folder: Path) -> None:
        self._process = _FORKS.Process(target=_run, args=(arguments, environment, folder), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise TimeoutExpired(self._process.name, seconds)
        return self._process.exitcode


def _run(arguments: list[str], environment: dict[str, str], folder: Path) -> None:
    os.setsid()
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o644), number)
    part, results, joined = map(int, environment.get(BOUNDS, "8388608,134217728,200").split(","))
    with (
        patch.object(context, "open_spark_session", lambda _: local_session(2)),
        # Each small file has a task of its own, so that receipts come from several.
        patch.object(file_splits, "_ONE_TASK_BYTES", 0),
        patch.object(receipt_parts, "BOUNDS", receipt_parts.Bounds(part, results, joined)),
    ):
        main(arguments, prog_name="lakewriter")
