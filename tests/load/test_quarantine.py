"""Loads that keep bad rows in the quarantine of their table: published with the load, or not at all."""

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from lakewriter.run.judging import accept, list_departures
from lakewriter.run.load import run
from lakewriter.spec.expectations import Acceptance
from tests.load.lakes import BUCKET, PREFIX, Lake, table
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, state, status, stream
from tests.load.test_expectations import DESTINATIONS, FORMATS, S3, load_at, outcomes
from tests.support.call import Call

pytestmark = pytest.mark.spark

CITIES = "id,name\n1,Ann\n2\n3,Cid\n"
PLACE = "supaflow_nyc_public/cities__quarantine"
RULE = {"action": "quarantine", "at_most": 0.5}
GLUE_TYPES = {
    "_lake_check": "string",
    "_lake_reasons": "array<string>",
    "_lake_source": "string",
    "_lake_offset": "bigint",
    "_lake_row": "string",
    "_lake_line": "string",
    "_lake_message": "string",
    "_lake_job_id": "string",
    "_lake_at": "timestamp",
}


def write_cities(lake: Lake, text: str = CITIES, **fields: Any) -> None:
    lake.write(table("cities", lake.csv("cities.csv", text), primary_key=["id"], **{"on_bad_row": RULE} | fields))


def list_quarantined(aws) -> list[str]:
    return sorted(key for key in aws.objects(BUCKET) if "__quarantine/" in key)


def list_differences(lake: Lake | SyncLake, job_id: str) -> list[str]:
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    return [each.message for each in verify(pipeline.controls, job_id, pipeline.clients).differences]


def test_line_that_cannot_be_read_is_in_the_quarantine_with_the_load(lake):
    write_cities(lake)
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1)
    [key] = list_quarantined(lake.aws)
    assert key.startswith(f"{PREFIX}/{PLACE}/on_bad_row-")
    file, reason = f"{lake.folder}/cities.csv", "it has 1 field, expected 2"
    assert (result.set_aside.keys, result.set_aside.samples) == ((key,), (f"{file}, offset 14: {reason}: '2'",))
    assert lake.rows(
        "SELECT _lake_check, _lake_reasons, _lake_source, _lake_offset, _lake_row, _lake_line, _lake_job_id FROM t",
        PLACE,
    ) == [("on_bad_row", [reason], file, 14, None, "2", "abc123")]
    assert lake.rows("SELECT id FROM t ORDER BY 1", "supaflow_nyc_public/cities") == [(1,), (3,)]
    assert not lake.aws.uploads(BUCKET)
    # A folder without others in it, and a table without partitions: no engine has to look for anything.
    found = lake.aws.client("glue").get_table(DatabaseName="supaflow_nyc_public", Name="cities__quarantine")["Table"]
    storage = found["StorageDescriptor"]
    assert storage["Location"].rstrip("/") == f"s3://{BUCKET}/{PREFIX}/{PLACE}"
    assert {column["Name"]: column["Type"] for column in storage["Columns"]} == GLUE_TYPES
    assert found["PartitionKeys"] == []
    assert list_differences(lake, "abc123") == []
    # The same job id again finds the report, and the next load adds to the folder.
    assert lake.load("abc123").tables[0].status == "already_done"
    assert lake.load("def456").tables[0].status == "done"
    assert len(list_quarantined(lake.aws)) == 2


def test_more_bad_rows_than_allowed_leave_nothing(lake):
    write_cities(lake, on_bad_row="quarantine")
    [result] = lake.load("abc123").tables
    assert (result.status, result.code) == ("failed", "SOURCE_FAILED")
    assert "1 of 3 rows cannot be loaded, 33.33%, and on_bad_row takes at most 0.10% into the" in result.message
    assert "cities.csv, offset 14: it has 1 field, expected 2: '2'" in result.message
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)


def test_load_without_bad_rows_writes_what_older_releases_read(lake):
    write_cities(lake, "id,name\n1,Ann\n")
    [result] = lake.load("abc123").tables
    assert (result.status, result.set_aside) == ("done", None)
    intents = [body for key, body in lake.aws.objects(BUCKET).items() if "/tables/" in key and "/loads/" in key]
    assert not any(b"quarantine" in body for body in intents)
    tables = lake.aws.client("glue").get_tables(DatabaseName="supaflow_nyc_public")["TableList"]
    assert [each["Name"] for each in tables] == ["cities"]


def test_load_of_bad_rows_alone(lake):
    write_cities(lake, "id,name\n2\n", on_bad_row=RULE | {"at_most": 1})
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 0, 1)
    assert [key.split("/")[-2] for key in lake.data()] == ["cities__quarantine"]
    assert list_differences(lake, "abc123") == []
    # A creation that was sent again shows in the second number, and what it may have left is looked for.
    control = lake.control("supaflow_nyc_public.cities")
    quarantine = control.read_intent("abc123", control.read_report("abc123").attempt).quarantine
    assert [receipt.requests for receipt in quarantine.receipts] == [{"POST": 1, "PUT": 1}]


NO_INTEGER = "it is not a whole number of digits 0 to 9"
VALUES = [
    # declared, the source's text, what is kept of the row, why
    ("int", "x\"y", {"id": 2, "amount": "x\"y"}, f"int: {NO_INTEGER}"),
    ("decimal(6,2)", "12345.678", {"id": 2, "amount": "12345.678"},
     "decimal(6,2): it has 3 decimal places, and decimal(6,2) has 2"),
    ("date", "2024-02-30", {"id": 2, "amount": "2024-02-30"}, "date: there is no such day in the calendar"),
    ("timestamp", "noon", {"id": 2, "amount": "noon"}, "timestamp: it is not written as YYYY-MM-DD hh:mm:ss"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "kept", "reason"), VALUES, ids=[each[0] for each in VALUES])
def test_value_that_does_not_convert_is_kept_as_the_source_has_it(lake, kind, text, kept, reason):
    good = {"int": "7", "decimal(6,2)": "7.25", "date": "2024-02-29", "timestamp": "2024-02-29 12:00:00"}[kind]
    quoted = '"' + text.replace('"', '""') + '"'
    lake.csv("sums.csv", f"id,amount\n1,{good}\n2,{quoted}\n")
    read = {"format": "csv", "path": "sums.csv", "options": {"header": "true", "escape": '"'}}
    entry = {"table": "sums", "schema": "public", "read": read, "columns": {"id": "int", "amount": kind}}
    lake.write(entry | {"on_bad_row": RULE})
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 1)
    [(row, reasons)] = lake.rows("SELECT _lake_row, _lake_reasons FROM t", "supaflow_nyc_public/sums__quarantine")
    assert (json.loads(row), reasons) == (kept, [f"amount: it does not convert to {reason}"])


@pytest.mark.parametrize("more", [{}, {"deleted": "id = 9"}], ids=["in the tasks", "in Spark's plan"])
def test_all_values_of_a_row_that_do_not_convert_are_kept(lake, more):
    """A replay would load null otherwise, once the first of them is mended."""
    lake.csv("sums.csv", "id,amount,day\n1,1,2024-01-05\n2,x,5.1.2024\n3,1.5,2024-01-05\n9,1,2024-01-06\n")
    read = {"format": "csv", "path": "sums.csv", "options": {"header": "true"}}
    entry = {"table": "sums", "schema": "public", "read": read, "on_bad_row": RULE | {"at_most": 1}, **more}
    lake.write(entry | {"columns": {"id": "int", "amount": "int", "day": "date"}})
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 2), result.message
    kept = lake.rows("SELECT _lake_row FROM t ORDER BY 1", "supaflow_nyc_public/sums__quarantine")
    rows = [{"id": 2, "amount": "x", "day": "5.1.2024"}, {"id": 3, "amount": "1.5", "day": "2024-01-05"}]
    kept_rows = [json.loads(row) for (row,) in kept]
    assert [{name: row[name] for name in rows[0]} for row in kept_rows] == rows
    assert lake.rows("SELECT id, amount, day FROM t ORDER BY 1", "supaflow_nyc_public/sums") == [
        (1, 1, date(2024, 1, 5)), (9, 1, date(2024, 1, 6))
    ]  # fmt: skip


def test_cursor_passes_rows_in_the_quarantine(lake):
    """The next load would read the highest row again otherwise, and keep it a second time."""
    entry = table("sums", lake.csv("sums.csv", "id,amount\n1,5\n2,6\n9,x\n"), cursor="id", on_bad_row=RULE)
    lake.write(entry | {"columns": {"id": "int", "amount": "int"}})
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1)
    assert lake.control("supaflow_nyc_public.sums").state.read().cursor.text == "9"
    [again] = lake.load("def456").tables
    assert (again.status, again.rows, again.set_aside) == ("done", 0, None)


def test_undo_takes_the_bad_rows_as_well(lake):
    write_cities(lake)
    lake.load("abc123")
    lake.load("def456")
    kept = [key for key in list_quarantined(lake.aws) if _reads_job(lake, key, "abc123")]
    undo = Undo(Pipeline.open(lake.spec, Clients(lake.spec.access)), "def456", Choices("a drill"))
    [planned] = undo.plan()
    assert planned.plan is not None
    assert len(planned.plan.undone.quarantined) == 1
    undo.run()
    assert list_quarantined(lake.aws) == kept
    assert list_differences(lake, "abc123") == list_differences(lake, "def456") == []


def _reads_job(lake: Lake, key: str, job_id: str) -> bool:
    reader = pa.BufferReader(lake.aws.objects(BUCKET)[key])
    return bool(pq.read_table(reader)["_lake_job_id"].to_pylist() == [job_id])


CHANGES = [
    # what is done to the bad rows' file, what verify says
    (lambda aws, key: aws.client("s3").delete_object(Bucket=BUCKET, Key=key), "the object is gone"),
    (lambda aws, key: aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x"), "written by 'another writer'"),
    (
        lambda aws, _: aws.client("glue").delete_table(DatabaseName="supaflow_nyc_public", Name="cities__quarantine"),
        "cities__quarantine: the table is not there in Glue",
    ),
]


@pytest.mark.parametrize(("change", "found"), CHANGES, ids=[each[1] for each in CHANGES])
def test_verify_compares_the_quarantine(lake, change, found):
    write_cities(lake)
    lake.load("abc123")
    [key] = list_quarantined(lake.aws)
    change(lake.aws, key)
    [message] = list_differences(lake, "abc123")
    assert found in message


def is_write(call: Call) -> bool:
    return call.service in ("s3", "glue") and not call.action.partition(":")[2].startswith(("Get", "List"))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("first", range(4))
def test_load_cut_off_anywhere_publishes_both_kinds_of_rows_or_none(lake, first):
    """Whatever a load has left, the same job id brings it to its end, and each row is there once."""
    write_cities(lake)
    lake.load("first")
    seen: list[Call] = []

    def note(call: Call, proceed: Any) -> Any:
        seen.extend([call] if is_write(call) else [])
        return proceed(call)

    lake.aws.interceptors.append(note)
    lake.load("second")
    lake.aws.interceptors.clear()
    assert 10 < len(seen) < 40, [call.action for call in seen]
    for after in range(first, len(seen), 4):
        job_id = f"job-{after}"
        lake.cut_off(job_id, is_write, after=after)
        found = count_rows(lake, "cities", job_id), count_rows(lake, "cities__quarantine", job_id)
        if lake.control("supaflow_nyc_public.cities").state.read().pending is None:
            assert found in ((0, 0), (2, 1)), seen[after]
        assert lake.load(job_id).status == "done"
        assert (count_rows(lake, "cities", job_id), count_rows(lake, "cities__quarantine", job_id)) == (2, 1)
        assert not lake.aws.uploads(BUCKET)
        assert list_differences(lake, job_id) == []


def count_rows(lake: Lake, name: str, job_id: str) -> int:
    objects = lake.aws.objects(BUCKET)
    keys = [key for key in objects if f"/{name}/" in key and "/_lakewriter/" not in key]
    columns = (pq.read_table(pa.BufferReader(objects[key])) for key in keys)
    column = "_lake_job_id" if name.endswith("__quarantine") else "_supa_job_id"
    return sum(table[column].to_pylist().count(job_id) for table in columns)


def test_records_that_cannot_be_read_are_in_the_quarantine_of_their_stream(tmp_path, aws, bucket, spark):
    lake = SyncLake(tmp_path, aws, spark)
    schema: dict[str, Any] = {"properties": {"user_id": {"type": "integer"}}}
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", schema))}
    lake.write({"format": {"format_type": "Parquet"}}, on_bad_row=RULE, source=source)
    good = [record("users", {"user_id": number}) for number in (1, 2, 3)]
    bad = json.dumps(good[0]).replace('{"user_id": 1}', "[1]")
    lake.messages(*good, bad, status("users", "COMPLETE"))
    [result] = lake.load("a").tables
    assert result.set_aside is not None, result.message
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 3, 1)
    [key] = list_quarantined(aws)
    assert pq.read_table(pa.BufferReader(aws.objects(BUCKET)[key]))["_lake_line"].to_pylist() == [bad]


@pytest.mark.parametrize("format_", [{"format_type": "Avro"}, {"format_type": "CSV"}, {"format_type": "JSONL"}])
def test_quarantine_is_parquet_beside_files_of_every_format(tmp_path, aws, bucket, spark, format_):
    lake = SyncLake(tmp_path, aws, spark)
    (tmp_path / "cities.csv").write_text(CITIES, "utf-8")
    lake.write({"format": format_}, tables=[table("cities", "cities.csv")], on_bad_row=RULE)
    [result] = lake.load("a").tables
    assert result.set_aside is not None
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1)
    [key] = list_quarantined(aws)
    assert pq.read_table(pa.BufferReader(aws.objects(BUCKET)[key]))["_lake_line"].to_pylist() == ["2"]


def test_iceberg_table_has_a_quarantine_of_files_in_glue(lake):
    text = "id,name\n1,Ann\n2\n3,Cid\n"
    entry = table("cities", lake.csv("cities.csv", text), on_bad_row=RULE)
    lake.write(entry, table_format="ICEBERG", update_aws_glue_catalog=None, partition_strategy=None)
    [result] = lake.load("abc123").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1)
    tables = lake.aws.client("glue").get_tables(DatabaseName="supaflow_nyc_public")["TableList"]
    kinds = {each["Name"]: each["Parameters"].get("table_type", "files") for each in tables}
    assert kinds == {"cities": "ICEBERG", "cities__quarantine": "files"}
    assert len(list_quarantined(lake.aws)) == 1
    assert list_differences(lake, "abc123") == []
    Undo(Pipeline.open(lake.spec, Clients(lake.spec.access)), "abc123", Choices("a drill")).run()
    assert list_quarantined(lake.aws) == []


CHECKS: list[dict[str, Any]] = [
    {"not_null": "name", "on_violation": "quarantine"},
    {"range": {"column": "amount", "at_least": 0, "at_most": 100}, "on_violation": "quarantine"},
    {"accepted_values": {"column": "kind", "values": ["a", "b"]}, "on_violation": "quarantine"},
    {"rows": {"at_most": 3}},
]
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "x", "amount": 5, "kind": "a"},
    {"id": 2, "name": None, "amount": 5, "kind": "a"},
    {"id": 3, "name": "x", "amount": -1, "kind": "b"},
    {"id": 4, "name": "x", "amount": None, "kind": None},
    {"id": 5, "name": None, "amount": 101, "kind": "c"},
    {"id": 6, "name": "x", "amount": 100, "kind": "b"},
]
KEPT_OUT = [
    ("not_null.name", 2, ["not_null.name: no nulls in name"]),
    ("range.amount", 3, ["range.amount: amount 0 to 100"]),
    ("not_null.name", 5, ["not_null.name: no nulls in name", "range.amount: amount 0 to 100",
                          "accepted_values.kind: kind is 'a' or 'b'"]),
]  # fmt: skip
FOUND = {"not_null.name": "2 rows", "range.amount": "2 rows", "accepted_values.kind": "1 row"}
SMALL = {"sql": "amount < 101", "name": "small", "on_violation": "quarantine"}
"""False of the fifth row and null of the fourth; only Spark looks at it."""
WHY_SMALL = "small: no row of which amount < 101 is false"


def read_quarantine(aws) -> list[tuple[str, int, list[str]]]:
    files = [pq.read_table(pa.BufferReader(aws.objects(BUCKET)[key])).to_pylist() for key in list_quarantined(aws)]
    rows = [(row["_lake_check"], find_id(row["_lake_row"]), row["_lake_reasons"]) for each in files for row in each]
    return sorted(rows, key=lambda row: row[1])


def find_id(row: str) -> int:
    """Of a document the source's column has its text."""
    content = json.loads(row)
    return int((json.loads(content["value"]) if "value" in content else content)["id"])


def require_kept_out(result, aws, feed: str | None = None) -> None:
    assert result.status == "done", result.message
    assert (result.rows, result.set_aside.rows) == (3, 3)
    by_spark = {"small": "1 row"} if "small" in outcomes(result) else {}
    assert {each.check: each.found for each in result.expectations if each.outcome == "set_aside"} == FOUND | by_spark
    assert outcomes(result)["rows"] == "passed"
    why = [*KEPT_OUT[2][2], *([WHY_SMALL] if by_spark else [])]
    assert read_quarantine(aws) == [*KEPT_OUT[:2], (*KEPT_OUT[2][:2], why)]
    assert feed is None or result.feed == feed


@pytest.mark.one_in(3)
@pytest.mark.parametrize("feed", ["splits", "rows"])
@pytest.mark.parametrize("destination", DESTINATIONS, ids=str)
def test_rows_that_fail_a_check_are_kept_out(lake, destination, feed):
    pq.write_table(pa.Table.from_pylist(ROWS), lake.folder / "in.parquet")
    path = {"format": "parquet", "path": "in.parquet"}
    read = path if feed == "splits" else {"sql": "SELECT * FROM v", "views": {"v": path}}
    expect = [*CHECKS, *([SMALL] if feed == "rows" else [])]
    entry = {"table": "t", "schema": "s", "read": read, "expect": expect, "on_bad_row": RULE}
    lake.file.write_text(json.dumps({"pipeline": "p", "destination": S3 | destination, "tables": [entry]}), "utf-8")
    [result] = load_at(lake.spec, "a", lake._spark).tables
    require_kept_out(result, lake.aws, feed)
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    assert verify(pipeline.controls, "a", pipeline.clients).differences == ()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_records_that_fail_a_check_are_kept_out(tmp_path, aws, bucket, spark, form):
    lake = SyncLake(tmp_path, aws, spark)
    text = {"type": ["null", "string"]}
    schema = {"properties": {"id": {"type": "integer"}, "name": text, "amount": {"type": "integer"}, "kind": text}}
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", schema))}
    lake.write({"format": form}, expect=CHECKS, on_bad_row=RULE, source=source)
    lake.messages(*(record("users", row) for row in ROWS), state("users", 1), status("users", "COMPLETE"))
    [result] = load_at(lake.spec, "a", spark).tables
    require_kept_out(result, aws)


def test_documents_that_fail_a_check_are_kept_out(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("in/a.json", ROWS)
    kinds = {"id": "integer", "name": ["null", "string"], "amount": ["null", "integer"], "kind": ["null", "string"]}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}
    collection = {"schema": schema, "key": ["/id"]}
    lake.write(binding("x", "in", collection=collection, expect=CHECKS, on_bad_row=RULE))
    [result] = lake.load("a").tables
    require_kept_out(result, aws)


def test_rows_that_fail_a_condition_are_kept_out(lake):
    rule = {"sql": "amount >= 0 OR kind = 'b'", "name": "order", "on_violation": "quarantine"}
    text = "id,amount,kind\n1,5,a\n2,-1,a\n3,-1,b\n4,,a\n5,x,a\n"
    entry = table("sums", lake.csv("sums.csv", text), primary_key=["id"], on_bad_row=RULE, expect=[rule])
    lake.write(entry | {"columns": {"id": "int", "amount": "int"}})
    [result] = lake.load("a").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 3, 2), result.message
    [verdict] = result.expectations
    assert (verdict.outcome, verdict.found, verdict.samples) == ("set_aside", "1 row", ("(id=2)",))
    reason = "order: no row of which amount >= 0 OR kind = 'b' is false"
    assert read_quarantine(lake.aws) == [
        ("order", 2, [reason]),
        ("on_bad_row", 5, [f"amount: it does not convert to int: {NO_INTEGER}"]),
    ]
    assert lake.rows("SELECT id FROM t ORDER BY 1", "supaflow_nyc_public/sums") == [(1,), (3,), (4,)]


def test_more_rows_than_allowed_that_fail_checks_fail_the_load(lake):
    """The share is of all rows that are kept out; whoever accepts a check loads its rows as they are."""
    pq.write_table(pa.Table.from_pylist(ROWS), lake.folder / "in.parquet")
    entry = {
        "table": "t",
        "schema": "s",
        "read": {"format": "parquet", "path": "in.parquet"},
        "expect": CHECKS[:3],
        "primary_key": ["id"],
    }
    lake.write(entry | {"on_bad_row": RULE | {"at_most": 0.4}})
    [result] = lake.load("a").tables
    assert result.code == "EXPECTATION_FAILED"
    said = "not_null.name found 2 rows, such as (id=2), (id=5), expected no nulls in name, "
    assert said in result.message
    assert "and at most 40.00% of all rows (on_bad_row.at_most) kept out" in result.message
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)
    # Of six rows one fails the check that is left.
    spec = accept(lake.spec, Acceptance(checks=("not_null.name", "range.amount"), by="ann", reason="a drill"))
    report = run(spec, job_id="a", clients=Clients(spec.access), spark=lambda: lake._spark)
    [result] = report.tables
    assert result.set_aside is not None, result.message
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 5, 1)
    assert outcomes(result) == {
        "not_null.name": "accepted", "range.amount": "accepted", "accepted_values.kind": "set_aside",
    }  # fmt: skip
    assert list(list_departures(report)) == [
        "supaflow_nyc_s.t: not_null.name found 1 null in 5 rows (20.00%), expected no nulls; accepted by ann: a drill",
        "supaflow_nyc_s.t: range.amount found -1 as the lowest value, expected 0 to 100; accepted by ann: a drill",
        "supaflow_nyc_s.t: accepted_values.kind found 1 row, such as (id=5), expected "
        "kind is 'a' or 'b'; these rows are in the quarantine",
    ]
