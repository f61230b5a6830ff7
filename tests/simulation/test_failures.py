"""The messages by which the simulation knows a failure are those of the product."""

import ast
from pathlib import Path

import pytest

from tests.simulation.failures import (
    APART,
    DECIDED,
    FORGOTTEN,
    KEEPS_NO_CONDITIONS,
    OVERTAKEN,
    UNNOTED,
    UNRECORDED,
    WITHDRAWN,
)

JOB = Path(__file__).parents[2] / "job" / "lakewriter"


@pytest.fixture(scope="module")
def texts() -> str:
    """Every text of the code that runs loads, each whole however many lines it is written on."""
    trees = [ast.parse(file.read_text("utf-8")) for file in sorted(JOB.rglob("*.py"))]
    found = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\n".join(text for text in found if isinstance(text, str))


@pytest.mark.parametrize(
    "message", [*DECIDED, *OVERTAKEN, *APART, *WITHDRAWN, UNRECORDED, UNNOTED, KEEPS_NO_CONDITIONS, FORGOTTEN]
)
def test_a_message_that_is_known_is_there(texts, message):
    assert message in texts
