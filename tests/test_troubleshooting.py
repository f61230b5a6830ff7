"""The catalogue of errors has every code, and says of each how it exits."""

import re
from pathlib import Path

import pytest

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


SYMPTOMS = [
    # what a page of Supaflow's calls a problem, under "Troubleshooting", and the entry that answers it
    ('"AccessDenied" or', "role_not_assumable"),
    ("User is not authorized to perform sts:AssumeRole", "role_not_assumable"),
    ('"AccessDenied" when writing to S3', "s3_access_denied"),
    ("Bucket does not exist", "bucket_not_found"),
    ("AccessDeniedException", "glue_access_denied"),
    ("tables do not appear in Glue", "tables-do-not-appear-in-glue"),
    ("The security token included in the request is invalid", "credentials_invalid"),
    ("external id mismatch", "role_not_assumable"),
    ("time-outs, slow answers", "timeout"),
    ("403 Forbidden", "glue_access_denied"),
    ("401 Unauthorized", "catalog_unauthorized"),
    ("Invalid client credentials", "catalog_unauthorized"),
    ("The bucket is in a different region", "catalog_region_mismatch"),
]


@pytest.mark.parametrize(("symptom", "anchor"), SYMPTOMS)
def test_a_vendors_problem_leads_to_its_entry(symptom, anchor):
    """Its words are in the table of symptoms, whose links are tested above."""
    table = PAGE.partition("\n## By symptom\n")[2].partition("\n## ")[0]
    assert [row for row in table.splitlines() if symptom in row and f"](#{anchor})" in row]
