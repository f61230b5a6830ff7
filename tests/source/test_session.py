import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.logger import PySparkLogger

from lakewriter.source.session import is_configured, silence_query_errors

CONFIGURED = [
    # environment, whether somebody else decides where Spark runs
    ({}, False),
    ({"PYSPARK_GATEWAY_PORT": "1234"}, True),
    ({"MASTER": "yarn"}, True),
    ({"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, True),
    ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}, True),
    ({"PYSPARK_SUBMIT_ARGS": "--packages a:b:1 pyspark-shell"}, False),
]


@pytest.mark.parametrize(("environment", "expected"), CONFIGURED)
def test_is_configured(environment, expected):
    assert is_configured(environment) is expected


@pytest.mark.parametrize(
    ("line", "expected"), [("spark.master yarn", True), ("spark.master=yarn", True), ("# spark.master yarn", False)]
)
def test_is_configured_by_defaults(tmp_path, line, expected):
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\n", "utf-8")
    assert is_configured({"SPARK_CONF_DIR": str(tmp_path)}) is expected


def test_loggers_of_other_threads_are_plain(monkeypatch):
    # The command makes them while it imports a load's modules, and opens the session meanwhile.
    others = []
    thread = threading.Thread(target=lambda: others.append(logging.getLogger("tests.made_meanwhile")))
    choose = logging.setLoggerClass

    def choose_slowly(kind):
        choose(kind)
        if kind is PySparkLogger:
            thread.start()
            thread.join(0.2)

    monkeypatch.setattr(logging, "setLoggerClass", choose_slowly)
    silence_query_errors(["tests.silenced"])
    thread.join()
    assert [type(logger) for logger in others] == [logging.Logger]
    assert logging.getLogger("tests.silenced").level == logging.CRITICAL


STOPPED = """
import os, types
from pyspark import java_gateway
from lakewriter.source.session import open_spark_session
from lakewriter.run.stop import Stopped
launch, begun = java_gateway.Popen, []
def note(*arguments, **options):
    begun.append(launch(*arguments, **options))
    return begun[-1]
def stop(_):
    raise Stopped("SIGTERM")
java_gateway.Popen, java_gateway.time = note, types.SimpleNamespace(sleep=stop)
try:
    open_spark_session("stopped")
except Stopped:
    print(len(begun), begun[0].returncode)
"""


def test_java_ends_with_a_start_that_is_stopped():
    """It stayed behind, without a parent: the folder was gone in which it was to write its port."""
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1 -9\n", "")


SCRIPT = """
from lakewriter.source.session import open_spark_session
import tests.source.tables as tables
spark = open_spark_session("quiet")
print(spark.sparkContext.master, spark.range(1).mapInArrow(tables.count, "n int").collect()[0][0])
"""


@pytest.mark.spark
def test_local_session_is_quiet_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("local[*] 1\n", "", [])
