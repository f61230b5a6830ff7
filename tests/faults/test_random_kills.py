"""Loads killed at random moments, with Spark and without it, in every format; a chain is one bucket's history."""

import json
import os
import random

import pytest

from tests.faults.books import TABLES, Books
from tests.faults.chain import Chain
from tests.faults.formats import pipeline
from tests.load.lakes import Lake
from tests.support.local_tasks import local_session

pytestmark = pytest.mark.spark

SEED = os.environ.get("LAKEWRITER_FAULTS_SEED", "1")
KILLS = int(os.environ.get("LAKEWRITER_FAULTS_KILLS", "300"))
IN_A_CHAIN = 10
WITHOUT_SPARK = ("CSV", "JSONL", "Avro", "Parquet", "Iceberg", "Glue")


def kinds() -> list[str]:
    """The kind of each chain: of five one is of Spark's processes, the others go through the formats."""
    formats = [WITHOUT_SPARK[number % len(WITHOUT_SPARK)] for number in range(KILLS)]
    return ["Spark" if number % 5 == 0 else formats.pop(0) for number in range(KILLS // IN_A_CHAIN)]


@pytest.fixture
def chain_of(request, tmp_path, aws, bucket):
    """A chain of loads; those of Spark are of two tables, which one load writes side by side."""

    def make(kind: str, number: str) -> Chain:
        seed = f"{SEED}/{number}"
        if kind != "Spark":
            return Chain(pipeline(tmp_path, aws, local_session(2), kind), seed)
        lake = Lake(tmp_path, aws, request.getfixturevalue("spark"))
        return Chain(Books(lake, *random.Random(seed).sample(TABLES, 2)), seed)

    return make


def test_random_kill(chain_of):
    chain = chain_of("Avro", "sample")
    chain.play(1)
    assert chain.kills == 1


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("number", "kind"), list(enumerate(kinds())))
def test_random_kills(chain_of, number, kind, record_property):
    chain = chain_of(kind, f"{number}")
    try:
        chain.play(IN_A_CHAIN)
    except BaseException as error:
        error.add_note(json.dumps(chain.record(), indent=1))
        raise
    record_property(f"{kind} kills", chain.kills)
    for name, value in chain.record().items():
        record_property(name, value)
