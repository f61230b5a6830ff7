"""Bad records and documents: what is loaded, and what the quarantine has of the others."""

import json
from typing import Any

import pytest

from tests.load.lakes import read_quarantine
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, state, status, stream

pytestmark = pytest.mark.spark


def test_records_that_cannot_be_read_are_in_the_quarantine(tmp_path, aws, bucket, spark):
    lake = SyncLake(tmp_path, aws, spark)
    rule = {"action": "quarantine", "at_most": 0.5}
    schema: dict[str, Any] = {"properties": {"user_id": {"type": "integer"}}}
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", schema), stream("orders", schema))}
    lake.write({"format": {"format_type": "Parquet"}}, on_bad_row=rule, source=source)
    good = [record("users", {"user_id": number}) for number in (1, 2, 3)]
    no_object = json.dumps(good[0]).replace('{"user_id": 1}', "[1]")
    # It may be of either stream, which both keep it then.
    cut = json.dumps(good[0])[:40]
    lake.messages(*good, no_object, cut, record("orders", {"user_id": 7}), state("users", 1),
                  status("users", "COMPLETE"), status("orders", "COMPLETE"))  # fmt: skip
    report = lake.load("a")
    found = {each.table: (each.status, each.rows, each.set_aside and each.set_aside.rows) for each in report.tables}
    assert found == {"users": ("done", 3, 2), "orders": ("done", 1, 1)}
    kept = {row["_lake_offset"]: row for row in read_quarantine(lake.aws, "users")}
    start = sum(len(json.dumps(each)) + 1 for each in good)
    assert {offset: row["_lake_line"] for offset, row in kept.items()} == {
        start: no_object, start + len(no_object) + 1: cut,
    }  # fmt: skip
    assert kept[start]["_lake_reasons"] == ["its data is not an object"]
    assert kept[start]["_lake_source"] == str(tmp_path / "m.jsonl")


def test_documents_that_cannot_be_decoded_are_in_the_quarantine(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    deep = '{"id": 4, "x": ' + "[" * 2000 + "]" * 2000 + "}"
    texts = ['{"id": 1}', "[2]", '{"id": "three"}', deep, '{"id": 5}', ""]
    (tmp_path / "d.jsonl").write_text("".join(text + "\n" for text in texts), "utf-8")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "x": {}}, "required": ["id"]}
    own = {"collection": {"key": ["/id"], "schema": schema}, "on_bad_row": {"action": "quarantine", "at_most": 0.7}}
    lake.write(binding("docs", "d.jsonl", **own))
    [result] = lake.load("a").tables
    assert (result.status, result.rows) == ("done", 2), result
    kept = read_quarantine(lake.aws)
    assert [(row["_lake_offset"], json.loads(row["_lake_row"])["value"][:8]) for row in kept] == [
        (10, "[2]"), (14, '{"id": "'), (30, '{"id": 4'), (30 + len(deep) + 11, ""),
    ]  # fmt: skip
    assert {row["_lake_source"] for row in kept} == {str(tmp_path / "d.jsonl")}
    assert lake.rows("SELECT id FROM t ORDER BY 1", "docs") == [(1,), (5,)]
