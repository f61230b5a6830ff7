"""A PostgreSQL of this machine, started on loopback for the tests; Debian's package postgresql has it."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

DRIVER: Final = "org.postgresql:postgresql:42.7.7"
USER: Final = "lake"


@dataclass(frozen=True)
class Postgresql:
    """A server that runs; ``programs`` is the folder of its programs."""

    programs: Path
    port: int

    @property
    def url(self) -> str:
        """For JDBC; whoever connects from this machine is trusted."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def execute(self, sql: str) -> str:
        """What psql prints, without headers, its columns apart by ``|``."""
        psql = str(self.programs / "psql") if (self.programs / "psql").exists() else "psql"
        command = [psql, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        done = subprocess.run(
            [*command, "-U", USER, "-d", "postgres"], input=sql, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def serving(*settings: str) -> Iterator[Postgresql]:
    """An empty database, its server in Tokyo's time zone; skipped where there is no PostgreSQL.

    ``settings`` are more of the server's, such as ``wal_level=logical``.
    """
    programs = _programs()
    # Not in pytest's folder, which no other user may enter.
    with tempfile.TemporaryDirectory() as folder, _started(programs, Path(folder), _user(folder), settings) as port:
        yield Postgresql(programs, port)


@contextmanager
def _started(programs: Path, folder: Path, user: str | None, settings: Sequence[str]) -> Iterator[int]:
    data = folder / "data"
    started = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    _run(
        [str(programs / "initdb"), "-D", str(data), "-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C", "-N"], user
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -F -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c timezone=Asia/Tokyo"
    options += "".join(f" -c {setting}" for setting in settings)
    _run([*started, "-o", options, "start"], user)
    try:
        yield port
    finally:
        _run([*started, "-m", "immediate", "stop"], user)


def _programs() -> Path:
    """Debian keeps them out of the PATH."""
    found = shutil.which("pg_ctl")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not places:
        pytest.skip("PostgreSQL is not on this machine.")
    return places[0]


def _user(folder: str) -> str | None:
    """The user to run as, None for this one: PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    try:
        shutil.chown(folder, "postgres")
    except LookupError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres.")
    return "postgres"


def _run(command: list[str], user: str | None) -> None:
    done = subprocess.run(
        command, user=user, extra_groups=[] if user else None, cwd="/", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
