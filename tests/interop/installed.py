"""Programs from Python packages that the project itself does not need.

Each is in an environment of its own, since they may want different versions of what they share.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

CACHE: Final = Path(__file__).parents[2] / "build" / "installed"


def install(package: str) -> Path:
    """The folder of the environment's programs; the test is skipped, with the reason, where the package, with its
    version, cannot be had."""
    if os.environ.get("LAKEWRITER_INTEROP") != "all":
        pytest.skip(f"{package} is not here: set LAKEWRITER_INTEROP=all to install it into build/installed")
    folder = CACHE / package.replace("==", "-")
    done = folder / "installed"
    if not done.exists():
        uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
        for command in (
            [uv, "venv", "--clear", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--python", str(folder), package],
        ):
            tried = subprocess.run(command, capture_output=True, text=True, check=False)
            if tried.returncode:
                pytest.skip(f"{package} cannot be installed: {tried.stderr[-500:]}")
        done.touch()
    return folder / "bin"
