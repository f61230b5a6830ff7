"""Ways to write that live in processes of their own and take turns: seconds, CPU seconds and memory of each turn.

Imports, and a Spark session, are there before the first turn, whose figures are not counted. A way's CPU seconds and
memory are those of all its processes, Java and Python workers included.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.support import sessions

PAUSE_SECONDS: Final = 0.25
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Turn:
    """One write: seconds, CPU seconds, and the most bytes that its processes held together."""

    seconds: float
    cpu: float
    peak: int


def serve(write: Callable[[str], object]) -> None:
    """Write to each prefix that comes on standard input, and tell how many seconds it took."""
    # Libraries print on their own, Spark's progress among it: the answers have the real standard output for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        clock = time.monotonic()
        write(line.strip())
        print(json.dumps(time.monotonic() - clock), file=answers, flush=True)


class Resident:
    """A way's process, as a context manager; ``take_turn`` has it write under a prefix."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._command, self._folder, self._environment = command, folder, environment
        self._log = folder / "log"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True, env={**os.environ, **self._environment},
            )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def take_turn(self, prefix: str) -> Turn:
        """Let it write once; an error of the way ends the benchmark."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = measure_cpu(self._process.pid)
        with Memory(self._process.pid) as memory:
            print(prefix, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self._command)} has died: {self._log.read_text('utf-8')[-2000:]}")
        return Turn(float(json.loads(answer)), measure_cpu(self._process.pid) - before, memory.peak)


class Memory:
    """Use as a context manager; ``peak`` is the most that a session's processes held together, in bytes."""

    def __init__(self, session: int) -> None:
        self.peak = 0
        self._session, self._over = session, threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            held = sum(int(fields[21]) for fields in _list_session(self._session)) * PAGE
            self.peak = max(self.peak, held)


def measure_cpu(session: int) -> float:
    """CPU seconds that the processes of a session have taken, those of children that have ended included."""
    return sum(int(ticks) for fields in _list_session(session) for ticks in fields[11:15]) / TICKS


def _list_session(leader: int) -> list[list[str]]:
    return [fields for _, fields in sessions.processes() if int(fields[3]) == leader]
