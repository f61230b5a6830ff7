"""Loads that are judged before they are seen: what is published, what is not, and what is left of it."""

import json
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.report import RunReport, TableResult
from lakewriter.run.loader import load
from lakewriter.spec.expectations import Acceptance
from lakewriter.spec.specification import Spec
from tests.load.lakes import BUCKET, table, uploads_part, writes
from tests.load.materializations import Materialization, Running, binding
from tests.load.syncs import SyncLake, catalog, record, state, status, stream

pytestmark = pytest.mark.spark

CITIES = "id,name,seen\n1,Ann,2027-01-01\n2,,2027-01-02\n3,Cid,2027-01-03\n"
NOT_NULL = [{"not_null": "name"}]


def outcomes(result: Any) -> dict[str, str]:
    return {verdict.check: verdict.outcome for verdict in result.expectations}


def cities(lake: Any, text: str = CITIES, **fields: Any) -> dict[str, Any]:
    return table("cities", lake.csv("cities.csv", text), cursor="id", **fields)


def accepting(spec: Any, *checks: str) -> Any:
    return spec.model_copy(update={"acceptance": Acceptance(checks=checks, reason="known", by="ann")})


def load_at(spec: Spec, job_id: str, spark: SparkSession) -> RunReport:
    """A load that is scheduled for six o'clock."""
    spec = spec.model_copy(update={"scheduled_at": RUN_AT})
    return load(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: spark)


def test_load_that_is_not_as_expected_leaves_nothing(lake):
    lake.write(cities(lake, expect=[{"rows": {"at_least": 3}}, *NOT_NULL]))
    [result] = lake.load("a").tables
    assert (result.status, result.code) == ("failed", "EXPECTATION_FAILED")
    assert outcomes(result) == {"rows": "passed", "not_null.name": "failed"}
    assert result.message == (
        "table 'supaflow_nyc_public.cities': 1 of 2 expectations not met: not_null.name found 1 null in 3 rows "
        "(33.33%), expected no nulls. Nothing of the load was published, what was staged is gone, and the "
        "cursor has not moved. "
        "Correct the source, and run the load again: lakewriter run LAKE --job-id a; or load it as it is, with "
        "--accept not_null.name --reason TEXT behind it"
    )
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)
    held = lake.control("supaflow_nyc_public.cities").state.read()
    assert (held.committed, held.cursor, held.pending, held.running) == (0, None, None, {})
    # The same job id loads the source once it is corrected.
    lake.csv("cities.csv", CITIES.replace("2,,", "2,Bob,"))
    [result] = lake.load("a").tables
    assert (result.status, result.rows, outcomes(result)["not_null.name"]) == ("done", 3, "passed")
    # What is done is not judged again, and its report tells what it was found to be.
    [again] = lake.load("a").tables
    assert (again.status, again.expectations) == ("already_done", result.expectations)


def test_accepted_load_says_by_whom_and_why(lake):
    lake.write(cities(lake, expect=NOT_NULL))
    assert lake.load("a").status == "failed"
    [result] = load_at(accepting(lake.spec, "not_null.name"), "a", lake._spark).tables
    assert (result.status, outcomes(result)) == ("done", {"not_null.name": "accepted"})
    report = lake.control("supaflow_nyc_public.cities").read_report("a")
    assert report.model_dump(mode="json")["expectations"] == [
        {
            "check": "not_null.name", "kind": "null_share", "column": "name", "holds": False, "outcome": "accepted",
            "found": "1 null in 3 rows (33.33%)", "expected": "no nulls", "samples": [], "by": "ann", "reason": "known",
        }
    ]  # fmt: skip


def test_warning_is_published(lake):
    lake.write(cities(lake, expect=NOT_NULL, on_violation="warn"))
    [result] = lake.load("a").tables
    assert (result.status, outcomes(result)) == ("done", {"not_null.name": "warned"})


def test_one_table_that_is_not_as_expected_does_not_stop_the_others(lake):
    lake.write(cities(lake, expect=NOT_NULL), table("towns", "cities.csv"))
    assert [result.status for result in lake.load("a").tables] == ["failed", "done"]


def test_the_loads_before_are_listed_once_for_all_tables(lake, aws):
    rule = [{"rows": {"of_last_loads": 2, "between": ["50%", "200%"]}}]
    source = lake.csv("cities.csv", CITIES)
    lake.write(*(table(name, source, expect=rule) for name in ("cities", "towns", "villages")))
    lake.load("a")
    listed = []

    def note(call, proceed):
        listed.extend([call.query["prefix"]] if call.query.get("prefix", "").endswith("/loads/") else [])
        return proceed(call)

    aws.interceptors.append(note)
    assert [result.status for result in lake.load("b").tables] == ["done"] * 3
    assert len(listed) == 1


def test_rows_against_the_loads_before(lake):
    rule = [{"rows": {"of_last_loads": 2, "between": ["50%", "200%"]}}]
    lake.write(table("cities", lake.csv("cities.csv", CITIES), expect=rule))
    [first] = lake.load("a").tables
    assert outcomes(first) == {"rows.of_last_loads": "warned"}
    assert [outcomes(lake.load(job).tables[0]) for job in ("b", "c")] == [{"rows.of_last_loads": "passed"}] * 2
    lake.csv("cities.csv", "id,name,seen\n1,Ann,2027-01-01\n")
    [result] = lake.load("d").tables
    assert result.code == "EXPECTATION_FAILED"
    assert "found 1 row, expected 1.5 to 6 rows, 50% to 200% of the median of the last 2 loads" in result.message


@pytest.mark.parametrize("point", [uploads_part, writes(".json")], ids=["staging", "intent"])
def test_attempt_that_died_before_it_was_bound_is_judged_again(lake, point):
    lake.write(cities(lake, expect=NOT_NULL))
    lake.csv("cities.csv", CITIES.replace("2,,", "2,Bob,"))
    lake.cut_off("a", point, after=0 if point is uploads_part else 2)
    lake.csv("cities.csv", CITIES)
    [result] = lake.load("a").tables
    assert result.code == "EXPECTATION_FAILED"
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)


SEEN: list[dict[str, Any]] = [{"rows": {"at_most": 3}}, {"range": {"column": "id", "at_least": 1, "at_most": 3}},
        {"null_share": {"column": "name", "at_most": "34%"}},
        {"fresh": {"column": "at", "within": "1 day"}}]  # fmt: skip
BAD: list[dict[str, Any]] = [{"rows": {"at_most": 2}}, {"range": {"column": "id", "at_least": 2}},
       {"null_share": {"column": "name", "at_most": "33%"}},
       {"fresh": {"column": "at", "within": "1 hour"}}]  # fmt: skip
AT = [datetime(2027, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)]
RUN_AT = datetime(2027, 1, 1, 6, tzinfo=UTC)
CHECKS = ["rows", "range.id", "null_share.name", "fresh.at"]
S3 = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/p", "region": "us-east-1"}
DESTINATIONS: list[dict[str, Any]] = [
    {"format": "parquet"},
    {"format": "parquet", "compression": "gzip"},
    {"format": "avro"},
    {"format": "csv"},
    {"format": "jsonl"},
    {"catalog": "glue", "database": "shop"},
    {"catalog": "iceberg", "database": "shop"},
]


@pytest.mark.one_in(9)
@pytest.mark.parametrize("feed", ["splits", "rows"])
@pytest.mark.parametrize("destination", DESTINATIONS, ids=str)
def test_every_format_and_feed_is_judged(lake, destination, feed):
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "at": pa.array(AT)})
    pq.write_table(rows, lake.folder / "in.parquet")
    path = {"format": "parquet", "path": "in.parquet"}
    read = path if feed == "splits" else {"sql": "SELECT * FROM v", "views": {"v": path}}

    def load_expecting(job: str, expect: Any) -> TableResult:
        entry = {"table": "t", "schema": "s", "read": read, "expect": expect}
        lake.file.write_text(json.dumps({"pipeline": "p", "destination": S3 | destination, "tables": [entry]}), "utf-8")
        [result] = load_at(lake.spec, job, lake._spark).tables
        return result

    bad = load_expecting("a", BAD)
    assert (bad.code, outcomes(bad)) == ("EXPECTATION_FAILED", dict.fromkeys(CHECKS, "failed")), bad.message
    assert not lake.aws.uploads(BUCKET)
    good = load_expecting("b", SEEN)
    assert (good.status, outcomes(good)) == ("done", dict.fromkeys(CHECKS, "passed")), good.message
    assert good.feed == feed


STREAM = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "at": {"type": "string", "format": "date-time", "airbyte_type": "timestamp_with_timezone"},
    }
}
FORMATS: list[dict[str, Any]] = [
    {"format_type": "Parquet"},
    {"format_type": "Avro", "compression_codec": {"codec": "no compression"}},
    {"format_type": "CSV", "flattening": "Root level flattening"},
    {"format_type": "CSV", "flattening": "No flattening"},
    {"format_type": "JSONL", "flattening": "Root level flattening"},
    {"format_type": "JSONL", "flattening": "No flattening"},
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_streams_are_judged_one_by_one(tmp_path, aws, bucket, spark, form):
    lake = SyncLake(tmp_path, aws, spark)
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", STREAM), stream("orders", STREAM))}
    expect = [rule | {"tables": ["users"]} for rule in BAD] + [rule | {"tables": ["orders"]} for rule in SEEN]
    lake.write({"format": form}, expect=expect, source=source)
    rows = [{"id": number, "name": name, "at": at.isoformat()}
            for number, name, at in zip((1, 2, 3), ("a", None, "c"), AT, strict=True)]  # fmt: skip
    messages = [record(name, row) for name in ("users", "orders") for row in rows]
    lake.messages(*messages, state("users", 1), status("users", "COMPLETE"), status("orders", "COMPLETE"))
    results = load_at(lake.spec, "a", spark).tables
    found = {result.table: (result.status, outcomes(result)) for result in results}
    assert found == {
        "users": ("failed", dict.fromkeys(CHECKS, "failed")),
        "orders": ("done", dict.fromkeys(CHECKS, "passed")),
    }
    assert not aws.uploads(BUCKET)


DOCUMENTS = [{"id": 1, "v": {"n": 5}}, {"id": 2, "v": {}}]
RULES = [{"range": {"column": "v/n", "at_most": 4}}, {"not_null": "id"}]
OF_DOCUMENTS = {"range.v/n": "failed", "not_null.id": "passed"}


def test_documents_are_judged(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("in/a.json", DOCUMENTS)
    lake.write(binding("x", "in", primary_key=["id"], expect=RULES))
    [result] = lake.load("a").tables
    assert (result.code, outcomes(result)) == ("EXPECTATION_FAILED", OF_DOCUMENTS)
    assert not lake.data()


def test_batch_that_is_not_as_expected_stops_the_stream_until_it_is_accepted(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("in/a.json", DOCUMENTS)
    lake.write(binding("x", "in", primary_key=["id"], expect=RULES), checkpoint=str(tmp_path / "checkpoint"))
    with lake.running() as run:
        while not any(step.startswith("failed") for step in run.steps):
            time.sleep(0.1)
    held = lake.control(lake.spec.tables[0].id).state.read()
    assert (held.committed, held.running, lake.data(), aws.uploads(BUCKET)) == (0, {}, {}, [])
    # The same batch is judged again, and what is accepted is accepted of that batch alone.
    accepted = Running(accepting(lake.spec, "range.v/n"), spark)
    thread = threading.Thread(target=accepted.run)
    thread.start()
    lake.until(0, lake.spec.tables[0].id)
    lake.documents("in/b.json", DOCUMENTS)
    while not any(step.startswith("failed") for step in accepted.steps):
        time.sleep(0.1)
    accepted.stop.set()
    thread.join()
    assert [batch.rows for batch in accepted.batches] == [2]
    assert "EXPECTATION_FAILED" in accepted.steps[-1]


ROW_RULES: list[dict[str, Any]] = [
    {"accepted_values": {"column": "name", "values": ["a", "c"]}},
    {"unique": "id"},
    {"unique": ["id", "name"], "name": "pair"},
    {"sql": "name <> 'z' OR id > 2", "name": "order"},
]
GOOD_ROWS = {"id": [1, 2, None, None], "name": ["a", "c", None, None]}
BAD_ROWS = {"id": [1, 2, 2, 2], "name": ["a", "z", "c", "c"]}
BROKEN = {
    "accepted_values.name": ("1 of 4 rows with other values", ("'z'",)),
    "unique.id": ("3 of 4 rows with values of other rows", ("2 (3 times)",)),
    "pair": ("2 of 4 rows with values of other rows", ("2, c (2 times)",)),
    "order": ("1 of 4 rows", ("(id=2)",)),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("form", [{"format": "parquet"}, {"format": "jsonl"}, {"catalog": "iceberg", "database": "d"}],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("index", ["contiguous", "sparse"])
def test_rows_are_judged_one_by_one(lake, form, index):
    entry = {"table": "t", "schema": "s", "read": {"format": "parquet", "path": "in.parquet"}, "index": index,
             "primary_key": ["id"], "expect": ROW_RULES}  # fmt: skip
    lake.file.write_text(
        json.dumps({"pipeline": "p", "destination": S3 | form | {"tracking": ["row_number"]}, "tables": [entry]}),
        "utf-8",
    )
    pq.write_table(pa.table(BAD_ROWS), lake.folder / "in.parquet")
    [bad] = lake.load("a").tables
    assert bad.code == "EXPECTATION_FAILED", bad.message
    assert {verdict.check: (verdict.found, verdict.samples) for verdict in bad.expectations} == BROKEN
    assert (
        "order found 1 of 4 rows, such as (id=2), expected none of which name <> 'z' OR id > 2 is false" in bad.message
    )
    assert not lake.aws.uploads(BUCKET)
    pq.write_table(pa.table(GOOD_ROWS), lake.folder / "in.parquet")
    [good] = lake.load("b").tables
    assert (good.status, outcomes(good)) == ("done", dict.fromkeys(BROKEN, "passed")), good.message
    assert good.rows == 4


def test_bad_rows_that_are_set_aside_are_not_judged(lake):
    rules = [{"sql": "id < 9", "name": "small"}, {"unique": "name"}]
    rows = "id,name\n1,Ann\n2\n9,Ann,x\n3,Cid\n"
    rule = {"action": "quarantine", "at_most": 0.5}
    lake.write(table("cities", lake.csv("cities.csv", rows), on_bad_row=rule, expect=rules))
    [result] = lake.load("a").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 2)
    assert outcomes(result) == {"small": "passed", "unique.name": "passed"}


BROKEN_SQL = [
    ("nope > 1", "expectation 'x' of 'supaflow_nyc_public.cities' is 'nope > 1', which cannot be used"),
    ("id + 1", "it gives int, expected boolean"),
]


@pytest.mark.parametrize(("sql", "said"), BROKEN_SQL)
def test_condition_that_cannot_be_used_is_refused(lake, sql, said):
    lake.write(table("cities", lake.csv("cities.csv", CITIES), expect=[{"sql": sql, "name": "x"}]))
    [result] = lake.load("a").tables
    assert result.code == "SPEC_INVALID"
    assert said in result.message
