"""In place of Spark's session, for sources that the tasks read themselves: they run here, one after the other.

Messages and bare Parquet files are such sources. Everything else of a load is the product's own.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.sql.files.maxPartitionBytes": "134217728b",
    "spark.sql.files.openCostInBytes": "4194304",
    "spark.sql.files.minPartitionNum": "1",
}
"""Spark's own defaults, but for the last: one partition where the files do not ask for more."""
_ONE_AT_A_TIME: Final = threading.Lock()


class Rdd:
    """Items, each in a partition of its own."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = list(items)

    def map(self, work: Callable[[Any], Any]) -> "Rdd":
        """At once."""
        return Rdd([work(item) for item in self._items])

    def mapPartitionsWithIndex(self, work: Callable[[int, Iterator[Any]], Iterator[Any]], **_: Any) -> "Rdd":  # noqa: N802
        """At once, and one at a time: of Spark's tasks, too, each has a process of its own."""
        with _ONE_AT_A_TIME:
            return Rdd([found for number, item in enumerate(self._items) for found in work(number, iter([item]))])

    def mapPartitions(self, work: Callable[[Iterator[Any]], Iterator[Any]]) -> "Rdd":  # noqa: N802
        """The same, without the numbers."""
        return self.mapPartitionsWithIndex(lambda _, items: work(items))

    def collect(self) -> list[Any]:
        """The items."""
        return self._items


class Context:
    """What distributes pieces of files."""

    master = "local[1]"
    defaultParallelism = 2  # noqa: N815

    def getLocalProperty(self, _: str) -> str | None:  # noqa: N802
        """Of a thread, which has none."""
        return None

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        """Nothing goes by it."""

    def parallelize(self, items: Iterable[Any], _: int) -> Rdd:
        """The items, as they are."""
        return Rdd(items)


class _Settings:
    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._settings.get(name, default)


class _Session:
    def __init__(self, settings: dict[str, str]) -> None:
        self.conf, self.sparkContext = _Settings(settings), Context()


def local_session(partitions: int = 1) -> SparkSession:
    """A session without Java, which reads small files in so many partitions where there are as many files."""
    return cast(SparkSession, _Session(SETTINGS | {"spark.sql.files.minPartitionNum": str(partitions)}))
