"""Where the bytes go: a real S3 server on this machine, or one that lets them go."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.servers import BUCKET, KEY, SECRET, serving

__all__ = ["BUCKET", "credentials", "null_sink", "real_server"]


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
    process = subprocess.Popen([sys.executable, "-m", "bench.null_sink"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
