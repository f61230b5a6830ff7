"""The architecture names every call that changes something, and tests that are there."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
READS = re.compile(r"\w+:(Get|List|Head|Assume)\w+")
CHANGES = PAGE.partition("## Calls that change something")[2].partition("\n## ")[0]


def test_every_call_that_changes_something_has_a_row():
    calls = {call["action"] for call in json.loads((ROOT / "tests" / "policy" / "calls.json").read_text("utf-8"))}
    assert {call for call in calls if not READS.fullmatch(call)} <= set(re.findall(r"`(\w+:\w+)`", CHANGES))


def test_every_row_names_a_test():
    rows = [row for row in CHANGES.splitlines() if row.startswith("| ")][1:]
    named = [re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row.split("|")[-2]) for row in rows]
    assert len(rows) > 8
    assert all(named)
    for file, test in (pair for pairs in named for pair in pairs):
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), test
