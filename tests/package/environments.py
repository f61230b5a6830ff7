"""Environments that hold what a file of pins names and nothing else, outside the repository."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from lakewriter.source.java import find_java
from tests.support import java

ROOT = Path(__file__).parents[2]
SPARK = ("pyspark", "py4j")
"""What requirements-job.txt leaves out, since EMR Serverless has it."""

_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\]+)")


def read_pins(file: Path) -> Iterator[tuple[str, str]]:
    """The names and versions in a file that scripts/lock wrote."""
    return ((pin[1], pin[2]) for line in file.read_text("utf-8").splitlines() if (pin := _PIN.match(line)))


def write_spark_pins(to: Path) -> Path:
    """Those of Spark, with their hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.txt").read_text("utf-8"))
    to.write_text("\n".join(entry for entry in entries if entry.startswith(tuple(f"{name}==" for name in SPARK))))
    return to


def build_wheel(folder: Path) -> Path:
    """The wheel, and beside it the source distribution, built from a copy of the tree.

    In the tree setuptools would pack what an earlier build left in build/lib, and leave its own there.
    """
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "node_modules", "cdk.out*", "java")
    shutil.copytree(ROOT, source, ignore=ignored)
    run_pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    shutil.rmtree(source / "build")
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


def run_pip(*arguments: str) -> str:
    """pip, which may do without the index; what it prints."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Environment:
    """A virtual environment, and an empty folder to work in.

    ``java`` is off where a command has to find Java by itself; every command gets ``variables``.
    """

    def __init__(self, folder: Path, python: str = sys.executable, *, java: bool = True) -> None:
        self.home, self.work, self._java = folder / "environment", folder / "work", java
        self.variables: dict[str, str] = {}
        self.work.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", "--without-pip", str(self.home)], check=True)
        self.python = self.home / "bin" / "python"
        (self.packages,) = self.home.glob("lib/python3.*/site-packages")

    def link(self, pins: Path, *more: str) -> None:
        """Let the packages of this process be packages there, as far as they are pinned or named."""
        # One name may have a version for each Python.
        pinned = set(read_pins(pins))
        for name in {name for name, _ in pinned}.union(more):
            try:
                package = distribution(name)
            except PackageNotFoundError:
                # Pinned for other machines.
                continue
            assert name in more or (name, package.version) in pinned, f"{name}: run scripts/setup"
            self._link(package)

    def _link(self, package: Distribution) -> None:
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            link = self.packages / top
            # Some share a folder.
            if not link.exists():
                link.symlink_to(Path(str(package.locate_file(top))))

    def pip(self, *arguments: str) -> str:
        """The pip of this process, on that environment."""
        return run_pip("--python", str(self.python), *arguments)

    def run(self, *command: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command with nothing of this process's environment but where AWS is, Java and the home folder."""
        aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        return subprocess.run(
            command,
            cwd=cwd or self.work,
            env={
                "HOME": str(self.work),
                "NO_PROXY": "127.0.0.1,localhost",
                **(self._list_java() if self._java else {}),
                **aws,
                **self.variables,
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def _list_java(self) -> dict[str, str]:
        """The variables by which this process's Java is found."""
        return {
            "PATH": f"{self.home / 'bin'}:/usr/bin:/bin",
            "JAVA_HOME": str(find_java(os.environ).parents[1]),
            "JDK_JAVA_OPTIONS": java.options(),
        }
