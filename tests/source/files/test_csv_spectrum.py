"""csv-spectrum, twelve files with what is in them: https://github.com/max-mapper/csv-spectrum, MIT.

``LAKEWRITER_SUITES`` names the folder that has it.
"""

import json
import os
from pathlib import Path

import pytest

from tests.source.files.reading import read_csv

FOLDER = Path(os.environ.get("LAKEWRITER_SUITES", "none")) / "csv-spectrum"
NAMES = (
    *("comma_in_quotes", "empty", "empty_crlf", "escaped_quotes", "json", "location_coordinates", "newlines"),
    *("newlines_crlf", "quotes_and_newlines", "simple", "simple_crlf", "utf8"),
)


@pytest.mark.skipif(not FOLDER.exists(), reason="LAKEWRITER_SUITES names no folder with csv-spectrum")
@pytest.mark.parametrize("name", NAMES)
def test_rows(name: str) -> None:
    outcome = read_csv((FOLDER / "csvs" / f"{name}.csv").read_bytes(), options={"header": "true"})
    expected = json.loads((FOLDER / "json" / f"{name}.json").read_text("utf-8"))
    # What is nothing between separators is an empty text to the suite, which knows no null.
    rows = [dict(zip(outcome.names, (value or "" for value in row), strict=True)) for row in outcome.good]
    if name == "location_coordinates":
        # The suite's JSON is the row itself, and has another number than its CSV.
        expected = [expected | {"Contact Phone Number": "2095257564"}]
    assert (rows, outcome.bad) == (expected, [])
