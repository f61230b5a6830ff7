"""Run an S3 server on this machine, SeaweedFS, whose data stay in a folder; it keeps running between commands."""

import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lakewriter import aws
from lakewriter.errors import EndpointUnreachableError, SpecInvalidError
from lakewriter.local_server.catalog_server import RunningCatalog, start_catalog, stop_catalog
from lakewriter.local_server.processes import PAUSE, choose_port, end, find_free_ports, is_alive, write_private
from lakewriter.spec.access import Access, SecretText
from lakewriter.spec.installing import describe_install
from lakewriter.spec.model import Model

FOLDER: Final = ".lakewriter"
"""Beside lake.yaml: the server's data, its log, its port and its keys."""
KEY_VARIABLE: Final = "LAKEWRITER_LOCAL_KEY_ID"
SECRET_VARIABLE: Final = "LAKEWRITER_LOCAL_SECRET"
"""Commands and Spark's tasks find the server's keys in these variables, so no control object holds them."""
_VARIABLES: Final = (KEY_VARIABLE, SECRET_VARIABLE)
PROGRAM: Final = "weed"

_REGION: Final = "us-east-1"
_ROLES: Final = ("master", "volume", "filer")
_START_SECONDS: Final = 60.0
_LAUNCHES: Final = 5
_PORT_IS_TAKEN: Final = "address already in use"
"""The server's log says this where another program got one of its ports between the choice of the port and its use."""
_LOG_BYTES: Final = 2000
_LIFECYCLE: Final = {
    "ID": "incomplete-uploads",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 30},
}


class Running(Model):
    """The record of a server in its folder: written before the server starts, so that a second command finds it."""

    pid: int
    port: int
    master_port: int
    """The port of the master, which knows where data are."""
    key_id: str
    secret: str

    @property
    def endpoint(self) -> str:
        """The URL of its S3 API."""
        return f"http://127.0.0.1:{self.port}"

    def make_access(self, bucket: str, prefix: str = "", *, holds_keys: bool = False) -> Access:
        """Make the access to one of its buckets; this process's environment gets the keys that it refers to.

        With ``holds_keys`` it has them itself, for tasks whose environment was made before.
        """
        os.environ.update({KEY_VARIABLE: self.key_id, SECRET_VARIABLE: self.secret})
        keys = (self.key_id, self.secret) if holds_keys else (f"${{env:{name}}}" for name in _VARIABLES)
        key_id, secret = map(SecretText, keys)
        return Access(
            bucket=bucket,
            region=_REGION,
            prefix=prefix,
            endpoint=self.endpoint,
            access_key_id=key_id,
            secret_access_key=secret,
        )


@dataclass(frozen=True)
class LocalServer:
    """The server whose data are in ``folder``."""

    folder: Path

    @classmethod
    def beside(cls, lake: Path) -> "LocalServer":
        """Return the server of the pipelines whose files are in the folder of ``lake``."""
        return cls(lake.resolve().parent / FOLDER)

    def start(self) -> Running:
        """Start the server, unless it runs; ``SPEC_INVALID`` where it is not installed."""
        program = find_program()
        with self._lock():
            self._require_room()
            running = self.find() or self._launch(program, self.read())
            for launches in range(1, _LAUNCHES + 1):
                if self._wait(running, retries=launches < _LAUNCHES):
                    break
                running = self._launch(program, running)
            return running

    def find(self) -> Running | None:
        """Return the running server; None where none answers to this folder's keys."""
        running = self.read()
        return running if running is not None and _answers(running) else None

    def stop(self) -> bool:
        """Stop the server and its catalog and wait until they have ended; False where no server runs. Its data stay."""
        stop_catalog(self.folder)
        running = self.find()
        if running is None:
            return False
        end(running.pid)
        return True

    def start_catalog(self) -> RunningCatalog:
        """Start the Iceberg catalog beside the S3 server, unless it runs."""
        with self._lock():
            return start_catalog(self.folder)

    def _require_room(self) -> None:
        """Raise ``ENDPOINT_UNREACHABLE`` on a full disk: the server would write nothing, and answer as if it had no
        bucket."""
        full = aws.describe_full_disk(str(self.folder))
        if full is not None:
            raise EndpointUnreachableError(f"{full}.", remedy=aws.make_room_remedy(str(self.folder)))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one command at a time start the server."""
        # There is no SeaweedFS wheel where this module does not exist.
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        # Whatever a folder's own rules are, these data and keys are in no repository.
        (self.folder / ".gitignore").write_text("*\n", "utf-8")
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self) -> Running | None:
        """Return the record of the server, which may not run; None where there is none."""
        try:
            return Running.model_validate_json((self.folder / "server.json").read_bytes())
        except (OSError, ValueError):
            return None

    def _launch(self, program: str, before: Running | None) -> Running:
        # The port and the keys of before, so that what was configured with them goes on working.
        port = choose_port(before.port if before is not None else None)
        key_id = before.key_id if before is not None else f"local{secrets.token_hex(8)}"
        secret = before.secret if before is not None else secrets.token_hex(20)
        ports = find_free_ports(2 * len(_ROLES) + 1)
        data = self.folder / "s3"
        data.mkdir(exist_ok=True)
        identities = self.folder / "identities.json"
        write_private(identities, json.dumps(_make_identities(key_id, secret)))
        with (self.folder / "server.log").open("wb") as log:
            process = subprocess.Popen(
                _make_command(program, data, port, identities, ports),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # A Ctrl-C for the command is none for the server.
                start_new_session=True,
            )
        running = Running(pid=process.pid, port=port, master_port=ports[0], key_id=key_id, secret=secret)
        write_private(self.folder / "server.json", running.model_dump_json())
        return running

    def _wait(self, running: Running, *, retries: bool) -> bool:
        """Wait until the server answers; with ``retries``, return False where it ended because a port was taken."""
        deadline = time.monotonic() + _START_SECONDS
        while not (_answers(running) and holds_data(running)):
            if time.monotonic() > deadline or not is_alive(running.pid):
                log = (self.folder / "server.log").read_text("utf-8", "replace")
                if retries and _PORT_IS_TAKEN in log and not is_alive(running.pid):
                    return False
                raise EndpointUnreachableError(
                    f"the local S3 server in {self.folder} did not start. Its log ends with:\n{log[-_LOG_BYTES:]}",
                    remedy=f"Read {self.folder / 'server.log'}; to begin anew, remove {self.folder}.",
                )
            time.sleep(PAUSE)
        return True


def find_program() -> str:
    """Find SeaweedFS beside this Python, or on the PATH; ``SPEC_INVALID`` says how to get it."""
    beside = shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
    program = beside or shutil.which(PROGRAM)
    if program is None:
        raise SpecInvalidError(
            f"--local needs the S3 server SeaweedFS, and no program {PROGRAM!r} was found beside {sys.executable} or "
            "on the PATH.",
            remedy=(
                f"On x86-64 Linux: {describe_install('local')}. Elsewhere install SeaweedFS from its own site, or run "
                "any S3 server and name its endpoint and keys under 'destination'."
            ),
        )
    return program


def make_bucket(access: Access) -> None:
    """Create the bucket that ``access`` names, unless it is there."""
    s3 = aws.Clients(access).s3
    try:
        s3.create_bucket(Bucket=access.bucket)
    except aws.ClientError as error:
        # It is there, or another command has made it in the same moment.
        if aws.read_error_code(error) not in ("BucketAlreadyExists", "BucketAlreadyOwnedByYou"):
            raise aws.explain(error, doing=f"s3:CreateBucket on s3://{access.bucket}", access=access) from error
        return
    # As in the stacks: S3 ends the uploads that a killed load has left.
    s3.put_bucket_lifecycle_configuration(Bucket=access.bucket, LifecycleConfiguration={"Rules": [_LIFECYCLE]})


def fill_keys(sql: str) -> str:
    """Put the server's keys into SQL that names them: they open nothing but a server of this machine."""
    for name in (KEY_VARIABLE, SECRET_VARIABLE):
        sql = sql.replace(f"<value of ${{env:{name}}}>", os.environ.get(name, ""))
    return sql


def _answers(running: Running) -> bool:
    """Return True if the server is up and knows our keys: another program may have the port by now."""
    try:
        socket.create_connection(("127.0.0.1", running.port), timeout=1).close()
        aws.Clients(running.make_access("none")).s3.list_buckets()
    except (OSError, aws.ClientError, aws.BotoCoreError):
        return False
    return True


def holds_data(running: Running) -> bool:
    """Return True if the master knows the server's volumes: until then an object of before is InternalError."""
    connection = http.client.HTTPConnection("127.0.0.1", running.master_port, timeout=1)
    try:
        connection.request("GET", "/dir/status")
        return bool(json.load(connection.getresponse())["Topology"]["DataCenters"])
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return False
    finally:
        connection.close()


def _make_identities(key_id: str, secret: str) -> dict[str, Any]:
    credentials = [{"accessKey": key_id, "secretKey": secret}]
    return {"identities": [{"name": "lakewriter", "credentials": credentials, "actions": ["Admin"]}]}


def _make_command(program: str, data: Path, port: int, identities: Path, ports: Sequence[int]) -> list[str]:
    return [
        program,
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        # A bucket takes seven volumes at once; they grow as they are filled.
        "-master.volumeSizeLimitMB=256",
        "-volume.max=2000",
        f"-volume.minFreeSpace={aws.LEAST_FREE // 2**20}MiB",
        # No other server has to hear that this one goes.
        "-volume.preStopSeconds=0",
        "-filer",
        "-s3",
        f"-s3.port={port}",
        # Both would listen on ports of their own, the same for every server.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={identities}",
        *(f"-{role}.port={number}" for role, number in zip(_ROLES, ports, strict=False)),
        *(f"-{role}.port.grpc={number}" for role, number in zip((*_ROLES, "s3"), ports[len(_ROLES) :], strict=True)),
    ]
