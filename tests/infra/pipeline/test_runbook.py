"""The catalogue of failures has an entry for what operators meet: alarms, ends of an execution, and error codes."""

import json
import re
from pathlib import Path

import pytest

from infra.pipeline.alarms import RUNBOOK
from lakewriter.errors import CODES
from tests.infra.pipeline.executions import definition_of
from tests.infra.pipeline.test_alarms import alarms

pytestmark = pytest.mark.synth

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS.parent / RUNBOOK).read_text("utf-8")
ENTRIES = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S))


def list_ends(template) -> set[str]:
    """The errors with which executions end, those that a job's outcome names aside."""
    states = json.loads(definition_of(template))["States"].values()
    fixed = {state["Error"] for state in states if state["Type"] == "Fail" and "Error" in state}
    return fixed | {state["Parameters"]["code"] for state in states if "code" in state.get("Parameters", {})}


def test_an_entry_for_everything_and_no_other(plain, streaming):
    ends = list_ends(plain) | list_ends(streaming)
    assert set(ENTRIES) == {*alarms(plain), *alarms(streaming), *ends, *CODES}
    assert {"NO_OUTCOME", "JobCrashed", "JobRunCancelled", "LoadRunning", "InputRefused"} == ends


def test_entries_say_what_to_do_and_how_to_go_on(plain, streaming):
    assert [name for name, text in ENTRIES.items() if "Do: " not in " ".join(text.split())] == []
    errors = set(ENTRIES) - {*alarms(plain), *alarms(streaming)}
    assert [name for name in errors if "Then: " not in " ".join(ENTRIES[name].split())] == []


def test_codes_that_a_retry_can_help_are_among_them():
    retried, mended = (PAGE.index(f"## Codes: what {what}") for what in ("a retry", "somebody"))
    helped = set(re.findall(r"^### (\w+)$", PAGE[retried:mended], re.M))
    assert helped == {code for code, kind in CODES.items() if kind.transient}


def test_links_lead_somewhere():
    for page, anchor in re.findall(r"\]\(([\w.-]*)#([^)]+)\)", PAGE):
        text = (DOCS / page).read_text("utf-8") if page else PAGE
        titles = re.findall(r"^#+ (.*)$", text, re.M)
        assert anchor in {re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in titles}, anchor
