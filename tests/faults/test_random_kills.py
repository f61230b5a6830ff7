"""Loads of several tables and partitions killed at random moments; a chain is one bucket's history."""

import json
import os
import random

import pytest

from tests.faults.books import TABLES, Books
from tests.faults.chain import Chain

pytestmark = pytest.mark.spark

SEED = os.environ.get("LAKEWRITER_FAULTS_SEED", "1")
KILLS = int(os.environ.get("LAKEWRITER_FAULTS_KILLS", "300"))
IN_A_CHAIN = 10


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
@pytest.mark.parametrize("number", range(KILLS // IN_A_CHAIN))
def test_random_kills(lake, number, record_property):
    chain = chain_of(lake, f"{number}")
    try:
        chain.play(IN_A_CHAIN)
    except BaseException as error:
        error.add_note(json.dumps(chain.record(), indent=1))
        raise
    for name, value in chain.record().items():
        record_property(name, value)
