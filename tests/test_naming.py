"""Names; expectations follow from the rules that the vendor documents for its S3 destinations."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.naming import (
    ControlKeys,
    cut,
    join_key,
    make_unique,
    name_columns,
    name_schema,
    name_tables,
    normalise,
)
from lakewriter.spec.load_ids import JOB_ID, is_next_job_id, make_next_job_id, make_undo_job_id

NORMALISED = [
    ("crème", "creme"),
    ("123abc", "_123abc"),
    ("日本語", "_"),
    ("Δ", "_"),
    ("first name", "first_name"),
    ("a--b", "a_b"),
    ("", "_"),
    ("Name", "Name"),
    ("__a__b", "_a_b"),
    # NFKD takes ligatures and full-width letters apart, but knows no base letter for these.
    ("ﬁeld", "field"),
    ("\uff21\uff22", "AB"),
    ("straße", "stra_e"),
]


PACKAGES = Path(__file__).parents[1] / "job"


@pytest.mark.parametrize(("name", "expected"), NORMALISED)
def test_normalise_documented_cases(name: str, expected: str) -> None:
    assert normalise(name) == expected


@given(st.text(max_size=300))
def test_normalise_gives_valid_names_and_is_stable(name: str) -> None:
    result = normalise(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", result)
    assert normalise(result) == result


def test_cut_long_names_that_differ_at_the_end_stay_different() -> None:
    first, second = normalise("a" * 260 + "b"), normalise("a" * 260 + "c")
    assert (len(first), len(second)) == (255, 255)
    assert first[:245] == second[:245] == "a" * 244 + "_"
    assert first != second


def test_cut_short_names_stay() -> None:
    assert cut("a" * 255) == "a" * 255


COLUMNS = [
    (["name", "name", "name"], ["name", "name_1", "name_2"]),
    (["Name", "name"], ["Name", "name_1"]),
    (["name", "name", "name_1"], ["name", "name_1", "name_1_1"]),
    (["name_1", "name", "name"], ["name_1", "name", "name_2"]),
    (["a b", "a_b", "a-b"], ["a_b", "a_b_1", "a_b_2"]),
    (["日", "本"], ["_", "__1"]),
]


@pytest.mark.parametrize(("names", "expected"), COLUMNS)
def test_column_names_documented_cases(names: list[str], expected: list[str]) -> None:
    assert name_columns(names) == expected


def test_column_names_reserved_names_are_taken_without_case() -> None:
    assert name_columns(["_supa_id", "_SUPA_INDEX"], reserved=["_supa_id", "_supa_index"]) == [
        "_supa_id_1",
        "_SUPA_INDEX_1",
    ]


@given(st.lists(st.text(alphabet="aAbB_1", max_size=4), max_size=12))
def test_unique_results_differ_without_case(names: list[str]) -> None:
    result = make_unique(names)
    assert len({name.lower() for name in result}) == len(names)


def test_numbers_go_on_behind_names_that_are_taken() -> None:
    assert make_unique(["a", "A_1", "a", "a", "A", "a"], reserved=["a_4"]) == ["a", "A_1", "a_2", "a_3", "A_5", "a_6"]


def test_unique_suffix_fits_the_limit() -> None:
    assert make_unique(["a" * 255, "a" * 255]) == ["a" * 255, "a" * 253 + "_1"]


SCHEMAS = [
    (("supaflow", "postgres", "public"), "supaflow_postgres_public"),
    (("supaflow", "salesforce", ""), "supaflow_salesforce"),
    (("supaflow", "", "public"), "supaflow_public"),
    (("supaflow", "", ""), "supaflow"),
    (("", "postgres", "public"), "postgres_public"),
    (("", "", ""), ""),
    (("supaflow", " ", "Sales Force"), "supaflow_sales_force"),
]


@pytest.mark.parametrize(("parts", "expected"), SCHEMAS)
def test_schema_name_documented_cases(parts: tuple[str, ...], expected: str) -> None:
    assert name_schema(*parts) == expected


def test_table_names_are_lower_case_and_distinct() -> None:
    assert name_tables(["Order Lines", "order_lines", "Crème"]) == ["order_lines", "order_lines_1", "creme"]


KEYS = [
    (("data", "s", "t"), "data/s/t"),
    (("/data//raw/", "", "t"), "data/raw/t"),
    (("", "", ""), ""),
]


@pytest.mark.parametrize(("segments", "expected"), KEYS)
def test_join_key_leaves_out_empty_segments(segments: tuple[str, ...], expected: str) -> None:
    assert join_key(*segments) == expected


def test_control_keys_lie_under_the_pipeline() -> None:
    keys = ControlKeys("data/", "flights")
    assert [
        keys.state("public.flights"),
        keys.report("j1", "public.flights"),
        keys.begin("j1", "a1"),
        keys.intent("j1", "a1", "public.flights"),
        keys.failure("j1", "a1", "public.flights"),
        keys.outcome("j1", "a1"),
        keys.run("n1"),
    ] == [
        "data/_lakewriter/flights/tables/public.flights/state.json",
        "data/_lakewriter/flights/loads/j1/public.flights.report.json",
        "data/_lakewriter/flights/loads/j1/a1/begin.json",
        "data/_lakewriter/flights/loads/j1/a1/tables/public.flights.json",
        "data/_lakewriter/flights/loads/j1/a1/failed/public.flights.json",
        "data/_lakewriter/flights/loads/j1/a1/outcome.json",
        "data/_lakewriter/flights/runs/n1.json",
    ]


def test_importing_loads_the_standard_library_only():
    loaded = "{name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names"
    code = f"import sys; import lakewriter.naming; print(*sorted({loaded}))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGES)
    assert done.stdout == "__main__ lakewriter\n"


LONG = "daily-" + "x" * 74
DIGEST = hashlib.sha256(LONG.encode()).hexdigest()[:32]
AFTER_UNDOS = [
    # a load, its undo, the load that stands for it
    ("a", "undo.a", "a.r2"),
    ("a.r2", "undo.a.r2", "a.r3"),
    ("a.r9", "undo.a.r9", "a.r10"),
    # Nobody undoes a first time what is called the first: these are names like any other.
    ("a.r1", "undo.a.r1", "a.r1.r2"),
    ("a.r0", "undo.a.r0", "a.r0.r2"),
    ("a.r02", "undo.a.r02", "a.r02.r2"),
    (".r2", "undo..r2", ".r2.r2"),
    (LONG, f"undo.{LONG[:41]}--{DIGEST}", f"{LONG[:43]}--{DIGEST}.r2"),
    (f"{LONG[:43]}--{DIGEST}.r2", None, f"{LONG[:43]}--{DIGEST}.r3"),
]


@pytest.mark.parametrize(("job_id", "undo", "following"), AFTER_UNDOS)
def test_job_ids_after_an_undo(job_id, undo, following):
    assert make_next_job_id(job_id) == following
    assert is_next_job_id(following)
    assert undo in (None, make_undo_job_id(job_id))
    assert len(following) <= 80
    assert len(make_undo_job_id(job_id)) <= 80


@given(st.from_regex(JOB_ID, fullmatch=True), st.from_regex(JOB_ID, fullmatch=True))
def test_no_two_loads_have_one_undo_or_one_successor(one, other):
    """But for a load whose own id is that of a successor."""
    if one != other:
        assert make_undo_job_id(one) != make_undo_job_id(other)
        assert make_next_job_id(one) != make_next_job_id(other)
