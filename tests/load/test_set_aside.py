"""Loads that set bad rows aside: what is loaded, what is kept of the others, and when the load fails all the same."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.commit.retention import sweep
from tests.load.lakes import BUCKET, PREFIX, completes, table, uploads_part
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, state, status, stream
from tests.support.call import Call

pytestmark = pytest.mark.spark

CITIES = "id,name\n1,Ann\n2\n3,Cid\n"


def aside(lake):
    objects = lake.aws.objects(BUCKET).items()
    return {key: body for key, body in objects if "/bad_rows/" in key}


def test_bad_rows_are_kept_beside_the_load(lake):
    rule = {"action": "set_aside", "at_most": 0.5}
    lake.write(table("cities", lake.csv("cities.csv", CITIES), primary_key=["id"], on_bad_row=rule))
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1)
    assert lake.rows("SELECT id, name, _supa_index FROM t ORDER BY 1", "supaflow_nyc_public/cities") == [
        (1, "Ann", 1),
        (3, "Cid", 2),
    ]
    [(key, body)] = aside(lake).items()
    assert result.set_aside.keys == (key,)
    begins = f"{PREFIX}/_lakewriter/flights/loads/abc123/"
    assert key.startswith(begins)
    assert key.removeprefix(begins).split("/")[1:3] == ["bad_rows", "supaflow_nyc_public.cities"]
    file = str(lake.folder / "cities.csv")
    assert json.loads(gzip.decompress(body)) == {
        "file": file, "offset": 14, "value": "2", "reason": "it has 1 field, expected 2",
    }  # fmt: skip
    # The same job id again finds the report.
    [again] = lake.load("abc123").tables
    assert (again.status, again.set_aside) == ("already_done", result.set_aside)
    assert list(aside(lake)) == [key]


def test_more_bad_rows_than_allowed_fail_the_load(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES), on_bad_row="set_aside"))
    [result] = lake.load("abc123").tables
    assert (result.status, result.code, result.set_aside) == ("failed", "SOURCE_FAILED", None)
    assert "1 of 3 rows cannot be loaded, 33.33%, and on_bad_row sets aside at most 0.10%" in result.message
    assert "cities.csv, offset 14: it has 1 field, expected 2: '2'" in result.message
    assert next(iter(aside(lake))) in result.message
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)


def test_load_that_sets_nothing_aside_writes_what_older_releases_read(lake):
    lake.write(table("cities", lake.csv("cities.csv", "id,name\n1,Ann\n"), on_bad_row="set_aside"))
    [result] = lake.load("abc123").tables
    assert (result.status, result.set_aside) == ("done", None)
    records = [body for key, body in lake.aws.objects(BUCKET).items() if "/_lakewriter/" in key]
    assert not any(b"set_aside" in body for body in records)


def test_records_that_cannot_be_read_are_set_aside(tmp_path, aws, bucket, spark):
    lake = SyncLake(tmp_path, aws, spark)
    rule = {"action": "set_aside", "at_most": 0.5}
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
    kept = {
        line["offset"]: line
        for key, body in aside(lake).items()
        for line in map(json.loads, gzip.decompress(body).splitlines())
        if "users" in key
    }
    start = sum(len(json.dumps(each)) + 1 for each in good)
    assert {offset: line["value"] for offset, line in kept.items()} == {
        start: no_object, start + len(no_object) + 1: cut,
    }  # fmt: skip
    assert kept[start]["reason"] == "its data is no object"
    assert kept[start]["file"] == str(tmp_path / "m.jsonl")


def test_documents_that_cannot_be_decoded_are_set_aside(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    deep = '{"id": 4, "x": ' + "[" * 2000 + "]" * 2000 + "}"
    texts = ['{"id": 1}', "[2]", '{"id": "three"}', deep, '{"id": 5}', ""]
    (tmp_path / "d.jsonl").write_text("".join(text + "\n" for text in texts), "utf-8")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "x": {}}, "required": ["id"]}
    own = {"collection": {"key": ["/id"], "schema": schema}, "on_bad_row": {"action": "set_aside", "at_most": 0.7}}
    lake.write(binding("docs", "d.jsonl", **own))
    [result] = lake.load("a").tables
    assert (result.status, result.rows) == ("done", 2), result
    [body] = aside(lake).values()
    kept = [json.loads(line) for line in gzip.decompress(body).splitlines()]
    assert [(line["offset"], line.get("column"), line["value"]["value"][:8]) for line in kept] == [
        (10, None, "[2]"), (14, "/id", '{"id": "'), (30, None, '{"id": 4'), (30 + len(deep) + 11, None, ""),
    ]  # fmt: skip
    assert {line["file"] for line in kept} == {str(tmp_path / "d.jsonl")}
    assert lake.rows("SELECT id FROM t ORDER BY 1", "docs") == [(1,), (5,)]


def writes_state(call: Call) -> bool:
    """The PutObject that registers a load, and then the one that binds its intent."""
    return call.method == "PUT" and call.key.endswith("/state.json")


KILLS = [
    # where the load is killed, how many such calls pass before; SIGKILL in the night
    pytest.param(uploads_part, 0, "cut_off", id="while staging"),
    pytest.param(uploads_part, 0, "killed", marks=pytest.mark.exhaustive, id="killed while staging"),
    pytest.param(writes_state, 1, "killed", marks=pytest.mark.exhaustive, id="before the intent is bound"),
    pytest.param(completes, 0, "killed", marks=pytest.mark.exhaustive, id="while completing"),
]


@pytest.mark.parametrize(("match", "after", "how"), KILLS)
def test_killed_then_the_same_load(lake, match, after, how):
    rule = {"action": "set_aside", "at_most": 0.5}
    lake.write(table("cities", lake.csv("cities.csv", CITIES), primary_key=["id"], on_bad_row=rule))
    getattr(lake, how)("abc123", match, after=after)
    [result] = lake.load("abc123").tables
    # What was bound is finished before the load begins again.
    assert result.status == ("already_done" if match is completes else "done")
    assert (result.rows, result.set_aside.rows) == (2, 1)
    assert lake.rows("SELECT id FROM t ORDER BY 1", "supaflow_nyc_public/cities") == [(1,), (3,)]
    # Each attempt keeps its own; the report names those of the one that was bound, and verify finds them.
    kept = aside(lake)
    assert {gzip.decompress(body) for body in kept.values()} == {gzip.decompress(kept[result.set_aside.keys[0]])}
    assert len({key.split("/bad_rows/")[0] for key in result.set_aside.keys}) == 1
    assert not lake.aws.uploads(BUCKET)
    # They go with the load's other records.
    control = lake.control("cities")
    assert sweep(control, datetime.now(UTC) + timedelta(days=31), timedelta(days=30))
    assert not aside(lake)
