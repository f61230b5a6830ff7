"""Java as the tests start it: with less work before it begins, which is most of what a short load does.

The classes that Spark loads come from an archive, made once and kept in ``build``: a session then takes two thirds of
the work to start. https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark

from lakewriter.source.java import find_java

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "java"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"
_VARIABLE = "JDK_JAVA_OPTIONS"
_TYPICAL = """
import sys
from lakewriter.source.session import open_spark_session
spark = open_spark_session("archive")
folder = sys.argv[1]
frame = spark.range(0, 9, 1, 2).selectExpr("id", "string(id) text", "current_timestamp() at", "decimal(id) number")
for kind in ("csv", "json", "parquet"):
    frame.write.mode("overwrite").format(kind).save(f"{folder}/{kind}")
    read = spark.read.format(kind).schema(frame.schema).load(f"{folder}/{kind}")
    read.createOrReplaceTempView("source")
    rows = spark.sql("SELECT /*+ REPARTITION(2) */ * FROM source WHERE id > 1")
    rows.mapInArrow(lambda batches: batches, frame.schema).collect()
spark.sparkContext.parallelize([1, 2], 2).map(str).collect()
spark.stop()
"""


_MAKING: Final[list[subprocess.Popen[bytes]]] = []
"""Holds the process that makes the archive: Python warns of one that runs when nothing refers to it."""


def options() -> str:
    """For ``JDK_JAVA_OPTIONS``. An archive that is not there, or not yet, is none to Java, which goes on without it."""
    return f"{QUICK} {_SILENT} -XX:SharedArchiveFile={_name_archive()}"


def make_archive_in_background() -> None:
    """Make the archive if nobody has tried: that takes Java as long as ten starts, and no test waits for it."""
    if not _name_archive().with_suffix(".tried").exists():
        command = [sys.executable, "-m", __name__]
        _MAKING.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True))


@cache
def _name_archive() -> Path:
    version = subprocess.run([find_java(os.environ), "-version"], capture_output=True, check=True).stderr
    name = sha256(version + pyspark.__version__.encode() + _TYPICAL.encode()).hexdigest()[:16]
    return FOLDER / f"{name}.jsa"


def _make(archive: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (tried := archive.with_suffix(".tried")).exists():
            return
        part = archive.with_suffix(".part")
        environment = os.environ | {_VARIABLE: f"{QUICK} {_SILENT} -XX:ArchiveClassesAtExit={part}"}
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _TYPICAL, folder]
            subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
        if part.exists():
            part.rename(archive)
        # At the end: what is killed before is made by the next run.
        tried.touch()


if __name__ == "__main__":
    _make(_name_archive())
