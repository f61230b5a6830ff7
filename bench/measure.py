"""Interleaved rounds, so that what else the machine does falls on all alike; medians, and ratios to the first."""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Timed = Callable[[], tuple[float, int]]


def timed(way: Callable[[], int]) -> Timed:
    """Seconds and bytes of one call."""

    def call() -> tuple[float, int]:
        clock = time.monotonic()
        size = way()
        return time.monotonic() - clock, size

    return call


def medians(ways: Mapping[str, Timed], rounds: int) -> dict[str, tuple[float, int]]:
    """Median seconds, and bytes, of each; the first round only warms up and is not counted."""
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            one = way()
            if number:
                taken[name].append(one)
            print(f"  {number}/{rounds} {name}: {one[0]:.1f} s", file=sys.stderr, flush=True)  # noqa: T201
    return {name: (statistics.median(s for s, _ in runs), runs[-1][1]) for name, runs in taken.items()}


def table(found: Mapping[str, tuple[float, int]]) -> list[str]:
    """A Markdown table; the first row is what the others are compared with."""
    base, base_size = next(iter(found.values()))
    lines = ["| way | seconds | MB | time | size |", "|---|---|---|---|---|"]
    for name, (seconds, size) in found.items():
        ratios = f"{seconds / base:.2f} | {size / base_size:.2f}"
        lines.append(f"| {name} | {seconds:.1f} | {size / 1e6:.1f} | {ratios} |")
    return lines


@dataclass
class Peak:
    """The most that any one Python worker of this process's Spark held, in MiB."""

    mib: float = 0.0
    seen: dict[int, float] = field(default_factory=dict)


@contextmanager
def worker_peak(root: int | None = None) -> Iterator[Peak]:
    """Watches Spark's Python workers, by Linux's own high-water mark of each process: those that the process ``root``
    began, or this one."""
    peak, over = Peak(), threading.Event()

    def look() -> None:
        for pid in _workers(root or os.getpid()):
            peak.seen[pid] = max(peak.seen.get(pid, 0.0), high_water(pid))

    def watch() -> None:
        # Seldom, since it takes time: a mark stays, and so does a worker for a minute after its last task.
        while not over.wait(1.0):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
        look()
        peak.mib = max(peak.seen.values(), default=0.0)


def _workers(root: int) -> list[int]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    found = [line.split(None, 2) for line in listed.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in found}
    return [
        int(pid)
        for pid, _, *args in found
        if args and "pyspark.daemon" in args[0] and _is_below(int(pid), root, parents)
    ]


def _is_below(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    """Whether ``root`` began it, directly or not: another one's Spark may be at work on the machine too."""
    while pid in parents and pid != root:
        pid = parents[pid]
    return pid == root


def high_water(pid: int) -> float:
    """The most MiB that a process has held so far, zero for one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(line.split()[1]) / 1024
