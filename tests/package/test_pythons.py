"""The wheel and the source distribution on every Python that they take, on a machine without any other Java."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.package.environments import ROOT, Environment, write_spark_pins
from tests.package.use import use
from tests.support.server import StrictAws

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(1800)]


def find_python(version: str) -> str:
    """An interpreter of this version: on the PATH, or where pyenv and uv keep theirs."""
    kept = [
        *Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(f"{version}.*/bin/python"),
        *Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"),
    ]
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        # What is on the PATH may be a stand-in of pyenv's for a version that is not chosen.
        if (
            candidate
            and subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0
        ):
            return candidate
    pytest.skip(f"no Python {version} here: install it, by 'uv python install {version}' for one")


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_wheel_with_java(version: str, wheel: Path, aws: StrictAws, tmp_path: Path) -> None:
    environment = Environment(tmp_path, find_python(version), java=False)
    spark = write_spark_pins(tmp_path / "spark.txt")
    environment.pip("install", "--require-hashes", "-r", str(ROOT / "requirements-job.txt"), "-r", str(spark))
    environment.pip("install", f"{wheel}[java]")
    assert environment.pip("check") == "No broken requirements found.\n"
    # Commands of the system, of which the Java is not one.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "uname", "env", "cat", "rm", "ps", "nice", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment.variables = {"PATH": f"{environment.home / 'bin'}:{tools}", "PYTHONWARNINGS": "error"}
    use(environment, aws)


EXTRAS = "java,local,lineage,infra"


def fill_folder(folder: Path, wheel: Path, environment: Environment) -> None:
    """All that every extra needs, as an index that is a folder; the source distribution needs setuptools too."""
    folder.mkdir()
    (source,) = wheel.parent.glob("lakewriter-*.tar.gz")
    for file in (wheel, source):
        shutil.copy(file, folder)
    # Spark has no wheel in the index: pip makes one.
    environment.pip("wheel", "--quiet", "--wheel-dir", str(folder), "setuptools>=77", f"{wheel}[{EXTRAS}]")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_extra_from_a_folder(version: str, wheel: Path, tmp_path: Path) -> None:
    python = find_python(version)
    folder, extras = tmp_path / "folder", f"lakewriter[{EXTRAS}]"
    fill_folder(folder, wheel, Environment(tmp_path / "first", python, java=False))
    for form in ("--only-binary", "--no-binary"):
        environment = Environment(tmp_path / form.strip("-"), python, java=False)
        environment.pip("install", "--quiet", "--no-index", "--find-links", str(folder), form, "lakewriter", extras)
        assert environment.pip("check") == "No broken requirements found.\n"
        command = str(environment.home / "bin" / "lakewriter")
        listed = environment.run(command, "docs")
        assert (listed.returncode, "first-hour" in listed.stdout) == (0, True), listed.stderr
        page = environment.run(command, "docs", "first-hour")
        assert page.stdout.strip().startswith("# ") or "first hour" in page.stdout.lower()
        shutil.rmtree(environment.home)
