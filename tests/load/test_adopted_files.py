"""Buckets as vendors' connectors leave them: what is there is said, and loads go on behind it.

Keys are those of the vendors' documents: Estuary's ``v{backfill}/{counter}.parquet``, whose numbers have ten and twenty
digits; Supaflow's ``{schema}/{table}/`` with partitions of the load's time.
"""

import io
import json
import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.resets import begin_backfill
from tests.iceberg.tables import ICEBERG
from tests.load.lakes import BUCKET, Lake, table
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, status, stream
from tests.support.narrow import need

pytestmark = pytest.mark.spark

SCHEMA = {"key": ["/id"], "schema": {"properties": {"id": {"type": "integer"}}, "required": ["id"]}}
LEFT = {
    "orders/v0000000000/00000000000000000000.parquet": [1],
    "orders/v0000000000/00000000000000000007.parquet": [2],
    "orders/v0000000002/00000000000000000000.parquet": [1],
    "orders/v0000000002/00000000000000000003.parquet": [2],
    # Of a binding inside.
    "orders/old/v0000000009/00000000000000000009.parquet": [9],
}


def put(lake: Lake, files: dict[str, list[int]]) -> None:
    for key, ids in files.items():
        body = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), body)
        lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body.getvalue())


def run(lake: Lake | SyncLake, *options: str) -> Any:
    answer = CliRunner().invoke(main, ["adopt", str(lake.file), *options])
    assert answer.exit_code in (0, 2), answer.output
    return answer


@pytest.fixture
def shop(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("orders.jsonl", [{"id": number} for number in (1, 2, 3)])
    lake.write(binding("orders", "orders.jsonl", collection=SCHEMA))
    put(lake, LEFT)
    return lake


def test_without_it_the_numbers_are_taken_and_check_plan_and_the_error_name_it(shop):
    put(shop, {"orders/v0000000000/00000000000000000000.parquet": [1]})
    [result] = shop.load("a").tables
    assert result.code == "KEY_EXISTS"
    said = (
        "table orders was never loaded, and 4 files of another writer lie under orders/, the last one number 3 of "
        "backfill 2: readers of the newest backfill would not see this load's files, or a later file's name would be "
        "taken."
    )
    remedy = "lakewriter adopt LAKE says what another writer has left there, and goes on from it."
    assert result.message == f"{said} {remedy}"
    [planned] = shop.planned()
    failure = need(planned.failure)
    assert (failure.code, failure.message, failure.remedy) == (result.code, said, remedy)
    answer = CliRunner().invoke(main, ["check", str(shop.file), "--json"])
    [finding] = [each for each in json.loads(answer.stdout)["findings"] if each["probe"] == "place of orders"]
    assert (finding["status"], finding["message"], finding["remedy"]) == ("failed", said, remedy)


NEXT = "v0000000000/00000000000000000000.parquet"
HIGHER = {
    # another writer's files under orders/, which numbers of the first load they are above
    "a backfill": ["v0000000002/00000000000000000003.parquet"],
    "a backfill, begun only": ["v0000000001/00000000000000000000.parquet"],
    "a counter": ["v0000000000/00000000000000000005.parquet"],
    "the same": [NEXT],
}
STRANGERS = [
    "v1/00000000000000000077.parquet",
    "v00000000002/00000000000000000077.parquet",
    "v0000000002/77.parquet",
    "v0000000002/00000000000000000077.json",
    "v0000000002/old/00000000000000000077.parquet",
    "old/v0000000002/00000000000000000077.parquet",
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keys", HIGHER.values(), ids=HIGHER)
def test_a_first_load_is_refused_behind_higher_numbers(tmp_path, aws, bucket, spark, keys):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("orders.jsonl", [{"id": 1}])
    lake.write(binding("orders", "orders.jsonl", collection=SCHEMA))
    put(lake, {f"orders/{key}": [9] for key in keys})
    before = lake.data()
    for job in "abcdef":
        [result] = lake.load(job).tables
        assert (result.code, lake.data() == before) == ("KEY_EXISTS", True)
        assert "1 file of another writer lies under orders/, the last one number " in need(result.message)
        assert "lakewriter adopt LAKE" in need(result.message)
    assert lake.control("orders").state.read().counter == 0
    assert run(lake, "--write", "--stopped", "--from-start").exit_code == 0
    for job in "gh":
        [result] = lake.load(job).tables
        assert result.status == "done", result.message
    assert min(set(lake.data()) - set(before)) > max(before), "behind the last one"


def test_only_names_of_ten_and_twenty_digits_are_numbers(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("orders.jsonl", [{"id": 1}])
    lake.write(binding("orders", "orders.jsonl", collection=SCHEMA))
    put(lake, {f"orders/{key}": [9] for key in STRANGERS})
    assert "orders: nothing to go on from" in run(lake).stdout
    [result] = lake.load("a").tables
    assert (result.status, result.keys) == ("done", (f"orders/{NEXT}",))


def test_the_highest_number_may_be_older_than_many_files(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.write(binding("orders", "orders.jsonl", collection=SCHEMA))
    put(lake, {"orders/v0000000003/00000000000000000004.parquet": [9]})
    put(lake, {f"orders/v0000000000/{number:020}.parquet": [9] for number in range(70)})
    said = run(lake).stdout
    assert "71 files of another writer" in said
    assert "the next file is number 5 of backfill 3" in said


def verify_all_loads(lake: Lake | SyncLake) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["verify", str(lake.file), "--all", "--json"])
    return answer.exit_code, answer.stdout


def test_adopted_files_are_no_difference(shop):
    assert run(shop, "--write", "--stopped", "--from-start").exit_code == 0
    for job in "ab":
        assert shop.load(job).status == "done"
    code, said = verify_all_loads(shop)
    assert (code, "5 files of another writer under the path of orders, which were adopted" in said) == (0, True)
    for job in "ab":
        assert CliRunner().invoke(main, ["verify", str(shop.file), job]).exit_code == 0
    # One that comes later is.
    time.sleep(1.1)
    put(shop, {"orders/v0000000002/00000000000000000099.parquet": [9]})
    said = run(shop).stdout
    assert "orders: 5 files of another writer, 2 files of its own loads, the newest orders/v0000000002/" in said
    assert ", the next file is number 100 of backfill 2" in said
    code, said = verify_all_loads(shop)
    assert (code, "orders/v0000000002/00000000000000000099.parquet" in said) == (1, True)


def test_estuary_goes_on_behind_the_last_number_of_the_last_backfill(shop):
    before = shop.data()
    said = run(shop).stdout
    assert "orders: 4 files of another writer, the newest " in said
    assert ", the next file is number 4 of backfill 2" in said
    assert "The last files may be uncommitted: the connector overwrites them if it starts again." in said
    assert "Nothing is written" in said
    # What the bucket does not tell is not guessed.
    assert "expected" not in run(shop, "--write").stdout
    assert "--write needs --stopped" in run(shop, "--write").stderr
    asked = run(shop, "--write", "--stopped")
    assert (asked.exit_code, "nothing says how far orders was read" in asked.stderr) == (2, True)
    assert shop.data() == before
    assert run(shop, "--write", "--stopped", "--from-start").exit_code == 0
    assert shop.load("a").status == "done"
    new = set(shop.data()) - set(before)
    assert new == {"orders/v0000000002/00000000000000000004.parquet"}
    assert {key: body for key, body in shop.data().items() if key in before} == before
    assert shop.load("b").status == "done"
    assert set(shop.data()) - set(before) - new == {"orders/v0000000002/00000000000000000005.parquet"}
    assert "orders: nothing to go on from" in run(shop).stdout


def test_backfill_is_above_what_another_writer_has(shop):
    assert (
        begin_backfill(Pipeline.open(shop.spec, Clients(shop.spec.access)).controls["orders"], "a test").backfill == 3
    )
    before = set(shop.data())
    assert shop.load("a").status == "done"
    assert set(shop.data()) - before == {"orders/v0000000003/00000000000000000000.parquet"}


def test_cursor_says_how_far_estuarys_task_has_read(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), tmp_path / "in.parquet")
    read = {"format": "parquet", "path": "in.parquet"}
    entry = binding("orders", "", collection={"key": ["/id"]}, cursor="id") | {"read": read}
    entry.pop("documents")
    lake.write(entry)
    put(lake, {"orders/v0000000002/00000000000000000003.parquet": [1, 2]})
    assert run(lake, "--write", "--stopped", "--cursor", "2", "--type", "int64").exit_code == 0
    assert lake.load("a").status == "done"
    assert lake.rows("SELECT id FROM t ORDER BY 1", "orders") == [(1,), (2,), (3,)]
    assert "orders/v0000000002/00000000000000000004.parquet" in lake.data()


def test_supaflow_goes_on_beside_its_files(lake):
    """Its keys have the job's id: none is taken, and the cursor alone is missing."""
    source = lake.csv("cities.csv", "id,name\n1,Ann\n2,Bob\n3,Cid\n")
    entry = table("cities", source, cursor="id", columns={"id": "int"})
    lake.write(entry, update_aws_glue_catalog=False)
    left = "data/production/nyc_public/cities/j0/part-j0-00000.gzip.parquet"
    put(lake, {left: [1, 2]})
    said = run(lake).stdout
    assert f"nyc_public.cities: 1 file of another writer, the newest {left}" in said
    assert run(lake, "--write", "--stopped", "--cursor", "2", "--type", "int32").exit_code == 0
    for job in ("a", "b"):
        [result] = lake.load(job).tables
        assert result.status == "done", result.message
    assert lake.rows("SELECT id FROM t ORDER BY 1", "nyc_public/cities") == [(1,), (2,), (3,)]
    assert verify_all_loads(lake)[0] == 0
    assert left.removeprefix("data/production/") in lake.data()


def test_supaflows_table_in_glue_goes_on(lake):
    """The connector leaves files, and the table with its partitions."""
    source = lake.csv("cities.csv", "id,name\n1,Ann\n2,Bob\n")
    lake.write(table("cities", source, cursor="id", columns={"id": "int"}))
    lake.load("j0")
    for key, body in lake.aws.objects(BUCKET).items():
        lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
        if "/_lakewriter/" not in key:
            # Without the metadata that tells ours.
            lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    lake.csv("cities.csv", "id,name\n1,Ann\n2,Bob\n3,Cid\n")
    assert "1 file of another writer" in run(lake).stdout
    assert run(lake, "--write", "--stopped", "--cursor", "2", "--type", "int32").exit_code == 0
    for job in ("a", "b"):
        [result] = lake.load(job).tables
        assert result.status == "done", result.message
    assert lake.rows("SELECT id FROM t ORDER BY 1", "supaflow_nyc_public/cities") == [(1,), (2,), (3,)]
    assert verify_all_loads(lake)[0] == 0


def test_supaflows_iceberg_table_goes_on(lake):
    """The connector leaves a table with its tracking columns; its snapshot stays, and loads append to it."""
    source = lake.csv("cities.csv", "id,name\n1,Ann\n2,Bob\n3,Cid\n")
    lake.write(table("cities", source, cursor="id", columns={"id": "int"}), **ICEBERG)
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "name": ["Ann", "Bob"],
            "_supa_synced": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
            "_supa_deleted": [False, False],
            "_supa_index": pa.array([1, 2], pa.int64()),
            "_supa_id": ["x", "y"],
            "_supa_job_id": ["j0", "j0"],
        }
    )
    lake.aws.hide_missing = False
    service = {"s3.endpoint": lake.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
    glue = load_catalog("own", type="glue", **service)
    glue.create_namespace("supaflow_nyc_public")
    name = ("supaflow_nyc_public", "cities")
    glue.create_table(name, rows.schema, f"s3://{BUCKET}/data/production/supaflow_nyc_public/cities").append(rows)
    assert "1 file of another writer" in run(lake).stdout
    assert run(lake, "--write", "--stopped", "--cursor", "2", "--type", "int32").exit_code == 0
    for job in ("a", "b"):
        [result] = lake.load(job).tables
        assert result.status == "done", result.message
    left = glue.load_table(name)
    seen = sorted((row["id"], row["name"], row["_supa_job_id"]) for row in left.scan().to_arrow().to_pylist())
    assert seen == [(1, "Ann", "j0"), (2, "Bob", "j0"), (3, "Cid", "a")]
    assert len(left.snapshots()) == 2
    assert verify_all_loads(lake)[0] == 0


KINDS = [
    ("airbyte-s3", {"format": {"format_type": "JSONL", "flattening": "Root level flattening"}}, "jsonl"),
    ("heropixel-s3", {"format": {"format_type": "JSONL", "flattening": "Root level flattening"}}, "jsonl.gz"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("kind", "form", "extension"), KINDS)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_streams_go_on_behind_the_vendors_objects(tmp_path, aws, bucket, spark, kind, form, extension, mode):
    """A refresh replaces what the connector wrote, an append leaves it; objects of no stream stay."""
    lake = SyncLake(tmp_path, aws, spark)
    streams = catalog(stream("users", destination_sync_mode=mode, sync_mode="full_refresh"))
    lake.messages(record("users", {"user_id": 3}), status("users", "COMPLETE"))
    lake.write(form, kind=kind, source={"messages": "m.jsonl", "catalog": streams})
    left = f"data/public/users/2021_01_01_1609459200000_0.{extension}"
    generation = {"ab-generation-id": "4"} if kind == "airbyte-s3" else {}
    aws.client("s3").put_object(Bucket=BUCKET, Key=left, Body=b"{}\n", Metadata=generation)
    aws.client("s3").put_object(Bucket=BUCKET, Key="data/notes.txt", Body=b"stays")
    said = run(lake).stdout
    assert f"users: 1 file of another writer, the newest {left}" in said
    assert run(lake, "--write", "--stopped").exit_code == 0
    assert run(lake, "--write", "--stopped").exit_code == 0
    for number, job in enumerate(("a", "b"), 1):
        lake.messages(record("users", {"user_id": number}), status("users", "COMPLETE"))
        assert lake.load(job).status == "done"
        keys = [key for key in aws.objects(BUCKET) if "/_lakewriter/" not in key]
        assert ("data/notes.txt" in keys, left in keys) == (True, mode == "append")
        assert len(keys) == (2 + number if mode == "append" else 2)
    writers = {
        "append": "1 file of another writer, 2 files of its own loads, the newest ",
        "overwrite": "nothing to go on from (1 file of its own loads)",
    }
    assert f"users: {writers[mode]}" in run(lake).stdout
    assert verify_all_loads(lake)[0] == 0
