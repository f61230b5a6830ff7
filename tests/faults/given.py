"""Rows that a program writes from a DataFrame, in a process of its own: by the function, or by Spark's writer."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import lakewriter
from lakewriter.report import RunReport
from lakewriter.source.session import open_spark_session
from tests.faults.books import ORDERS, Books, Pace
from tests.faults.process import Process
from tests.load.lakes import Lake
from tests.support.server import StrictAws

FUNCTION: Final = "function"
WRITER: Final = "writer"
WAYS: Final = (FUNCTION, WRITER)
ENTRY: Final = {"table": ORDERS, "schema": "public", "primary_key": ["id"]}
ENTRIES: Final = {FUNCTION: ENTRY, WRITER: ENTRY | {"index": "sparse"}}


def make_frame(spark: SparkSession) -> DataFrame:
    """The rows of ``Books``' orders, in three partitions."""
    return spark.range(0, 30, 1, 3).selectExpr("id", "concat('order ', id) AS text")


def write(lake: Path, way: str, job_id: str, frame: DataFrame) -> None:
    """Write them once."""
    if way == FUNCTION:
        lakewriter.write(frame, lake=lake, table=ORDERS, job_id=job_id)
        return
    lakewriter.register(frame.sparkSession)
    options = {"lake": str(lake), "table": ORDERS, "job_id": job_id}
    frame.write.format("lakewriter").mode("append").options(**options).save()


class GivenLake(Lake):
    """A pipeline that no load reads for."""

    def __init__(self, folder: Path, aws: StrictAws, spark: SparkSession, way: str) -> None:
        super().__init__(folder, aws, spark)
        self.way = way

    def load(self, job_id: str, **_: Any) -> RunReport:
        """A write in this process; what fails is raised."""
        write(self.file, self.way, job_id, make_frame(self._spark))
        started = datetime.now(UTC)
        return RunReport(
            pipeline="flights", job_id=job_id, attempt="", status="done", started_at=started, seconds=0, tables=(),
            requests={},
        )  # fmt: skip


class GivenBooks(Books):
    """Of the three tables ``orders`` alone."""

    pace = Pace(40, 15, 6.0)

    def __init__(self, lake: GivenLake) -> None:
        super().__init__(lake, ORDERS)
        self._way = lake.way
        lake.write(ENTRIES[lake.way])

    def process(self, job: str, **how: Any) -> Process:
        """A program that writes them."""
        process = Process(self.lake.file, job, self.lake.aws.url, **how)
        process.command = [sys.executable, "-m", "tests.faults.given", str(self.lake.file), self._way, job]
        return process

    def _is_numbered(self, indexes: list[int]) -> bool:
        """The writer's tasks number theirs from 2**33 times the partition."""
        if self._way == FUNCTION:
            return super()._is_numbered(indexes)
        return sorted(indexes) == [1 + (partition << 33) + row for partition in range(3) for row in range(10)]


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], sys.argv[3], make_frame(open_spark_session("given")))
