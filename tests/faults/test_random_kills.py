"""Three hundred loads of several tables and partitions killed at random moments; a chain is one bucket's history."""

import json
import random
from pathlib import Path

import pytest

from tests.faults.books import TABLES, Books
from tests.faults.chain import RECORDS, SEED, Chain
from tests.faults.process import ROOT

pytestmark = pytest.mark.spark

KILLS = 10


def chain_of(lake, number: str) -> Chain:
    """A chain of loads of two tables, which one load writes side by side."""
    seed = f"{SEED}/{number}"
    return Chain(Books(lake, *random.Random(seed).sample(TABLES, 2)), seed)


def test_random_kill(lake):
    chain = chain_of(lake, "sample")
    chain.play(1)
    assert chain.kills == 1


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(300 // KILLS))
def test_random_kills(lake, number):
    record = Path(RECORDS, f"{number:02d}.json")
    if record.exists():
        pytest.skip(f"passed before: {record.relative_to(ROOT)}")
    chain = chain_of(lake, f"{number}")
    try:
        chain.play(KILLS)
    except BaseException as error:
        error.add_note(json.dumps(chain.record(), indent=1))
        raise
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(chain.record(), indent=1) + "\n", "utf-8")
