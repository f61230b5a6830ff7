"""The processes of a command that was started in a session of its own: Java and the Python workers belong to it.

Its process group is not all of it: Spark's Python daemon makes one of its own, and outlives the others for a while.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path


def members(leader: int) -> list[int]:
    """Every process of the session that lives."""
    return [pid for pid, fields in processes() if int(fields[3]) == leader and fields[0] != "Z"]


def kill(leader: int) -> None:
    """SIGKILL to each; none is left."""
    while left := members(leader):
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def send(pid: int, number: int) -> None:
    """A signal, unless the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def processes() -> Iterator[tuple[int, list[str]]]:
    """Process ids with the fields of ``/proc/PID/stat`` that follow the name: state, parent, group, session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
