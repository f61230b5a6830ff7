"""Feed records that still arrive: Spark's tasks take files of them as they come, until the last one."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from lakewriter.documents.types import DOCUMENTS
from lakewriter.errors import SourceFailedError, WorkerDiedError
from lakewriter.source.messages.backlog import PIECE_BYTES, PieceFile, read_piece
from lakewriter.source.request import Body, Feed
from lakewriter.source.spark_failures import SPARK_ERRORS, Origin

_ENDED, _GIVEN_UP = "ended", "given-up"
"""Files by which the tasks know that no more records come, or that the load has failed."""
_TAKEN: Final = ".taken"
_SHORTEST, _LONGEST = 0.01, 0.1
"""The shortest and the longest pause between two listings, in seconds."""
_ROWS: Final = 8192


class ArrivingFeed(Feed):
    """Records in one partition, or in several as soon as these are worth it.

    Another task is started, up to ``most``, if ``worth`` bytes have come for each running task and the tasks are
    behind. All take files from one folder: none waits for records that another one has.
    """

    kind = "splits"
    schema = DOCUMENTS
    reason = "Airbyte messages, taken by the tasks as they arrive"

    def __init__(self, spark: SparkSession, folder: Path, table: str, *, most: int = 1, worth: int = 0) -> None:
        folder.mkdir()
        self._spark, self._folder, self._worth = spark, folder, worth
        self._origin = Origin(table, "Airbyte messages")
        self.partitions = most
        self.handed = 0
        """The size of all files that were handed over, in bytes."""

    def hand(self, piece: PieceFile) -> None:
        """Hand one more file to the tasks."""
        with suppress(FileNotFoundError):
            # The folder is gone if the load has failed.
            piece.path.rename(self._folder / piece.path.name)
        self.handed += piece.size

    def end(self) -> None:
        """Signal to the tasks that no more records come."""
        with suppress(FileNotFoundError):
            (self._folder / _ENDED).touch()

    def give_up(self) -> None:
        """Let the tasks fail: their records cannot be committed."""
        with suppress(FileNotFoundError):
            (self._folder / _GIVEN_UP).touch()

    @property
    def waiting_bytes(self) -> int:
        """The size of files that no task has taken yet, in bytes."""
        return sum(_measure(self._folder / name) for name in _list(self._folder) if name.isdigit())

    def run(self, body: Body) -> list[str]:
        """Return what ``body`` yields in the tasks, in the order of the partitions."""
        if not self.handed and (self._folder / _ENDED).exists():
            return []
        with ThreadPoolExecutor(self.partitions, thread_name_prefix="arriving") as pool:
            tasks = [pool.submit(self._run_task, body, 0)]
            while left := [task for task in tasks if not task.done()]:
                if self._is_behind(len(tasks)):
                    tasks.append(pool.submit(self._run_task, body, len(tasks)))
                wait(left, _LONGEST, FIRST_COMPLETED)
                self._raise_first_error(tasks)
            self._raise_first_error(tasks)
            return [text for task in tasks for text in task.result()]

    def merge(self) -> "ArrivingFeed":
        """Return the same records in one partition."""
        self.partitions = 1
        return self

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_behind(self, tasks: int) -> bool:
        # A task takes two files while the next ones are written.
        enough = self.handed >= self._worth * (tasks + 1) and self.waiting_bytes > 2 * PIECE_BYTES
        return tasks < self.partitions and enough

    def _raise_first_error(self, tasks: list[Future[list[str]]]) -> None:
        error = next((task.exception() for task in tasks if task.done() and task.exception()), None)
        if error is None:
            return
        # The others are not to wait for more.
        self.give_up()
        if isinstance(error, SPARK_ERRORS):
            raise self._origin.make_error(error) from error
        raise error

    def _run_task(self, body: Body, partition: int) -> list[str]:
        task = partial(_run_task, self._folder, body)
        return list(self._spark.sparkContext.parallelize([partition], 1).mapPartitions(task).collect())


def _run_task(folder: Path, body: Body, partitions: Iterator[int]) -> Iterator[str]:
    context = TaskContext.get()
    if context is not None and context.attemptNumber():
        # A session with spark.task.maxFailures above 1, or with speculation, would lose what the first run has deleted.
        raise WorkerDiedError(
            "a task that takes records as they arrive was started again, and what its first run took is gone.",
            remedy="Run the sync again: it goes on from the last STATE that came back.",
        )
    for partition in partitions:
        yield from body(partition, take_arriving(folder, partition))


def take_arriving(
    folder: Path, partition: int, sleep: Callable[[float], None] = time.sleep
) -> Iterator[pa.RecordBatch]:
    """Yield the records that come, until they end. Delete each file as soon as it is read."""
    pause = _SHORTEST
    while True:
        names = _list(folder)
        if _GIVEN_UP in names:
            raise SourceFailedError("the input ended before a STATE that covers these records.")
        path = next(
            filter(None, (_claim(folder / name, partition) for name in sorted(filter(str.isdigit, names)))), None
        )
        if path is not None:
            batch = read_piece(path)
            path.unlink()
            yield from (batch.slice(start, _ROWS) for start in range(0, batch.num_rows, _ROWS))
            pause = _SHORTEST
        elif _ENDED in names:
            return
        else:
            sleep(pause)
            pause = min(2 * pause, _LONGEST)


def _list(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except FileNotFoundError:
        return [_GIVEN_UP]


def _measure(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _claim(path: Path, partition: int) -> Path | None:
    """Rename the file for this task and return its path; None if another task was first."""
    mine = path.with_name(f"{path.name}.{partition}{_TAKEN}")
    try:
        path.rename(mine)
    except FileNotFoundError:
        return None
    return mine
