"""Fixtures of loads that are killed, held and lied to; what scripts/faults runs besides the sample, and its summary."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import EVERYTHING
from tests.faults.books import EVENTS, Books
from tests.faults.chain import RECORDS
from tests.load.lakes import Lake
from tests.support.server import StrictAws


@pytest.fixture
def lake(tmp_path: Path, aws: StrictAws, bucket: str, spark: SparkSession) -> Lake:
    """A pipeline that writes to the empty bucket."""
    return Lake(tmp_path, aws, spark)


@pytest.fixture
def events(lake: Lake) -> Books:
    """The incremental table alone, in two files a load."""
    return Books(lake, EVENTS)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The random kills so far, where they struck, and what the design leaves to the lifecycle rule."""
    records = [json.loads(file.read_text("utf-8")) for file in sorted(RECORDS.glob("*.json"))]
    if not EVERYTHING or not records:
        return
    struck = Counter(action for record in records for action in record["struck"])
    left = sum(uploads for record in records for uploads in record["left_uploads"].values())
    terminalreporter.section("Random kills")
    terminalreporter.write_line(
        f"{sum(record['kills'] for record in records)} kills in {len(records)} chains, seed {RECORDS.name}; before the "
        f"killed loads ran again, {left} incomplete uploads of theirs were left to the lifecycle rule"
    )
    for action, times in struck.most_common():
        terminalreporter.write_line(f"{times:5} at {action}")
