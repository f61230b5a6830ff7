"""Follow topics of a real broker by a continuous run into Iceberg tables, and wait for their rows."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.interop.brokers import CONNECTOR, jars_of
from tests.load.lakes import BUCKET, ROOT


def add_spark_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark start with its connector for Kafka; skipped with the reason where that cannot be had."""
    connector = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")


class FollowedLake:
    """A lake whose tables a continuous run merges into; its pipeline and its database have one name."""

    def __init__(self, folder: Path, aws: Any, name: str) -> None:
        self.folder, self._aws, self._name = folder, aws, name

    def write_tables(self, tables: Sequence[dict[str, Any]]) -> None:
        """Write the lake.yaml."""
        destination = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/lake", "region": "us-east-1",
            "catalog": "iceberg", "database": self._name, "tracking": ["deleted"],
        }  # fmt: skip
        content: dict[str, Any] = {"pipeline": self._name, "destination": destination, "tables": list(tables)}
        content |= {"checkpoint": "ck", "interval_seconds": 1}
        (self.folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")

    def begin_run(self) -> "subprocess.Popen[bytes]":
        """Start a continuous run, which writes to ``run.log``."""
        command = [sys.executable, "-m", "lakewriter", "run", str(self.folder / "lake.yaml"), "--continuous", "--json"]
        with (self.folder / "run.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def load_table(self, name: str) -> Table:
        """Load a table as PyIceberg reads it."""
        settings = {"s3.endpoint": self._aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", type="glue", **settings).load_table((self._name, name))

    def await_answer(self, read: Callable[[], Any], is_right: Callable[[Any], bool], seconds: float = 240) -> None:
        """Wait until what is read is right; the end of each log is told where it is not in time."""
        end: float = time.monotonic() + seconds
        got: Any = None
        while time.monotonic() < end:
            try:
                got = read()
            except Exception as error:  # noqa: BLE001 - the table, or its new column, is not there yet
                got = error
            if not isinstance(got, Exception) and is_right(got):
                return
            time.sleep(0.5)
        raise AssertionError((got, *(log.read_text("utf-8")[-3000:] for log in sorted(self.folder.glob("*.log")))))
