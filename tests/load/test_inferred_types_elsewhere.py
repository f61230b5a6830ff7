"""Types that values have given columns: in continuous batches, merged rows, a backfill, beside adopted files."""

import io
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from lakewriter.commit.resets import begin_backfill
from tests.load.lakes import BUCKET, Lake
from tests.load.materializations import Materialization, UnderPrefix, binding
from tests.load.refreshed import Refreshed
from tests.load.test_adopted_files import run
from tests.load.test_inferred_types import PLACES, Values, doc
from tests.support.local_tasks import local_session
from tests.support.sample import in_turn


@pytest.mark.spark
@pytest.mark.parametrize("place", in_turn(*PLACES))
def test_batches_keep_the_types_of_batches_before(tmp_path, aws, bucket, spark, place):
    """Also of the run before, and as a single load does."""
    lake = UnderPrefix(tmp_path, aws, spark)
    own = Values(lake, place)
    read = {"format": "json", "path": "in", "options": {"maxFilesPerTrigger": "1"}}
    Lake.write(lake, {"table": "values", "schema": "public", "read": read}, **PLACES[place])
    top = {"checkpoint": "checkpoint", "interval_seconds": 1}
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(top), "utf-8")
    (table,) = lake.spec.tables

    def arrive(number: int, value: str) -> None:
        lake.documents(f"in/{number}.jsonl", [json.loads(doc(value))])

    arrive(0, "1.5")
    with lake.running() as first:
        lake.until(0, table.id, 60)
        arrive(1, "2")
        lake.until(1, table.id, 60)
    assert first.ended[1] is None
    with lake.running() as second:
        arrive(2, "3")
        lake.until(2, table.id, 60)
        arrive(3, '"a"')
        end = time.monotonic() + 60
        while not any(step.startswith("failed") for step in second.steps):
            assert time.monotonic() < end
            time.sleep(0.1)
    assert getattr(second.ended[1], "code", None) == "SCHEMA_INCOMPATIBLE"
    assert own.list_kinds() == ["double"] * 3


def test_merged_rows_keep_the_types_of_loads_before(tmp_path, aws, bucket):
    """Also once another engine has deleted the rows that gave them."""
    rule = {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}
    users = Refreshed(tmp_path, aws, "iceberg", read={"format": "json", "path": "users"}, **rule)
    (tmp_path / "users").mkdir()

    def load(job, *lines):
        (tmp_path / "users" / "0.json").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        (result,) = users.run(job).tables
        return result

    assert load("a", '{"id":1,"at":1,"v":1.5}', '{"id":2,"at":1,"v":2.5}').status == "done"
    aws.hide_missing = False
    users.iceberg().delete("id = 2")
    aws.hide_missing = True
    assert load("b", '{"id":1,"at":2,"v":2}', '{"id":3,"at":2,"v":7}').status == "done"
    result = load("c", '{"id":3,"at":3,"v":"a"}')
    assert result.code == "SCHEMA_INCOMPATIBLE"
    assert "column 'v' is double in the table's files" in result.message
    rows = sorted((row["id"], row["v"]) for row in users.iceberg().scan().to_arrow().to_pylist())
    assert rows == [(1, 2.0), (3, 7.0)]
    # A key is compared in its type: 1 is the row that is there.
    assert load("d", '{"id":1.5,"at":3,"v":2}').code == "SCHEMA_INCOMPATIBLE"


BINDING = {"read": {"format": "json", "path": "v.json"}}


def test_a_backfill_begins_anew(tmp_path, aws, bucket):
    """Its files lie in a folder of their own, and readers take those of the highest number alone."""
    lake = Materialization(tmp_path, aws, local_session(2))
    entry = binding("values", "", collection={"key": ["/id"]}) | BINDING
    entry.pop("documents")
    lake.write(entry)

    def load(job, value):
        (tmp_path / "v.json").write_text(doc(value), "utf-8")
        (result,) = lake.load(job).tables
        return result

    assert load("a", "1").status == "done"
    assert load("b", "1.5").code == "SCHEMA_INCOMPATIBLE"
    begin_backfill(lake.control("values"), "the source has changed")
    assert load("c", "1.5").status == "done"
    assert load("d", "2").status == "done"
    kinds = [pq.read_schema(io.BytesIO(body)).field("v").type for _, body in sorted(lake.data().items())]
    assert kinds == [pa.int64(), pa.float64(), pa.float64()]


@pytest.mark.parametrize("place", in_turn("files", "glue"))
def test_values_fit_the_types_of_adopted_files(tmp_path, aws, bucket, place):
    lake = Lake(tmp_path, aws, local_session(2))
    own = Values(lake, place)
    assert own.load("a", "json", doc("1.5")).status == "done"
    for key, body in aws.objects(BUCKET).items():
        aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
        if "/_lakewriter/" not in key:
            # Without the metadata that tells ours, and without a state.
            aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    assert run(lake, "--write", "--stopped", "--from-start").exit_code == 0
    assert own.load("b", "json", doc("2")).status == "done"
    assert own.list_kinds() == ["double", "double"]
    assert own.load("c", "json", doc('"a"')).code == "SCHEMA_INCOMPATIBLE"
