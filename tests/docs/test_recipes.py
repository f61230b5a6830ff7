"""What is there has what its recipe asks for, and each decision is linked and short.

docs/recipes.md is the page; that the files and names in it exist, test_named_paths.py tells. Alarms and error codes are
held to their entries in test_runbook.py and test_troubleshooting.py, the tables of a kind of change to each other in
test_changes.py, facts of catalogs in tests/spec, readers to their formats in test_spark_options.py.
"""

import ast
import re
import subprocess
from pathlib import Path
from typing import Final, get_args

import pytest

from lakewriter.cli.main import GROUPS
from lakewriter.cli.mend_command import PRINTED as MENDED
from lakewriter.cli.mend_command import VERBS
from lakewriter.cli.schema_command import PRINTED
from lakewriter.control_object import KNOWN_NEEDS
from lakewriter.dialects.lakewriter_s3 import settings as own_settings
from lakewriter.dialects.lakewriter_s3 import translate as own
from lakewriter.dialects.lakewriter_s3.file_formats import FORMATS
from lakewriter.dialects.registry import BY_TYPE
from lakewriter.dialects.supaflow import settings as supaflow_settings
from lakewriter.dialects.supaflow import translate as supaflow
from lakewriter.encode.parquet import CODECS
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Receipt
from lakewriter.records.changes import Intent, Kind
from lakewriter.records.state import TableState
from lakewriter.report import TableReport
from lakewriter.shape.tracking import TRACKING_TYPES
from lakewriter.spec.source_formats import FORMATS as SOURCES
from lakewriter.spec.specification import Tracking
from tests.docs.fences import ROOT

DOCS: Final = ROOT / "docs"
CHANGES: Final = {
    *("A codec", "A file format", "A source format", "A partition strategy", "A tracking column", "A dialect"),
    *("A catalog", "A verb", "A retention", "An alarm", "An error code", "A deploy option", "A check in doctor"),
    "A kind of change",
}
KEYS: Final = ControlKeys("p", "flights")


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def test_each_change_has_a_recipe():
    assert set(re.findall(r"^## (.*)$", read("docs/recipes.md"), re.M)) == CHANGES


NAMED: list[tuple[str, str, list[str]]] = [
    # recipe, the page that it names, what the page has to have
    ("codec", "docs/guide-lakewriter.md", [f"`{name}`" for form in FORMATS.values() for name in form.codecs]),
    ("partition strategy", "docs/guide-lakewriter.md", [f"`{name}`" for name in own.PARTITIONS]),
    ("partition strategy", "docs/guide-supaflow.md", list(supaflow.PARTITIONS)),
    ("tracking column", "docs/guide-lakewriter.md", list(own_settings.TRACKING)),
    ("dialect", "README.md", list(BY_TYPE)),
    ("source format", "docs/sources.md", [form.title or form.name for form in SOURCES.values() if form.has_reader]),
    ("verb", "docs/commands.md", [f"`{name}" for group in GROUPS.values() for name in group]),
    ("verb", "docs/commands.md", [f"`{name} LAKE" for name in VERBS]),
    ("kind of change", "docs/control-objects.md", [f"`{kind}`" for kind in get_args(Kind) if kind != "load"]),
    ("kind of change", "docs/control-objects.md", [f"`{need}`" for need in KNOWN_NEEDS]),
    *(
        ("kind of change", "docs/control-objects.md", [f"`{name}`" for name in kept.model_fields])
        for kept in (TableState, Intent, Receipt, TableReport)
    ),
    (
        "retention",
        "docs/control-objects.md",
        [
            *("continuous.json", "state.json", "inputs/", "report.json", "report.html", "begin.json", "sync.json"),
            *("decision.json", "completion.json", "outcome.json", "record.json", "receipts/", "deleted/", "repeats/"),
            *("decided/", "completed/"),
            *("failed/", "tables/", "runs/", "syncs/", "_writers/"),
        ],
    ),
]


@pytest.mark.parametrize(("recipe", "page", "names"), NAMED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_page_has_what_there_is(recipe, page, names):
    text = read(page).lower()
    assert names
    assert [name for name in names if name.lower() not in text] == [], recipe


def test_control_objects_are_all_in_their_list():
    """A key that is added needs a place in the list above, and so in the page."""
    places = NAMED[-1][2]
    made = {
        KEYS.begin("J", "A"), KEYS.completion("J", "A"), KEYS.decision("J", "A"), KEYS.table_begin("J", "A", "t"),
        KEYS.intent("J", "A", "t"), KEYS.outcome("J", "A"), KEYS.record("J", "A"), KEYS.report("J", "t"),
        KEYS.page("J"), KEYS.state("t"), KEYS.inputs("t", "x"), KEYS.repeat("J"), KEYS.run("R"), KEYS.continuous,
        KEYS.writers, KEYS.own_sync_number("J"), KEYS.sync_number(3), KEYS.load("J"),
        KEYS.load_of("x/", "J"), KEYS.state_of("x/", "t"), KEYS.runs, KEYS.sync_numbers,
    }  # fmt: skip
    rest = {"begin/", "loads/"}
    assert [key for key in made if not any(place in f"{key}/" for place in {*places, *rest})] == []
    tried = set(re.findall(r"KEYS\.(\w+)", Path(__file__).read_text("utf-8")))
    others = {"failure", "receipts", "uploads", "deleted_keys"}
    assert {name for name in dir(ControlKeys) if not name.startswith("_")} == tried | others


def test_words_of_a_dialect_are_those_of_its_tables():
    own_words = get_args(own_settings.LakewriterS3.model_fields["partition_strategy"].annotation)
    vendors = get_args(supaflow_settings.ParquetDestination.model_fields["partition_strategy"].annotation)
    assert (set(own_words), set(vendors)) == (set(own.PARTITIONS), set(supaflow.PARTITIONS))
    assert set(TRACKING_TYPES) == set(Tracking) == set(own_settings.TRACKING.values())
    assert set(CODECS) == {codec.name for codec in FORMATS["parquet"].codecs.values()}


@pytest.mark.parametrize("kind", BY_TYPE)
def test_a_destination_has_an_example_and_a_page(kind):
    assert (ROOT / "examples" / f"{kind}.yaml").is_file()
    assert (DOCS / "reference" / f"destination-{kind}.md").is_file()


def test_a_command_with_json_is_a_command():
    commands = {name for group in GROUPS.values() for name in group} | set(VERBS)
    assert set(MENDED) <= set(VERBS)
    assert set(PRINTED) <= commands


def test_each_class_with_probes_is_run():
    folder = ROOT / "job" / "lakewriter" / "doctor"
    listed = {
        each.name
        for file in folder.glob("*.py")
        for each in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(each, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "list_probes" for part in each.body)
    }
    text = (folder / "doctor.py").read_text("utf-8")
    assert len(listed) > 8
    assert sorted(name for name in listed if f"{name}(" not in text) == []


DECISIONS: Final = sorted((DOCS / "adr").glob("0*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_short_and_says_all_four_parts(page):
    text = page.read_text("utf-8")
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.M) == ["Context", "Decision", "Consequence", "Tried"]
    assert 150 <= len(text.split()) <= 250
    assert text.startswith(f"# {int(page.name[:4])}. ")


def test_each_decision_is_linked_from_where_its_subject_is():
    """By a page outside of docs/adr, or by a docstring."""
    listed = subprocess.run(["git", "grep", "-hoE", "adr/[0-9]{4}-[a-z0-9-]+", "--", "*.md", "job/*.py", "infra/*.py"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert {page.stem for page in DECISIONS} - {line.removeprefix("adr/") for line in listed.split()} == set()
    names = re.findall(r"\]\((0[^)]*)\)", read("docs/adr/README.md"))
    assert names == [page.name for page in DECISIONS]


def test_nothing_is_named_released():
    text = read("CHANGELOG.md")
    assert re.findall(r"^## \[(.*)\]$", text, re.M) == ["Unreleased"]
    assert len(text.split()) <= 1200
    named = (*VERBS, *GROUPS["Begin"], *GROUPS["Look"], *GROUPS["Vendors"])
    assert [name for name in named if not re.search(rf"[` ]{name}[`, ]", text)] == []
