"""Read the checkpoint of a streaming query: what Spark has planned, and where each source goes on."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewriter.errors import SpecInvalidError
from lakewriter.source.spark_failures import SPARK_ERRORS, Origin

Offsets = dict[str, int]
"""The next offset of each partition, by ``topic/partition``."""
TOPICS: Final = "topics"
"""A folder of the checkpoint that is not Spark's: an empty file ``topics/{topic}/{id}`` for each topic read."""
_ABSENT: Final = "java.io.FileNotFoundException"


@dataclass(frozen=True)
class BatchPlan:
    """The checkpoint's plan of a batch, with the time of planning.

    ``log`` is the file that Spark writes once, before it calls the batch, in checkpoints of all kinds.
    """

    number: int
    log: bytes

    @property
    def digest(self) -> str:
        """A digest that differs if the plan was made again under the same number."""
        return hashlib.sha256(self.log).hexdigest()


@dataclass(frozen=True)
class Position:
    """Where a source that counts its rows is: the next batch begins at ``starts``, and ``ends`` are where the last plan
    ends. They are equal once that batch is done."""

    batch: int
    starts: Offsets
    ends: Offsets


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint that ``origin`` names, read through Spark's file systems."""

    spark: SparkSession
    origin: Origin

    @classmethod
    def find(cls, spark: SparkSession, query: str, table: str) -> "Checkpoint":
        """Find the checkpoint of a streaming query in this process. Raise ``SPEC_INVALID`` if no such query runs."""
        jvm = spark._jvm
        assert jvm is not None
        # Spark's Python API has neither the queries of other sessions nor the path of a checkpoint.
        running = spark._jsparkSession.sharedState().activeStreamingQueries().get(jvm.java.util.UUID.fromString(query))
        if running is None:
            raise SpecInvalidError(f"table {table!r}: query {query} does not run in this process.")
        path = str(running.resolvedCheckpointRoot())
        return cls(spark, Origin(table, "the DataFrame", checkpoint=path))

    def read_plan(self, number: int) -> BatchPlan:
        """Read the plan of a batch."""
        return BatchPlan(number, self.read(f"offsets/{number}"))

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder of the checkpoint; none where it is not there."""
        try:
            path, system = self._open(folder)
            return [str(status.getPath().getName()) for status in system.listStatus(path)]
        except SPARK_ERRORS as error:
            if _ABSENT in str(error):
                return []
            raise self.origin.explain_checkpoint(str(error)) from error

    def read(self, name: str) -> bytes:
        """Read a file of the checkpoint."""
        try:
            path, system = self._open(name)
            stream = system.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except SPARK_ERRORS as error:
            raise self.origin.explain_checkpoint(str(error)) from error

    def read_starts(self, plan: BatchPlan) -> list[Offsets]:
        """Read where a planned batch begins in each source; empty for sources that count no rows."""
        ends = read_offsets(plan.log)
        if plan.number:
            return read_offsets(self.read(f"offsets/{plan.number - 1}")) if any(ends) else []
        # Kafka's source stores its first offsets in a file of its own.
        return [read_offsets(self.read(f"sources/{source}/0"))[0] if end else {} for source, end in enumerate(ends)]

    def read_positions(self) -> list[Position]:
        """Read where each source that counts its rows is; none before the first batch is planned."""
        planned, done = self._find_last("offsets"), self._find_last("commits")
        if planned is None:
            return []
        plan = self.read_plan(planned)
        ends = read_offsets(plan.log)
        starts = ends if planned == done else self.read_starts(plan)
        return [Position(planned, start, end) for start, end in zip(starts, ends, strict=False) if end]

    def _find_last(self, folder: str) -> int | None:
        return max((int(name) for name in self.list_names(folder) if name.isdecimal()), default=None)

    def list_topics(self) -> set[tuple[str, str]]:
        """Return name and id of each topic that was read."""
        topics = set()
        try:
            path, system = self._open(TOPICS)
            files = system.listFiles(path, True)
            while files.hasNext():
                file = files.next().getPath()
                topics.add((str(file.getParent().getName()), str(file.getName())))
        except SPARK_ERRORS as error:
            if _ABSENT not in str(error):
                raise self.origin.explain_checkpoint(str(error)) from error
        return topics

    def add_topics(self, topics: Iterable[tuple[str, str]]) -> None:
        """Note name and id of topics that are read from now on. A file without content is there whole or not at all."""
        try:
            for name, number in topics:
                path, system = self._open(f"{TOPICS}/{name}/{number}")
                system.create(path, True).close()
        except SPARK_ERRORS as error:
            raise self.origin.explain_checkpoint(str(error)) from error

    def _open(self, name: str) -> tuple[Any, Any]:
        """Return the path of a file or folder of the checkpoint, and its file system."""
        jvm = self.spark._jvm
        assert jvm is not None
        path = jvm.org.apache.hadoop.fs.Path(f"{self.origin.checkpoint}/{name}")
        return path, path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())


def read_offsets(log: bytes) -> list[Offsets]:
    """Read the offsets in a file of Spark's offset log, for each source: by topic and partition for Kafka, empty for
    sources that count no rows.

    The file is a version, metadata, and a line of JSON for each source. A source's own file has no metadata.
    """
    lines = log.decode().splitlines()[1:]
    return [_read_source_offsets(line) for line in (lines[1:] if len(lines) > 1 else lines)]


def _read_source_offsets(line: str) -> Offsets:
    topics = json.loads(line) if line.startswith("{") else {}
    return {
        f"{topic}/{partition}": int(offset)
        for topic, partitions in topics.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
    }
