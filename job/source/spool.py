"""Messages that come through a pipe, put into files so that tasks can read them: standard input, or a connector's."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pyspark.sql import SparkSession

from job.errors import SourceFailedError, SpecInvalidError

_TAIL: Final = 2000
"""Characters of a connector's standard error that a message shows."""
_BLOCK: Final = 1024 * 1024


@contextmanager
def spool_folder(spark: SparkSession) -> Iterator[Path]:
    """A folder that goes away; ``SPEC_INVALID`` where the tasks run on machines that do not see it."""
    if not (spark.sparkContext.master or "").startswith("local"):
        raise SpecInvalidError(
            "messages from a pipe lie on the driver's disk, which the tasks of a cluster do not see.",
            remedy="Write the messages to S3 first and name them in source.messages, or run with a local master.",
        )
    with tempfile.TemporaryDirectory(prefix="lakewriter-messages-") as folder:
        yield Path(folder)


def spool_input(stream: IO[bytes], folder: Path) -> Path:
    """All of a stream in one file."""
    path = folder / "messages.jsonl"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, _BLOCK)
    return path


def run_connector(command: Sequence[str], cwd: Path, state: str | None, folder: Path) -> tuple[Path, str]:
    """What a connector prints, in a file, and why it failed, blank where it did not."""
    path, arguments = folder / "messages.jsonl", list(command)
    if state is not None:
        (folder / "state.json").write_text(state, "utf-8")
        arguments += ["--state", str(folder / "state.json")]
    with path.open("wb") as out, (folder / "errors.txt").open("w+b") as errors:
        try:
            ended = subprocess.run(arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, check=False)
        except OSError as error:
            raise SourceFailedError(
                f"the connector {command[0]!r} cannot be run: {error}", remedy="Install it, or name its full path."
            ) from error
        errors.seek(0)
        said = errors.read().decode(errors="replace")[-_TAIL:].strip()
    failure = f"the connector {command[0]!r} ended with exit code {ended.returncode}: {said}"
    return path, failure if ended.returncode else ""
