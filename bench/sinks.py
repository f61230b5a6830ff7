"""Where the bytes go: a real S3 server on this machine, or one that lets them go."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.servers import BUCKET, KEY, SECRET, serving

__all__ = ["BUCKET", "credentials", "null_sink", "real_server", "slow_source"]


def credentials() -> None:
    """This process and its children reach either sink."""
    os.environ.update(
        AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true"
    )


@contextmanager
def real_server(folder: Path) -> Iterator[str]:
    """SeaweedFS with an empty bucket; its address."""
    folder.mkdir(parents=True)
    with serving("seaweedfs", folder) as server:
        yield server.url


@contextmanager
def null_sink() -> Iterator[str]:
    """A server that keeps nothing of what is uploaded; its address."""
    with _serve("bench.null_sink") as url:
        yield url


@contextmanager
def slow_source(folder: Path) -> Iterator[str]:
    """A server of a folder's files in the bucket ``source``, each of whose answers takes 20 ms; its address."""
    with _serve("bench.slow_source", str(folder)) as url:
        yield url


@contextmanager
def _serve(module: str, *arguments: str) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
