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
from tests.simulation.mutation import Edit, change, find_marks, list_edits
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


def test_every_rule_is_marked():
    """A rule whose mark is lost would be taken out no more, and nobody would see it before the next nightly run."""
    for name, mutation in MUTATIONS.items():
        assert not mutation.held_by or (ROOT / mutation.held_by.split()[0]).is_file(), name
        for module, edits in list_edits(name, mutation).items():
            text = (ROOT / "job" / "lakewriter" / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert change(text, edits) != text, name


def test_every_mark_is_of_a_rule():
    marks = {mark for name, mutation in MUTATIONS.items() for mark in (name, *mutation.more)}
    assert set(find_marks()) == marks


SOURCE = """# Rule least
LEAST = 3


class Door:
    @property
    def open(self):
        # Rule shut, wide
        # Of a key.
        if self.key == 'none':
            return "shut"
        elif (
            self.is_old
            # Rule new
            and self.is_new
            # Rule bracket
            and (self.is_out or self.at(2))
        ):
            return {
                # Rule entry
                "a": self.key(1),
                "b": 2,
            }
        # Rule two
        first = 1
        self.first = first
        return "open"
"""
MARKED = [
    # a mark, what is put in its place, how many statements are marked; lines that are there then, and that are not
    ("least", "LEAST = 4", 1, ["LEAST = 4"], ["LEAST = 3"]),
    ("shut", "if False:", 1, ["        if False:", '            return "shut"'], ["        if self.key == 'none':"]),
    ("wide", "pass", 3, ["        pass"], ['            return "shut"']),
    ("new", "", 1, ["            self.is_old"], ["            and self.is_new"]),
    ("bracket", "and self.is_in", 1, ["            and self.is_in"], ["            and (self.is_out or self.at(2))"]),
    ("entry", "", 1, ['                "b": 2,'], ['                "a": self.key(1),']),
    ("two", "self.first = 2\nassert self", 2, ["        assert self"], ["        first = 1"]),
]


@pytest.mark.parametrize(("mark", "new", "statements", "there", "gone"), MARKED)
def test_what_is_marked_is_replaced(mark: str, new: str, statements: int, there: list[str], gone: list[str]):
    changed = change(SOURCE, [Edit(mark, new, statements)])
    ast.parse(changed)
    lines = [line.rstrip() for line in changed.splitlines()]
    assert [line for line in there if line not in lines] == []
    assert [line for line in gone if line in lines] == []


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("gone", "pass", 1), "nothing is marked with gone"),
        (Edit("two", "self.first = second", 2), "what replaces two uses ['second'], which are not there"),
    ],
)
def test_a_rule_that_cannot_be_taken_out(edit: Edit, message: str):
    with pytest.raises(LookupError, match=re.escape(message)):
        change(SOURCE, [edit])


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
