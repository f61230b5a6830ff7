"""What the driver of a load holds while it runs: its Python, and the Java process that Spark's driver is."""

import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.faults.process import Process

PAUSE_SECONDS: Final = 0.25
MIB: Final = 2**20


@dataclass
class Peaks:
    """Bytes: of each process by Linux's own high-water mark, and of both together as they were seen at one moment."""

    python: int = 0
    java: int = 0
    together: int = 0
    options: tuple[str, ...] = ()
    """Java's own, the size of its heap among them."""

    def in_mib(self) -> dict[str, int]:
        """By the names that a report has them under."""
        return {"Python": self.python // MIB, "Java": self.java // MIB, "together": self.together // MIB}


class DriverMemory:
    """Use as a context manager inside the process's own; ``peaks`` are those so far. Executors are not the driver's."""

    def __init__(self, process: Process) -> None:
        self.peaks = Peaks()
        self._process = process
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        java: int | None = None
        while not self._over.wait(PAUSE_SECONDS):
            java = java or next(iter(self._process.java_drivers()), None)
            self._look(self._process.pid, java)

    def _look(self, python: int, java: int | None) -> None:
        peaks, own = self.peaks, read_held(python)
        peaks.python = max(peaks.python, own[1])
        if java is None:
            return
        other = read_held(java)
        peaks.java = max(peaks.java, other[1])
        peaks.together = max(peaks.together, own[0] + other[0])
        peaks.options = peaks.options or read_options(java)


def read_held(pid: int) -> tuple[int, int]:
    """Bytes that a process holds now, and the most that it has held; none of one that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    found = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    if "VmRSS" not in found:
        return 0, 0
    return int(found["VmRSS"][0]) * 1024, int(found["VmHWM"][0]) * 1024


def read_options(pid: int) -> tuple[str, ...]:
    """The arguments of a process that begin with a dash."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(argument for argument in arguments if argument.startswith("-X"))
