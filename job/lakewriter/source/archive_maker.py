"""Make the archive of Java's classes: a short session of what loads do, after which Java writes it."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewriter.source.class_archive import VARIABLE, ClassArchive, make_name
from lakewriter.source.java import find_java
from lakewriter.source.session import open_spark_session

_JAVA: Final = "JDK_JAVA_OPTIONS"
_SILENT: Final = "-Xlog:disable -Xlog:all=error:stderr"
_SECONDS: Final = 1800
"""For Java to end, and to write: at a low priority that may take long on a machine with other work."""
_KEPT_SECONDS: Final = 30 * 24 * 3600
"""A Java or a Spark that was not used for so long has probably been replaced."""
_SUFFIXES: Final = (".jsa", ".lock", ".part")
_NICE: Final = 10


def make_archive(archive: ClassArchive) -> bool:
    """Make the archive. Return False if another process makes it, or if this Java cannot."""
    archive.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with archive.lock.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.utime(archive.lock)
        _remove_old(archive)
        part = archive.folder / f"{archive.key}.part"
        # A maker that was killed may have left it.
        part.unlink(missing_ok=True)
        try:
            _write(part)
            if not part.exists():
                return False
            # Whole or not at all: Java crashes on a part of one.
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(archive.folder / make_name(archive.key, part))
        finally:
            part.unlink(missing_ok=True)
        return True


def _write(path: Path) -> None:
    java = find_java(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder) / "classes"
        given = os.environ.get(_JAVA, "")
        os.environ |= {_JAVA: f"{given} {_SILENT} -XX:DumpLoadedClassList={classes}".strip(), VARIABLE: "off"}
        class_path = _list_classes(folder)
        os.environ[_JAVA] = given
        # One archive for all, Java's own classes too: the Java of some packages comes without an archive of these.
        command = [str(java), *_SILENT.split(), "-Xshare:dump", f"-XX:SharedClassListFile={classes}"]
        command += [f"-XX:SharedArchiveFile={path}", "-cp", class_path]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=_SECONDS)


def _list_classes(folder: str) -> str:
    """Have Java write which classes it loads, and return Spark's class path."""
    spark = open_spark_session("lakewriter archive", only_python=True)
    gateway: Any = SparkContext._gateway
    try:
        class_path = str(gateway.jvm.java.lang.System.getProperty("java.class.path"))
        _use(spark, folder)
    finally:
        spark.stop()
        gateway.shutdown()
        # Java ends when its standard input does, and has written the list then.
        gateway.proc.stdin.close()
        gateway.proc.wait(_SECONDS)
    return class_path


def _use(spark: SparkSession, folder: str) -> None:
    """Run what loads ask of Java: files of each kind, a query, and rows for Python's tasks."""
    frame = spark.range(0, 9, 1, 2).selectExpr("id", "string(id) text", "current_timestamp() at", "decimal(id) number")
    for kind in ("csv", "json", "parquet"):
        frame.write.mode("overwrite").format(kind).save(f"{folder}/{kind}")
        read = spark.read.format(kind).schema(frame.schema).load(f"{folder}/{kind}")
        read.createOrReplaceTempView("source")
        spark.sql("SELECT /*+ REPARTITION(2) */ * FROM source WHERE id > 1").mapInArrow(_keep, frame.schema).collect()
    spark.read.parquet(f"{folder}/parquet").inputFiles()
    spark.sparkContext.parallelize([1, 2], 2).map(str).collect()


def _keep(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _remove_old(archive: ClassArchive) -> None:
    for path in archive.folder.iterdir():
        with suppress(OSError):
            if path.suffix in _SUFFIXES and time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()


if __name__ == "__main__":
    os.nice(_NICE)
    make_archive(ClassArchive(Path(sys.argv[1]), sys.argv[2]))
