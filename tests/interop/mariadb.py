"""A MariaDB of Debian's packages, unpacked into a cache and started on loopback for the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

CACHE: Final = Path(__file__).parents[2] / "build" / "mariadb"
# The server, its set-up and its messages; the client; what the server is linked with.
PACKAGES: Final = (
    *("mariadb-server-core", "mariadb-server", "mariadb-client-core", "mariadb-common"),
    *("libaio1", "liburing2", "libmariadb3"),
)
DRIVER: Final = "org.mariadb.jdbc:mariadb-java-client:3.5.3"
CONNECTOR_J: Final = "com.mysql:mysql-connector-j:9.3.0"
USER: Final = "lake"
PASSWORD: Final = "pw"


@dataclass(frozen=True)
class Mariadb:
    """A server that runs."""

    root: Path
    port: int

    def make_url(self, scheme: str = "mariadb") -> str:
        """For JDBC."""
        return f"jdbc:{scheme}://127.0.0.1:{self.port}/shop"

    def execute(self, sql: str, *options: str) -> str:
        """What the client prints, without headers, its columns apart by tabs."""
        address = ["-h127.0.0.1", f"-P{self.port}", f"-u{USER}", f"-p{PASSWORD}", "--default-character-set=utf8mb4"]
        command = [str(self.root / "usr/bin/mariadb"), "--no-defaults", *address, "-N", "-B", *options, "shop"]
        done = subprocess.run(
            command, input=sql, capture_output=True, text=True, check=False, env=_environment(self.root)
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")


@contextmanager
def serving(*options: str, zone: str = "+09:00", collation: str = "utf8mb4_general_ci") -> Iterator[Mariadb]:
    """An empty database in another zone than UTC, by its offset or name; skipped where Debian's packages cannot
    be had. ``options`` are more of the server's, such as ``--log-bin``."""
    root = _unpack()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        _run([root / "usr/bin/mariadb-install-db", "--no-defaults", f"--basedir={root / 'usr'}", f"--datadir={data}",
              "--auth-root-authentication-method=normal", "--skip-test-db", *_user()], root)  # fmt: skip
        with _started(root, Path(folder), data, zone, collation, options) as port:
            yield Mariadb(root, port)


@contextmanager
def _started(root: Path, folder: Path, data: Path, zone: str, collation: str, options: Sequence[str]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # Of zones with names it has no table, and takes the one of its process.
    is_offset = zone.startswith(("+", "-"))
    init = folder / "init.sql"
    # Each line is one statement.
    init.write_text(
        f"CREATE DATABASE shop;\nCREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER}@'%';\n"
    )
    command = [
        *(str(root / "usr/sbin/mariadbd"), "--no-defaults", f"--basedir={root / 'usr'}", f"--datadir={data}", *_user()),
        *(f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder / 'socket'}", f"--init-file={init}"),
        *(
            "--innodb-flush-log-at-trx-commit=0",
            f"--default-time-zone={zone if is_offset else 'SYSTEM'}",
            "--sql-mode=",
        ),
        *("--character-set-server=utf8mb4", f"--collation-server={collation}", f"--pid-file={folder / 'pid'}"),
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        *options,
    ]
    environment = _environment(root) | {"TZ": "UTC" if is_offset else zone}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        _wait(port, process, folder / "log")
        yield port
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(240):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.25)
        else:
            return
    raise RuntimeError(f"MariaDB did not start: {log.read_text('utf-8')[-2000:]}")


def _unpack() -> Path:
    root = CACHE / "root"
    if (root / "unpacked").exists():
        return root
    if not os.environ.get("LAKEWRITER_INTEROP"):
        pytest.skip("LAKEWRITER_INTEROP is not set; it allows apt-get to fetch MariaDB's packages of some 12 MB.")
    if shutil.which("apt-get") is None:
        pytest.skip("MariaDB comes from Debian's packages, and apt-get is not on this machine.")
    CACHE.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(["apt-get", "download", *PACKAGES], cwd=CACHE, capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"apt-get could not fetch MariaDB: {got.stderr[-500:]}")
    for package in sorted(CACHE.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
        package.unlink()
    (root / "unpacked").touch()
    return root


def _user() -> list[str]:
    """MariaDB runs as root only where it is told so."""
    return ["--user=root"] if os.getuid() == 0 else []


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")}


def _run(command: list[object], root: Path) -> None:
    done = subprocess.run(
        [str(part) for part in command], env=_environment(root), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
