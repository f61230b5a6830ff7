"""The weekly check: every script is one that a shell takes, and every command of AWS and of ours is there."""

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.shell import check_command, require_syntax

ROOT = Path(__file__).parents[2]
JOBS = yaml.safe_load((ROOT / "examples" / "ci" / "weekly.yml").read_text("utf-8"))["jobs"]
SCRIPTS = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]
COMMAND = re.compile(r"(aws cloudformation|\S*lakewriter|\S*python|scripts/\w+)\b([^);]*)")


@pytest.mark.parametrize("script", SCRIPTS)
def test_commands_are_there(script: str) -> None:
    require_syntax(script)
    found = [f"{program.rpartition('.venv/bin/')[2]}{rest}".split() for program, rest in COMMAND.findall(script)]
    assert found
    assert all(check_command(words) for words in found)
