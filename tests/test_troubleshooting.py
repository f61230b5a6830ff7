"""The catalogue of errors has every code, and says of each how it exits."""

import re
from pathlib import Path

from lakewriter import errors
from lakewriter.errors import CODES
from lakewriter.exit_codes import EXIT_FAILED, EXIT_RETRY, EXIT_USAGE

PAGE = (Path(__file__).parents[1] / "docs" / "troubleshooting.md").read_text("utf-8")


def test_every_code_has_a_section():
    sections = re.findall(r"^### ([A-Z0-9_]+)$", PAGE.partition("\n## Codes: ")[2], re.M)
    assert sorted(sections) == sorted(CODES)


def test_tree_of_errors():
    """The module's docstring has every error, with what is not the rule: its exit code, or that a retry can help."""
    lines = re.findall(r"^[├└]── (\w+) +([A-Z0-9_]+) *(.*)$", str(errors.__doc__), re.M)
    assert sorted(lines) == sorted((kind.__name__, code, describe(kind)) for code, kind in CODES.items())


def describe(kind: type[errors.LakeError]) -> str:
    if kind.transient:
        return "a retry can help"
    return f"exit {kind.exit_code}" if kind.exit_code != EXIT_FAILED else ""


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
