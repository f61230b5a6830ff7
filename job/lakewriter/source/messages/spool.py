"""Store messages from a pipe for the tasks to read: standard input, or the output of a connector."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Protocol

from pyspark.sql import SparkSession

from lakewriter.aws import BotoCoreError, ClientError, Clients
from lakewriter.errors import SourceFailedError
from lakewriter.source.messages.connector_secrets import ConnectorMask, make_environment
from lakewriter.source.messages.splits import MessageFiles
from lakewriter.source.storage import BucketStore, Disk
from lakewriter.source.task_sizes import SourceFile
from lakewriter.spec.stream import MessageSource

_TAIL: Final = 2000
"""The number of characters of a connector's standard error that a message shows."""
_SECRET_BYTES: Final = 64 * 1024
"""The limit for the length of a secret, in any form."""
_BLOCK: Final = 1024 * 1024


class Spool(Protocol):
    """A store for one stream of bytes."""

    def put(self, stream: IO[bytes]) -> MessageFiles:
        """Store all of the stream as a file that the tasks can read."""


class LocalSpool:
    """A folder of this machine, on which the tasks run too."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "messages.jsonl"

    def put(self, stream: IO[bytes]) -> MessageFiles:
        """See ``Spool``."""
        with self._path.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK)
        return MessageFiles(Disk(), (SourceFile(str(self._path), self._path.stat().st_size),))


class BucketSpool:
    """A control object in the destination's bucket, for tasks on other machines. The driver's disk stores nothing."""

    def __init__(self, clients: Clients, key: str) -> None:
        self._clients, self._key = clients, key

    def put(self, stream: IO[bytes]) -> MessageFiles:
        """See ``Spool``."""
        size = self._clients.upload_stream(stream, self._key)
        path = f"{self._clients.access.bucket}/{self._key}"
        return MessageFiles(BucketStore(self._clients.access), (SourceFile(path, size),))

    def clear(self) -> None:
        """Delete the object. A failure does not end the load: the object is deleted with the load's control objects."""
        with suppress(BotoCoreError, ClientError):
            self._clients.s3.delete_object(Bucket=self._clients.access.bucket, Key=self._key)


@contextmanager
def spool(spark: SparkSession, clients: Clients, key: str) -> Iterator[Spool]:
    """Open the spool that the tasks can read, and clear it in the end; ``key`` is the key of its object, if it
    has one.
    """
    if (spark.sparkContext.master or "").startswith("local"):
        with tempfile.TemporaryDirectory(prefix="lakewriter-messages-") as folder:
            yield LocalSpool(Path(folder))
        return
    remote = BucketSpool(clients, key)
    try:
        yield remote
    finally:
        remote.clear()


def run_connector(source: MessageSource, state: str | None, to: Spool) -> tuple[MessageFiles, str, ConnectorMask]:
    """Run a connector.

    Return its output in a spool; the reason why it failed, blank if it did not; and the mask of its secrets.
    """
    environment = make_environment(source.environment, os.environ)
    mask = ConnectorMask(source, environment)
    with tempfile.TemporaryDirectory(prefix="lakewriter-connector-") as name, tempfile.TemporaryFile() as errors:
        arguments = list(source.command)
        if state is not None:
            path = Path(name) / "state.json"
            path.write_text(state, "utf-8")
            arguments += ["--state", str(path)]
        try:
            process = subprocess.Popen(
                arguments,
                cwd=source.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise SourceFailedError(
                f"the connector {source.command[0]!r} cannot be run: {error}",
                remedy="Install it, or name its full path.",
            ) from error
        with process:
            try:
                files = to.put(process.stdout)  # type: ignore[arg-type]
            except BaseException:
                # It may wait for its source, and leaving the context waits for it.
                process.terminate()
                raise
        reason = _read_end(errors, mask) if process.returncode else ""
    failure = f"the connector {source.command[0]!r} ended with exit code {process.returncode}" + (
        reason and f": {reason}"
    )
    return files, failure if process.returncode else "", mask


def _read_end(errors: IO[bytes], mask: ConnectorMask) -> str:
    """Return the end of a connector's standard error, without its secrets."""
    # More is read than shown, so that no part of a secret is shown that begins before.
    errors.seek(max(errors.seek(0, os.SEEK_END) - _TAIL - _SECRET_BYTES, 0))
    output = errors.read().decode(errors="replace")
    return mask.of_texts.mask(output)[-_TAIL:].strip() if output.strip() else ""
