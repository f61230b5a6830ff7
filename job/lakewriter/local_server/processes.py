"""Start, find and end processes that keep running between commands, and their ports."""

import os
import signal
import socket
import time
from pathlib import Path
from typing import Final

PAUSE: Final = 0.1
_STOP_SECONDS: Final = 3.0
"""SeaweedFS closes its volumes at once; what it waits for then are clients of its own, for 15 seconds."""


def is_alive(pid: int) -> bool:
    """Return True if the process has not ended."""
    try:
        # A child of this process that has ended stays until it is waited for.
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def end(pid: int) -> None:
    """End the process and wait until it has ended."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def write_private(file: Path, text: str) -> None:
    """Write a file that no other user reads."""
    file.touch(mode=0o600)
    file.write_text(text, "utf-8")


def choose_port(before: int | None) -> int:
    """Return the port of before, so that what was configured with it goes on working, or a free one."""
    return before if before is not None and _is_free(before) else find_free_ports(1)[0]


def find_free_ports(count: int) -> list[int]:
    """Return ports of this machine that no program listens at."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
