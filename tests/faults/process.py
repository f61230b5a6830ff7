"""A load as it is run for real, in a process of its own, and what can be done to it from outside."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self

from tests.faults.gate import Gate, Weather
from tests.support import sessions
from tests.support.call import Call

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Started(Protocol):
    """The leader of a session; ``subprocess.Popen`` is one."""

    @property
    def pid(self) -> int:
        """Its id, and the session's."""

    def wait(self, seconds: float, /) -> int:
        """Its exit code."""


class Process:
    """``python -m lakewriter run``: as a context manager, started at its beginning and gone at its end.

    Java and the Python workers belong to its session, and die with it.
    """

    def __init__(
        self,
        lake: Path,
        job_id: str,
        upstream: str,
        *,
        weather: Weather = lambda _: None,
        stall_seconds: float = 0.5,
        **environment: str,
    ) -> None:
        self.gate = Gate(upstream, weather, stall_seconds=stall_seconds)
        self.command = [sys.executable, "-m", "lakewriter", "run", str(lake), "--job-id", job_id, "--json"]
        self.folder = lake.parent / "processes" / f"{job_id}-{time.monotonic_ns()}"
        self.folder.mkdir(parents=True)
        self._environment = environment
        self._process: Started | None = None
        self._stalled, self._resumed = threading.Event(), threading.Event()

    def __enter__(self) -> Self:
        self.gate.__enter__()
        environment = os.environ | {"AWS_ENDPOINT_URL": self.gate.url} | self._environment
        self._process = self._start(environment)
        return self

    def _start(self, environment: dict[str, str]) -> Started:
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            return subprocess.Popen(
                self.command, cwd=ROOT, env=environment, start_new_session=True, stdout=out, stderr=err
            )

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._resumed.set()
        self.gate.__exit__()

    @property
    def pid(self) -> int:
        """The driver's, and the session's."""
        if self._process is None:
            raise RuntimeError("the process is not started; enter it with `with` first")
        return self._process.pid

    def wait(self, seconds: float = 900) -> int:
        """Its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def members(self) -> list[int]:
        """Every process of its session that lives."""
        return sessions.members(self.pid)

    def workers(self) -> list[int]:
        """The Python processes that Spark's tasks run in."""
        return [pid for pid in self.members() if b"pyspark.daemon" in _command(pid) and _parent_is_daemon(pid)]

    def executors(self) -> list[int]:
        """The Java processes of a cluster's executors."""
        return [pid for pid in self.members() if b"CoarseGrainedExecutorBackend" in _command(pid)]

    def executor_processes(self, executor: int) -> list[int]:
        """An executor with what it has started: its Python daemon and workers."""
        family, parents = [executor], {pid: int(fields[1]) for pid, fields in sessions.processes()}
        for pid in family:
            family += [child for child, parent in parents.items() if parent == pid]
        return family

    def java_drivers(self) -> list[int]:
        """The Java process of Spark's driver, once it has started."""
        return [pid for pid in self.members() if b"org.apache.spark.deploy.SparkSubmit" in _command(pid)]

    def kill(self) -> None:
        """SIGKILL to all of it at once, and nothing of it reaches the server any more."""
        self.gate.closed = True
        if self._process is not None:
            sessions.kill(self._process.pid)
        self.gate.close()

    def stalled_at(self, match: Callable[[Call], bool], *, after: int = 0, applied: bool = False) -> Self:
        """SIGSTOP at the matching call after ``after`` others: it stands still and knows nothing of it.

        The call arrives when the process goes on, or it was ``applied`` and its answer arrives then.
        """
        self.gate.at(match, self._stall, after=after, applied=applied)
        return self

    def wait_for_stall(self, seconds: float = 900) -> None:
        """Return when it stands still."""
        assert self._stalled.wait(seconds), self.errors

    def is_stalled(self) -> bool:
        """Return True once it stands still, False once it has ended."""
        while not self._stalled.wait(0.05):
            with suppress(subprocess.TimeoutExpired):
                self.wait(0.05)
                return self._stalled.is_set()
        return True

    def go_on(self) -> None:
        """SIGCONT."""
        for pid in self.members():
            sessions.send(pid, signal.SIGCONT)
        self._resumed.set()

    def _stall(self) -> None:
        for pid in self.members():
            sessions.send(pid, signal.SIGSTOP)
        self._stalled.set()
        self._resumed.wait()

    def killed_at(self, match: Callable[[Call], bool], *, after: int = 0, applied: bool = False) -> Self:
        """Die of the matching call after ``after`` others."""
        self.gate.at(match, self.kill, after=after, applied=applied)
        return self

    @property
    def report(self) -> dict[str, Any]:
        """What it printed, once it has ended."""
        return dict(json.loads((self.folder / "stdout").read_bytes()))

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return (self.folder / "stderr").read_text("utf-8")


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _parent_is_daemon(pid: int) -> bool:
    parents = dict(sessions.processes())
    return pid in parents and b"pyspark.daemon" in _command(int(parents[pid][1]))
