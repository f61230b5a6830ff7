"""Set UTC as the default time zone of every JVM that reads.

JDBC drivers, and Spark's reader of ORC, make java.sql.Timestamp, Date and Time of what they read. These hold a wall
clock of the JVM's default zone, which spark.sql.session.timeZone does not change. In another zone a time that its
clocks never showed (daylight saving, local mean time before 1900) would be stored shifted, and a time of day by its
offset.
"""

import re
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewriter.errors import SpecInvalidError

UTC_OPTION: Final = "-Duser.timezone=UTC"

EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"

_ZONE: Final = "reflect('java.time.ZoneId', 'systemDefault')"


def add_utc(options: str) -> str:
    """Append our option to a JVM's options: if a property is set twice, the last value counts."""
    return f"{options} {UTC_OPTION}".strip()


def is_started() -> bool:
    """Return True if a Spark context runs in this process."""
    return SparkContext._active_spark_context is not None


def read_submitted(key: str) -> str:
    """Return a setting of spark-submit or spark-defaults.conf before a context exists; blank if it is not set."""
    # Starts the JVM if spark-submit has not: the JVM reads the defaults.
    SparkContext._ensure_initialized()
    conf = SparkContext._jvm.org.apache.spark.SparkConf()  # type: ignore[union-attr]
    return str(conf.get(key, ""))


def set_driver_zone(spark: SparkSession) -> None:
    """Set UTC for the driver of our session, which spark-submit may have started in another zone."""
    zones = _get_jvm(spark).java.util.TimeZone
    zones.setDefault(zones.getTimeZone("UTC"))


def require_utc(spark: SparkSession) -> None:
    """Raise ``SPEC_INVALID`` if the driver of a foreign session, or one of its executors, is in another zone.

    The zone is not changed: the session's owner would see other values from then on.
    """
    zones = {"driver": str(_get_jvm(spark).java.time.ZoneId.systemDefault())}
    # Where there is no cluster, the driver is the executor.
    if not re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)):
        tasks = spark.sparkContext.defaultParallelism
        rows = spark.range(0, tasks, 1, tasks).selectExpr(f"{_ZONE} AS zone").distinct().collect()
        zones |= {"executor": next((row[0] for row in rows if not _is_utc(spark, row[0])), "UTC")}
    for process, zone in zones.items():
        if not _is_utc(spark, zone):
            raise SpecInvalidError(
                f"the {process} of the running Spark session has the time zone {zone!r}, expected 'UTC': times from "
                "JDBC and ORC would be stored shifted.",
                remedy=f"Start the session with spark.driver.extraJavaOptions and {EXECUTOR_OPTIONS} set to "
                f"{UTC_OPTION}, or with TZ=UTC in the environment.",
            )


def _is_utc(spark: SparkSession, zone: str) -> bool:
    jvm = _get_jvm(spark)
    rules = jvm.java.time.ZoneId.of(zone).getRules()
    return bool(rules.isFixedOffset()) and rules.getOffset(jvm.java.time.Instant.EPOCH).getTotalSeconds() == 0


def _get_jvm(spark: SparkSession) -> Any:
    return spark._jvm
