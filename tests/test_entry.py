"""What starts the job compares the bundle with the machine before it imports anything that could fail on it."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewriter import entry

BUILT = {"python": "3.11", "architecture": "x86_64", "spark": "4.1"}


@pytest.mark.parametrize(
    ("built", "python", "machine", "said"),
    [
        (BUILT, "3.11", "x86_64", None),
        (BUILT, "3.9", "x86_64", "the bundle was built for Python 3.11, and this is Python 3.9."),
        (BUILT, "3.11", "aarch64", "the bundle was built for x86_64, and this is aarch64."),
        (BUILT | {"spark": "4.0"}, "3.11", "x86_64", "the bundle was built for Spark 4.0, and this is Spark 4.1."),
    ],
)
def test_difference_names_what_does_not_fit(built: dict[str, str], python: str, machine: str, said: str | None) -> None:
    assert entry.find_difference(built, python=python, machine=machine) == said


def test_missing_dependencies_are_named() -> None:
    said = entry.find_difference(entry.read_mark(["/nowhere"]), python="3.11", machine="x86_64")
    assert said is not None
    assert said.startswith("no lakewriter-bundle.json is on the path")


def test_unfit_bundle_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "lakewriter-bundle.json").write_text(json.dumps(BUILT | {"architecture": "riscv64"}))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, entry.__file__], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("SPEC_INVALID: the bundle was built for riscv64, and this is ")
    assert done.stderr.endswith(
        "Run scripts/bundle for the application's release and architecture, and deploy again.\n"
    )


def test_older_pythons_can_read_it() -> None:
    ast.parse(Path(entry.__file__).read_text(), feature_version=(3, 7))
