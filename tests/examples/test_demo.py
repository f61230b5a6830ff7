"""The demonstration of ``scripts/demo``, from its first command to its last."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_demo(tmp_path):
    shutil.copytree(ROOT / "examples" / "demo", tmp_path / "examples" / "demo")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LAKEWRITER_"))}
    command = [sys.executable, str(tmp_path / "examples" / "demo" / "demo.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All counts are right." in done.stdout
