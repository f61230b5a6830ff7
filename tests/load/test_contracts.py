"""Loads of a source that grows, under each contract: the table in Glue, its rows, and what the report counts."""

import re

import pytest

from tests.load.lakes import table

pytestmark = pytest.mark.spark

TABLE = "supaflow_nyc_public/cities"


def test_columns_that_the_source_adds_are_left_out_and_counted(lake):
    lake.write(table("cities", lake.csv("cities.csv", "id,name\n1,Ann\n"), contract={"columns": "discard"}))
    assert lake.load("first").status == "done"
    lake.csv("cities.csv", "id,name,note\n2,Ben,x\n3,Cid,\n")
    [result] = lake.load("second").tables
    assert (result.status, result.rows, result.undeclared) == ("done", 2, {"note": 1})
    assert result.notes[0] == "column 'note' is not in the table: left out and counted"
    assert lake.rows("SELECT id, name FROM t ORDER BY id", TABLE) == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    columns = [name for name, *_ in lake.rows("DESCRIBE t", TABLE)]
    assert "note" not in columns


FROZEN = [
    ({"columns": "freeze"}, "id,name,note\n2,Ben,x\n", "has columns that the table does not have"),
    ({"types": "freeze"}, "id,name\n20000000000,Ben\n", "is 'bigint' in the source and 'int' in the table"),
]  # fmt: skip


@pytest.mark.parametrize(("contract", "second", "message"), FROZEN)
def test_frozen_table_fails_before_anything_is_written(lake, contract, second, message):
    lake.write(table("cities", lake.csv("cities.csv", "id,name\n1,Ann\n"), contract=contract))
    assert lake.load("first").status == "done"
    before = lake.data()
    lake.csv("cities.csv", second)
    [result] = lake.load("second").tables
    assert (result.status, result.code) == ("failed", "SCHEMA_INCOMPATIBLE")
    assert re.search(message, result.message)
    assert lake.data() == before
