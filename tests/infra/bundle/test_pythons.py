"""A bundle for each Python that the EMR release has."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from infra.bundle.build import build
from infra.bundle.dependencies import PYTHONS
from infra.settings import ROOT
from tests.support.bundles import find_interpreter


def fetch(_requirements: Path, _architecture: str, to: Path) -> None:
    (to / "package.py").write_text("", "utf-8")


def test_archive_says_which_python_it_is_for(tmp_path: Path) -> None:
    marks = []
    for python in PYTHONS:
        manifest = build(tmp_path, ["x86_64"], python=python, fetch=fetch)
        with zipfile.ZipFile(tmp_path / "dependencies-x86_64.zip") as packed:
            marks.append((manifest.python, json.loads(packed.read("lakewriter-bundle.json"))["python"]))
    # Nothing of the one before is reused.
    assert marks == [("3.11", "3.11"), ("3.13", "3.13")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("python", PYTHONS)
def test_packages_are_for_their_python(tmp_path: Path, python: str) -> None:
    """And it imports them, and the job, where there is such an interpreter."""
    build(tmp_path / "bundle", ["x86_64"], python=python)
    unpacked = tmp_path / "dependencies"
    shutil.unpack_archive(tmp_path / "bundle" / "dependencies-x86_64.zip", unpacked)
    tags = {found[1] for path in unpacked.rglob("*.so") if (found := re.search(r"\.cpython-(\d+)-", path.name))}
    assert tags == {python.replace(".", "")}
    interpreter = find_interpreter(python)
    if interpreter is None:
        pytest.skip(f"there is no Python {python} on this machine")
    modules = "pyarrow.dataset, pyiceberg.catalog.glue, boto3, datafusion, zstandard, lakewriter.cli.main"
    environment = {"PYTHONPATH": f"{unpacked}:{ROOT / 'job'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [interpreter, "-c", f"import {modules}"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
