"""Run the Iceberg REST catalog of ``--local`` in a process of its own, which keeps running between commands."""

import http.client
import json
import os
import secrets
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Final

import lakewriter
from lakewriter.errors import EndpointUnreachableError
from lakewriter.local_server.processes import PAUSE, choose_port, end, is_alive, write_private
from lakewriter.spec.model import Model

IDENTITY: Final = "/identity"
"""The path of the call that returns the id of the process."""
_SERVE: Final = "lakewriter.local_server.catalog_process"
_START_SECONDS: Final = 60.0
_LAUNCHES: Final = 5
_LOG_BYTES: Final = 2000


class RunningCatalog(Model):
    """The record of the process in its folder, written before it starts, so that a second command finds it."""

    pid: int
    port: int
    id: str
    """Random. Another program at the port does not know it."""

    @property
    def uri(self) -> str:
        """The URL of its REST API."""
        return f"http://127.0.0.1:{self.port}"


def start_catalog(folder: Path) -> RunningCatalog:
    """Start the catalog of the tables in ``folder``, unless it runs. The caller holds the folder's lock."""
    before = _read(folder)
    # On a busy machine it may answer late: a second one would have another port, and intents name the first one's.
    if before is not None and (_answers(before) or (is_alive(before.pid) and _wait(folder, before, is_last=False))):
        return before
    for _ in range(_LAUNCHES - 1):
        running = _launch(folder)
        if _wait(folder, running, is_last=False):
            return running
    running = _launch(folder)
    _wait(folder, running, is_last=True)
    return running


def find_catalog(folder: Path) -> RunningCatalog | None:
    """Return the running catalog; None where none answers."""
    running = _read(folder)
    return running if running is not None and _answers(running) else None


def stop_catalog(folder: Path) -> None:
    """End the process, if it runs. Its tables stay."""
    running = find_catalog(folder)
    if running is not None:
        end(running.pid)


def _read(folder: Path) -> RunningCatalog | None:
    try:
        return RunningCatalog.model_validate_json((folder / "catalog.json").read_bytes())
    except (OSError, ValueError):
        return None


def _launch(folder: Path) -> RunningCatalog:
    before = _read(folder)
    # Intents name the catalog by its port.
    port, identity = choose_port(before.port if before else None), secrets.token_hex(16)
    with (folder / "catalog.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", _SERVE, str(folder), str(port), identity],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": _write_python_path()},
            # A Ctrl-C for the command is none for the catalog.
            start_new_session=True,
        )
    running = RunningCatalog(pid=process.pid, port=port, id=identity)
    write_private(folder / "catalog.json", running.model_dump_json())
    return running


def _write_python_path() -> str:
    """Return the path on which the process finds the package that this one runs, wherever it found that."""
    return os.pathsep.join(filter(None, [str(Path(lakewriter.__file__).parents[1]), os.environ.get("PYTHONPATH")]))


def _wait(folder: Path, running: RunningCatalog, *, is_last: bool) -> bool:
    """Wait until the catalog answers; return False where it does not, and another try is left."""
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(running):
        if time.monotonic() > deadline or not is_alive(running.pid):
            if not is_last:
                return False
            log = (folder / "catalog.log").read_text("utf-8", "replace")
            raise EndpointUnreachableError(
                f"the local Iceberg catalog in {folder} did not start. Its log ends with:\n{log[-_LOG_BYTES:]}",
                remedy=f"Read {folder / 'catalog.log'}; to begin anew, remove {folder}.",
            )
        time.sleep(PAUSE)
    return True


def _answers(running: RunningCatalog) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
    try:
        connection.request("GET", IDENTITY)
        response = connection.getresponse()
        return response.status == HTTPStatus.OK and json.load(response) == {"id": running.id}
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
