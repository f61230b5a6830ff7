"""CPU seconds of a benchmark's own process and of those that it has started, by what they are."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support import sessions

TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _CHILDREN = 1, 11, 13
"""Places among the fields of /proc/PID/stat behind the name: the parent, own ticks and those of children that ended,
two each."""


def measure_by_kind() -> dict[str, float]:
    """CPU seconds of ``driver``, ``java``, ``tasks`` and ``sink``: of Python's tasks with those that have ended."""
    own = os.times()
    found = {"driver": own.user + own.system, "java": 0.0, "tasks": 0.0, "sink": 0.0}
    for pid, fields in _list_descendants(os.getpid()):
        kind = _tell_kind(pid)
        last = _CHILDREN + 2 if kind == "tasks" else _CHILDREN
        found[kind] += sum(map(int, fields[_USER:last])) / TICKS
    return found


def measure_family(leader: int) -> float:
    """CPU seconds of a process, of its children, and of those of both that have ended."""
    own = [fields for pid, fields in sessions.processes() if pid == leader]
    family = [*own, *(fields for _, fields in _list_descendants(leader))]
    return sum(sum(map(int, fields[_USER : _CHILDREN + 2])) for fields in family) / TICKS


def _list_descendants(ancestor: int) -> Iterator[tuple[int, list[str]]]:
    listed = list(sessions.processes())
    parents = [ancestor]
    while parents:
        parent = str(parents.pop())
        for pid, fields in listed:
            if fields[_PARENT] == parent:
                parents.append(pid)
                yield pid, fields


def _tell_kind(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        # It has ended.
        return "tasks"
    if b"bench.null_sink" in command:
        return "sink"
    return "java" if b"org.apache.spark" in command else "tasks"
