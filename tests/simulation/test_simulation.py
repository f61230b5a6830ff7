"""A seed is one history, and for a while every history ends well."""

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.history import Options, play
from tests.simulation.mutation import change, find_module
from tests.simulation.mutations import MUTATIONS
from tests.simulation.stand_ins import installed

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LAKEWRITER_SIMULATION_SECONDS", "15"))


def _digest(hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "11", "--histories", "10", "--go-on"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(["job", "."])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout[done.stdout.index("digest ") :].split()[1]


@pytest.mark.exhaustive
def test_a_seed_is_one_history_in_every_process():
    assert _digest("1") == _digest("2")


def test_a_seed_is_one_history_however_often_it_is_played():
    with installed():
        first, second = (play(5, Options(story=True)) for _ in range(2))
    assert first.story == second.story


def test_two_seeds_are_two_histories():
    with installed():
        assert play(5, Options()).digest != play(6, Options()).digest


def test_a_job_goes_on_in_its_other_tables_where_it_is_refused_in_one():
    with installed():
        assert play(198, Options(kinds=("messages",))).findings == []


def test_every_mutation_finds_the_text_that_it_changes():
    """A rule that has moved would be taken out no more, and nobody would see it before the next nightly run."""
    for name, mutation in MUTATIONS.items():
        assert not mutation.held_by or (ROOT / mutation.held_by.split()[0]).is_file(), name
        for module, edits in mutation.list_modules().items():
            text = (ROOT / "job" / "lakewriter" / f"{module.replace('.', '/')}.py").read_text("utf-8")
            for function, old, new in edits:
                changed = change(text, function, old, new)
                ast.parse(changed)
                assert changed != text, name
                text = changed


SOURCE = """LEAST = 3


class Door:
    @property
    def open(self):
        # Of a key,
        if self.key == \'none\':
            return (
                "shut",
                self.key,
            )
        return "open", self.key
"""
# a pin, what is there, what is put in its place; what comes of the line
PINNED = [
    ("LEAST", "LEAST = 3", "LEAST = 4", "LEAST = 4"),
    # Other lines, indentation and last commas.
    ("Door.open", 'return ("shut", self.key)\n', "return 1\n", "return 1"),
    ("Door.open", "if self.key == 'none':", "if False:", "        if False:"),
    ("Door", '        return "open", self.key\n', "        x = 1\n        return x\n", "        return x"),
    ("Door.open", '    return "open", self.key\n', "    x = 1\n    return x\n", "        return x"),
]


@pytest.mark.parametrize(("name", "old", "new", "line"), PINNED)
def test_a_rule_is_found_by_its_syntax(name: str, old: str, new: str, line: str):
    changed = change(SOURCE, name, old, new)
    ast.parse(changed)
    assert line in [one if line.startswith(" ") else one.strip() for one in changed.splitlines()]


@pytest.mark.parametrize(
    ("name", "old", "message"),
    [
        ("Door.shut", "return", "there is no Door.shut"),
        ("Door.open", "return", "Door.open has 2 times, expected once: 'return'"),
        ("LEAST", "4", "LEAST has 0 times, expected once: '4'"),
    ],
)
def test_a_rule_that_is_not_there_once(name: str, old: str, message: str):
    with pytest.raises(LookupError, match=re.escape(message)):
        change(SOURCE, name, old, "")


def test_a_function_that_has_moved_is_found():
    assert find_module("commit.attempt:close") == ("commit.recover", "close")
    with pytest.raises(LookupError, match="nothing is in 0 modules"):
        find_module("commit.attempt:nothing")


@pytest.mark.timeout(600)
def test_random_histories_end_well(capsys: pytest.CaptureFixture[str]):
    """Other histories each day; what fails is played again with ``scripts/simulate --seed N --story``."""
    base = int(os.environ.get("LAKEWRITER_SIMULATION_SEED", time.time() // 86_400 * 1_000_000))
    end, seed = time.perf_counter() + SECONDS, base
    with installed():
        while time.perf_counter() < end:
            told = play(seed, Options())
            assert told.findings == [], f"seed {seed}"
            seed += 1
    with capsys.disabled():
        sys.stdout.write(f"\n{seed - base} histories from seed {base}\n")
