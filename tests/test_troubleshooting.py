"""The catalogue of errors has every code, and says of each how it exits."""

import re
from pathlib import Path

from lakewriter.errors import CODES
from lakewriter.exit_codes import EXIT_FAILED, EXIT_RETRY, EXIT_USAGE

PAGE = (Path(__file__).parents[1] / "docs" / "troubleshooting.md").read_text("utf-8")


def test_every_code_has_a_section():
    sections = re.findall(r"^### ([A-Z0-9_]+)$", PAGE, re.M)
    assert sorted(sections) == sorted(CODES)


def test_exit_codes():
    """The page names those that are no ordinary failure; all others exit with 1."""
    rows = re.findall(r"^\| (.*\[.*) \| (\d+) \|", PAGE, re.M)
    told = {code: int(number) for codes, number in rows for code in re.findall(r"\[([A-Z_]+)\]", codes)}
    assert {code: kind.exit_code for code, kind in CODES.items()} == dict.fromkeys(CODES, EXIT_FAILED) | told
    assert set(told.values()) == {EXIT_USAGE, EXIT_RETRY}
    assert {code for code, kind in CODES.items() if kind.transient} == {
        code for code, number in told.items() if number == EXIT_RETRY
    }


def test_links_lead_to_sections():
    anchors = {
        re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
