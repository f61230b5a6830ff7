"""Java as the tests start it: with less work before it begins, which is most of what a short load does.

The classes that Spark loads come from an archive, made once and kept in ``build``: a session then starts in about half
the time. https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

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
    spark.sql("SELECT /*+ REPARTITION(2) */ * FROM source WHERE id > 1").mapInArrow(iter, frame.schema).collect()
spark.sparkContext.parallelize([1, 2], 2).map(str).collect()
spark.stop()
"""


@cache
def options() -> str:
    """For ``JDK_JAVA_OPTIONS``; without the archive where this Java cannot make one."""
    java = find_java(os.environ)
    version = subprocess.run([java, "-version"], capture_output=True, check=True).stderr
    name = sha256(version + pyspark.__version__.encode() + _TYPICAL.encode()).hexdigest()[:16]
    archive, tried = FOLDER / f"{name}.jsa", FOLDER / f"{name}.tried"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tried.exists():
            _make(archive)
            tried.touch()
    return f"{QUICK} {_SILENT} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK


def _make(archive: Path) -> None:
    environment = os.environ | {_VARIABLE: f"{QUICK} {_SILENT} -XX:ArchiveClassesAtExit={archive}"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _TYPICAL, folder]
        subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
