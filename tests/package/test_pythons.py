"""The wheel with its extra for Java on every Python that it takes, on a machine without any other Java."""

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
