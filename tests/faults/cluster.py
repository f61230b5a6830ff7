"""A cluster of some executors on this machine, where tasks are tried again."""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from lakewriter.source.java import find_java
from tests.faults.process import ROOT

CLUSTER: Final = "local-cluster[2,1,1024]"
"""Each executor runs a task at a time, and has 1 GB. The cluster's master and workers are in the driver's Java."""
LAUNCHER: Final = """#!/bin/sh
for a
do
    shift
    [ "$before" != --hostname ] || a=127.0.1.$(($$ % 250 + 1))
    before=$a
    [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"
done
exec {java} "$@"
"""
"""Each executor has a host of its own, by an address of this machine: Spark runs no copy of a task on the same host."""
SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
}


def make_java(folder: Path) -> str:
    """A JAVA_HOME whose java knows no module that Spark asks for, as the product makes one for itself."""
    launcher = folder / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER.format(java=find_java(os.environ)), "utf-8")
    launcher.chmod(stat.S_IRWXU)
    return str(launcher.parents[1])


def make_environment(java: str, *, master: str = CLUSTER, **settings: str) -> dict[str, str]:
    """What starts Spark on the cluster, with ``settings``."""
    options = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    return {
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"--master {master} --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 "
        f"--conf spark.executorEnv.PYTHONPATH={ROOT / 'job'}:{ROOT} {options} pyspark-shell",
    }
