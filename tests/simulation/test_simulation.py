"""A seed is one history, and for a while every history ends well."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.history import Options, play
from tests.simulation.mutations import MUTATIONS
from tests.simulation.stand_ins import installed

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LAKEWRITER_SIMULATION_SECONDS", "40"))


def _digest(hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "11", "--histories", "30", "--go-on"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(["job", "."])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout[done.stdout.index("digest ") :].split()[1]


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
        for module, edits in mutation.edits.items():
            text = (ROOT / "job" / "lakewriter" / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert [text.count(old) for old, _ in edits] == [1] * len(edits), name


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
