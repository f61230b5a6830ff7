"""``lakewriter docs``: what an installed package has of the pages, and that a stranger's words find the right one."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.docs_view import split_sections
from lakewriter.cli.main import main
from lakewriter.errors import InternalError, SpecInvalidError


def docs(*words):
    done = CliRunner().invoke(main, ["docs", *words, "--json"])
    return json.loads(done.stdout)


FIRST = [
    # what is looked for, the page that should come first
    ("replace table every load", "refresh"),
    ("reload whole table", "refresh"),
    ("rollback a load", "undo"),
    ("timestamp postgres", "databases"),
    ("kafka", "quickstarts/kafka"),
    ("rows come twice", "troubleshooting"),
    ("runbook", "troubleshooting"),
    ("alarm queued", "troubleshooting"),
    ("disaster", "failures"),
    ("region lost", "failures"),
    ("abandon a load", "failures"),
    ("changes by hand", "failures"),
    ("first deployment", "guide-deploy"),
    ("rotate key", "change-the-key"),
    ("delete a bad load", "undo"),
    ("remove the wrong run", "undo"),
    ("query from Athena", "readers"),
    ("what does it cost", "costs"),
    ("how much does it cost", "costs"),
    ("price", "costs"),
    ("daily files", "guide-supaflow"),
    ("bound", "words"),
    ("intent", "words"),
    ("mend", "words"),
    ("set aside", "words"),
]


@pytest.mark.parametrize(("words", "page"), FIRST)
def test_first_hit(words, page):
    found = docs(*words.split())
    assert (found["page"] if "page" in found else found["hits"][0]["page"]) == page


def test_hits_have_excerpts():
    for hit in docs("replace", "table", "every", "load")["hits"]:
        assert 0 < len(hit["excerpt"]) <= 155


NAMED = [
    # words, the page, the section
    ("refresh", "refresh", None),
    ("docs/refresh.md", "refresh", None),
    ("airbyte", "quickstarts/airbyte", None),
    ("reference/refresh", "reference/refresh", None),
    ("limits", "reference/limits", None),
    ("NAME_COLLISION", "troubleshooting", "NAME_COLLISION"),
    ("value-unrepresentable", "troubleshooting", "VALUE_UNREPRESENTABLE"),
    # An alarm, and an end of an execution.
    ("DeadLetters", "troubleshooting", "DeadLetters"),
    ("NO_OUTCOME", "troubleshooting", "NO_OUTCOME"),
]


@pytest.mark.parametrize(("words", "page", "section"), NAMED)
def test_pages_and_codes_by_name(words, page, section):
    found = docs(words)
    assert (found["page"], found.get("section")) == (page, section)
    assert found["text"].startswith("## " if section else "# ")


@pytest.mark.parametrize("code", [SpecInvalidError.code, InternalError.code])
def test_remedies_that_point_to_a_code_find_it(code):
    assert docs(code)["section"] == code


def test_pages_are_listed():
    assert docs()["pages"]["refresh"] == "Reload a table whole"
    shown = CliRunner().invoke(main, ["docs"]).stdout
    assert "refresh" in shown
    assert "adr/" not in shown


def test_words_that_stand_nowhere():
    done = CliRunner().invoke(main, ["docs", "qwertz"])
    assert (done.exit_code, done.stderr) == (
        2,
        "SPEC_INVALID: no page has 'qwertz'. lakewriter docs lists the pages.\n",
    )


def test_headings_in_code_are_none():
    text = "# A\none\n```sh\n# no heading\n```\n## B\ntwo\n"
    assert [(section.headings, section.lines) for section in split_sections("p", text)] == [
        (("A",), ("one", "```sh", "# no heading", "```")),
        (("A", "B"), ("two",)),
    ]
