"""A clone on a machine with Python 3.11 and neither Java nor Node: what the README says to try, and a deployment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly.marks import is_clean, read_tree
from tests.package.environments import ROOT

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

ABSENT = ("java", "jshell", "node", "npm", "npx", "corepack", "python", "pip", "uv")
"""Beginnings of commands that the machine lacks."""


class Clone:
    """A clone, and the machine it is on."""

    def __init__(self, folder: Path) -> None:
        self.root, self._bin = folder / "clone", folder / "bin"
        assert is_clean(read_tree(ROOT)), "a clone has what is committed: commit the changes first"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.root)], check=True)
        self._bin.mkdir()
        for command in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
            link = self._bin / command.name
            if not command.name.startswith(ABSENT) and not link.is_symlink():
                link.symlink_to(command)
        (self._bin / "python3.11").symlink_to(Path(sys.executable).resolve())

    def run(self, *command: str) -> str:
        """What a command prints; it has to end with 0."""
        own = ("AWS_", "LAKEWRITER_", "JAVA_HOME", "JDK_", "PYTHON", "VIRTUAL_ENV", "JSII_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        done = subprocess.run(
            command,
            cwd=self.root,
            env=kept | {"PATH": str(self._bin)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with its environment made."""
    clone = Clone(tmp_path_factory.mktemp("fresh"))
    clone.run("scripts/setup")
    return clone


def test_demo(clone: Clone) -> None:
    clone.run("scripts/demo")


def test_bundle_and_synth(clone: Clone) -> None:
    clone.run("scripts/bundle", "--architecture", "x86_64")
    clone.run("scripts/cdk", "synth", "--quiet", "-c", "stage=dev")
    assert (clone.root / "cdk.out" / "review.html").exists()


def test_commands_leave_the_clone_clean(clone: Clone) -> None:
    assert clone.run("git", "status", "--porcelain") == ""
