"""Which objects the job's role may write, read and delete: those of its tables by their templates, and its records."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.naming import ControlKeys
from lakewriter.policy.prefixes import is_wide, list_written_keys
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from tests.policy.lakes import lake

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
READ = {"format": "parquet", "path": "s3://acme-landing/nyc/flights"}


def matches(key: str, patterns: list[str]) -> bool:
    """IAM's ``*`` matches slashes too, as fnmatch's does; brackets, which fnmatch has besides, are in none of these."""
    return any(fnmatchcase(key, pattern.replace("${*}", "[*]").replace("${$}", "$")) for pattern in patterns)


def list_own(spec: Spec) -> list[str]:
    keys = ControlKeys(spec.access.prefix, spec.pipeline)
    records = [keys.state("a.b"), keys.load("job"), f"{keys.writers}a.json", f"{keys.root}/runs/a.json"]
    own = [each for table in spec.tables for each in list_of_table(table.layout)]
    quarantines = [f"{table.quarantine}/a/b.parquet" for table in spec.tables if table.quarantine is not None]
    return [*records, *own, *quarantines]


def list_of_table(layout: Layout) -> list[str]:
    folder = layout.prefix.rpartition("/")[0]
    keys = [layout.example, f"{layout.example}-2", f"{folder}/_lakewriter/owners/0a.json".lstrip("/")]
    keys += [variant.example for variant in layout.variants]
    keys += [f"{layout.purged}/whatever.it.is"] if layout.purged else []
    return keys + ([f"{layout.folder.example}/a/b.pdf"] if layout.folder is not None else [])


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_all_that_loads_write_and_nothing_beside(path: Path) -> None:
    spec = load(path).spec
    patterns = list_written_keys(spec)
    assert [key for key in list_own(spec) if not matches(key, patterns)] == []
    folders = {table.path.rpartition("/")[0] for table in spec.tables}
    others = [f"{spec.access.prefix}/other_vendor/table/a.parquet".lstrip("/")]
    others += [f"{folder}/another_table/a.parquet".lstrip("/") for folder in folders]
    others += [f"{ControlKeys(spec.access.prefix, 'another').root}/tables/a.b/state.json"]
    assert [key for key in others if matches(key, patterns)] == []
    assert not is_wide(spec)


SIZES = [
    # tables of one schema; whether that is more than a policy, and what is allowed of the tables then
    (20, False, 20),
    (500, True, 1),
]


@pytest.mark.parametrize(("count", "wide", "allowed"), SIZES)
def test_more_than_a_policy_holds(tmp_path: Path, count: int, wide: bool, allowed: int) -> None:
    spec = lake(tmp_path, tables=[{"table": f"t{number}", "read": READ} for number in range(count)]).spec
    of_tables = [pattern for pattern in list_written_keys(spec) if "_lakewriter" not in pattern]
    assert (is_wide(spec), len(of_tables)) == (wide, allowed)
    assert not wide or of_tables == ["data/supaflow_nyc/*"]


def test_more_folders_than_a_policy_holds(tmp_path: Path) -> None:
    tables = [{"table": "t", "schema": f"s{number}", "read": READ} for number in range(500)]
    assert list_written_keys(lake(tmp_path, tables=tables).spec) == ["data/*"]
