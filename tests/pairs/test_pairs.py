"""Every pair of a setting, a mode, a feed and a destination: proven by two loads, refused, or one that cannot meet."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from docs.write_pairs import FOLDER, PAGE, make_page
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.dialects.registry import MODELS
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Tracking
from lakewriter.spec.streamable import require_continuous
from tests.load.lakes import read_quarantine
from tests.pairs.choices import (
    AXES,
    CANNOT_MEET,
    DESTINATIONS,
    NOT_PAIRED,
    VALUES,
    close,
    complete,
    list_loads,
    list_pairs,
)
from tests.pairs.loads import DAYS, PairedLake, find_kept

LOADS = list_loads()


def name_load(load: frozenset[str]) -> str:
    return "; ".join(sorted(load))


def test_every_key_has_a_value():
    assert set(VALUES) | set(NOT_PAIRED) == set(TableEntry.model_fields)


def test_every_type_of_destination_is_paired():
    assert {destination["type"] for destination in DESTINATIONS.values()} == {tag.partition(",")[0] for tag in MODELS}


def column(table: pa.Table, name: str) -> list[Any]:
    """The values of a column, by its name in the source: destinations write it in letters of their own."""
    (index,) = [number for number, written in enumerate(table.column_names) if written.lower() == name]
    values: list[Any] = table.column(index).to_pylist()
    return values


@pytest.mark.one_in(8)
@pytest.mark.spark
@pytest.mark.parametrize("load", LOADS, ids=name_load)
def test_two_loads(load, tmp_path, aws, bucket, spark):
    lake = PairedLake(load, tmp_path, aws, spark)
    lake.describe()
    lake.bring(0)
    lake.change_by_another()
    lake.bring(1)
    tables, kept = lake.tables(), find_kept(load)
    found = pa.concat_tables(tables, promote_options="permissive")
    value = "text_of_v" if "names" in load else "v"
    rows = zip(*(column(found, name) for name in ("id", "at", value)), strict=True)
    assert sorted(tuple(map(str, row)) for row in rows) == sorted(tuple(map(str, each.row[:3])) for each in kept)
    check_values(load, lake, found)
    check_table(load, lake, tables)


def check_values(load: frozenset[str], lake: PairedLake, found: pa.Table) -> None:
    """Look for what settings do to values."""
    if "deleted" in load:
        flags = zip(
            column(found, "id"), column(found, str(lake.find_tracking_column(Tracking.DELETED)).lower()), strict=True
        )
        assert sorted(flags) == sorted((each.row[0], each.is_deleted) for each in find_kept(load))
    if "columns" in load and lake.destination != "lakewriter-s3, jsonl":
        assert {str(value) for value in column(found, "n")} <= {f"{number}.00" for number in range(1, 7)}
    if lake.has_time:
        assert {str(value)[:26].replace("T", " ") for value in column(found, "ts")} == {"2026-01-01 00:00:00.123456"}
    identities = lake.find_tracking_column(Tracking.ID)
    if identities and {"primary_key", "unique_key"} & load:
        pairs = set(zip(column(found, "id"), column(found, identities.lower()), strict=True))
        assert len(pairs) == len({key for key, _ in pairs}) == len({identity for _, identity in pairs})


def check_table(load: frozenset[str], lake: PairedLake, tables: list[pa.Table]) -> None:
    """Look for what settings do to the table and its files."""
    assert lake.spec.tables[0].name == lake.name
    if "contract" in load:
        assert [table for table in tables if "extra" in map(str.lower, table.column_names)] == []
    if lake.has_bad_rows:
        assert {row["_lake_reasons"][0].partition(":")[0] for row in read_quarantine(lake.aws, lake.name)} == {"n"}
    if "sort_by" in load and not lake.is_iceberg:
        values = [column(table, "text_of_v" if "names" in load else "v") for table in tables]
        assert values == [sorted(each) for each in values]
    if "history" in load:
        check_history(load, lake)
    if "partition_by" in load:
        assert [field.name for field in lake.iceberg().spec().fields] == ["p"]


def check_history(load: frozenset[str], lake: PairedLake) -> None:
    """It has each change of both loads, also of a row that the table has no more."""
    found = lake.iceberg(1).scan().to_arrow()
    flags = column(found, str(lake.find_tracking_column(Tracking.DELETED)).lower())
    rows = zip(*(column(found, name) for name in ("id", "at", "op")), flags, strict=True)
    changes = [row for day in DAYS for row in day]
    days = [(row[0], row[1], row[3], "deleted" in load and str(row[3]) == "D") for row in changes]
    assert sorted(tuple(map(str, row)) for row in rows) == sorted(tuple(map(str, row)) for row in days)
    if "partition_by" in load:
        assert [field.name for field in lake.iceberg(1).spec().fields] == ["p"]


CELLS = {
    pair: "proven" if any(complete(frozenset(pair))) else "cannot meet" if pair in CANNOT_MEET else "refused"
    for pair in list_pairs()
}
REFUSED = [pair for pair, cell in CELLS.items() if cell == "refused"]


def test_every_pair_has_a_cell():
    assert Counter(CELLS.values()) == {"proven": 623, "refused": 134, "cannot meet": 2}
    assert [pair for pair, cell in CELLS.items() if cell == "proven" and not any(map(set(pair).issubset, LOADS))] == []


@pytest.mark.parametrize("pair", REFUSED, ids=" and ".join)
def test_a_refused_pair(pair, tmp_path, aws):
    """Beside what each of the two needs, as far as that can be."""
    closed = close(frozenset(pair)) or frozenset(pair)
    defaults = "airbyte-s3" if "mode: overwrite" in pair else "lakewriter-s3, iceberg", "mode: append", "feed: files"
    values = [
        next((choice for choices in (pair, sorted(closed)) for choice in choices if choice in axis), default)
        for axis, default in zip(AXES, defaults, strict=True)
    ]
    settings = {choice for choice in pair if not any(choice in axis for axis in AXES)}
    lake = PairedLake(frozenset({*settings, *values}), tmp_path, aws, None)
    lake.describe()
    run = require_continuous if "feed: continuous" in pair else id
    with pytest.raises(SpecInvalidError) as refused:
        run(load_spec(lake.file))
    assert refused.value.remedy or refused.value.problems


def test_the_page_is_current():
    assert (FOLDER / PAGE).read_text("utf-8") == make_page(), "run scripts/reference"
