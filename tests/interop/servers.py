"""Real S3 servers, each a process on this machine with one bucket and one key.

SeaweedFS and rclone come from PyPI; versitygw is built by Go where there is Go, once a machine.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "acme-lake"
KEY = SECRET = "testing"  # as the Spark session of the tests has them
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

Command = Callable[[Path, int], list[str]]


@dataclass
class RealS3:
    """A running server, with the questions that tests ask of it."""

    name: str
    url: str

    def client(self, service: Any) -> Any:
        """A client of its own, without retries."""
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, s3={"addressing_style": "path"})
        keys: dict[str, Any] = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
        return boto3.client(service, endpoint_url=self.url, config=config, **keys)

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Every object, by key."""
        s3 = self.client("s3")
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def uploads(self, bucket: str) -> list[tuple[str, str]]:
        """Key and id of each upload that is neither completed nor aborted."""
        return [(upload["Key"], upload["UploadId"]) for upload in self._uploads(bucket)]

    def _uploads(self, bucket: str) -> list[dict[str, Any]]:
        s3 = self.client("s3")
        try:
            return s3.list_multipart_uploads(Bucket=bucket).get("Uploads") or []
        except s3.exceptions.NoSuchUpload:  # rclone's answer where there is none
            return []

    def empty(self) -> None:
        """As it was at its start."""
        s3 = self.client("s3")
        for key, upload in self.uploads(BUCKET):
            s3.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)
        for key in self.objects(BUCKET):
            s3.delete_object(Bucket=BUCKET, Key=key)


def _seaweedfs(folder: Path, port: int) -> list[str]:
    identity = {"accessKey": KEY, "secretKey": SECRET}
    access = '{"identities":[{"name":"interop","credentials":[%s],"actions":["Admin"]}]}'
    (folder / "s3.json").write_text(access % str(identity).replace("'", '"'), "utf-8")
    ports = {"master": free_port(), "volume": free_port(), "filer": free_port()}
    return [
        _beside_python("weed"),
        "server",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=400",
        "-filer",
        "-s3",
        f"-s3.port={port}",
        # Else it listens on fixed ports for these, and no two servers can run at once.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={folder / 's3.json'}",
        *(f"-{role}.port={number}" for role, number in ports.items()),
        *(f"-{role}.port.grpc={number}" for role, number in zip([*ports, "s3"], _free_ports(4), strict=True)),
    ]


def _versitygw(folder: Path, port: int) -> list[str]:
    (folder / "data").mkdir()
    (folder / "metadata").mkdir()
    options = ["--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{port}"]
    return [_built_by_go(), *options, "posix", "--sidecar", str(folder / "metadata"), str(folder / "data")]


def _rclone(folder: Path, port: int) -> list[str]:
    (folder / "data").mkdir()
    options = ["--vfs-cache-mode", "full", "--cache-dir", str(folder / "cache"), "--config", "/dev/null"]
    keys = ["--auth-key", f"{KEY},{SECRET}"]
    return [_beside_python("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", *keys, *options, f"{folder}/data"]


SERVERS: dict[str, Command] = {"seaweedfs": _seaweedfs, "versitygw": _versitygw, "rclone": _rclone}


@contextmanager
def serving(name: str, folder: Path) -> Iterator[RealS3]:
    """The server with its bucket; a test that asks for one that cannot be had is skipped with the reason."""
    port = free_port()
    command = SERVERS[name](folder, port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        server = RealS3(name, f"http://127.0.0.1:{port}")
        _make_bucket(server, process, folder / "log")
        yield server
    finally:
        process.kill()
        process.wait()


def _make_bucket(server: RealS3, process: subprocess.Popen[bytes], log: Path) -> None:
    last: Exception | None = None
    for _ in range(240):
        try:
            server.client("s3").create_bucket(Bucket=BUCKET)
            server.client("s3").put_object(Bucket=BUCKET, Key="ready", Body=b"1")
            server.client("s3").delete_object(Bucket=BUCKET, Key="ready")
            return
        except (BotoCoreError, ClientError) as error:
            last = error
            if process.poll() is not None:
                break
            time.sleep(0.25)
    raise RuntimeError(f"{server.name} did not start: {last}; it said: {log.read_text('utf-8')[-2000:]}")


def _beside_python(program: str) -> str:
    found = shutil.which(program, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{program} is not installed beside {sys.executable}: its wheel is for x86_64 Linux only")
    return found


def _built_by_go() -> str:
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lakewriter" / VERSITYGW.split("@")[1]
    program = folder / "versitygw"
    if program.exists():
        return str(program)
    if os.environ.get("LAKEWRITER_INTEROP") != "all":
        pytest.skip("versitygw is not built: set LAKEWRITER_INTEROP=all to build it with Go, which takes two minutes")
    if shutil.which("go") is None:
        pytest.skip("versitygw is built with Go, which is not on this machine")
    built = subprocess.run(
        ["go", "install", VERSITYGW], env=os.environ | {"GOBIN": str(folder)}, capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip(f"go install {VERSITYGW} failed: {built.stderr.decode()[-500:]}")
    return str(program)


def free_port() -> int:
    """A port that nothing listens on now."""
    return _free_ports(1)[0]


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
