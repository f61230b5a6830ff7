"""Loads into paths with date patterns: the counter goes on from day to day, and everything finds the files again."""

from datetime import UTC, datetime

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.commit.resets import begin_backfill
from lakewriter.operate.verification import verify
from tests.load.lakes import completes
from tests.load.materializations import Materialization

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    entry = {"source": "acmeCo/orders", "resource": {"path": "orders"}, "read": {"format": "json", "path": "in.json"}}
    destination = {
        "type": "estuary-s3-parquet",
        "bucket": "acme-lake",
        "region": "us-east-1",
        "prefix": "lake/%Y/%m/%d",
    }
    destination["prefix"] = "lake/%Y/%m/%d"
    table = entry | {"primary_key": ["id"], "collection": {"schema": {"properties": {"id": {"type": "integer"}}}}}
    lake.file.write_text(yaml.safe_dump({"pipeline": "wiki", "destination": destination, "tables": [table]}), "utf-8")
    lake.documents("in.json", [{"id": 1}, {"id": 2}])
    return lake


def test_the_counter_goes_on_from_day_to_day(lake):
    table = lake.spec.tables[0].id
    day = f"{datetime.now(UTC):%Y/%m/%d}"
    assert lake.load("a").status == lake.load("b").status == "done"
    begin_backfill(lake.control(table), reason="a test")
    assert lake.load("c").status == "done"
    assert sorted(lake.data()) == [
        f"lake/{day}/orders/v0000000000/00000000000000000000.parquet",
        f"lake/{day}/orders/v0000000000/00000000000000000001.parquet",
        f"lake/{day}/orders/v0000000001/00000000000000000002.parquet",
    ]
    for job_id in ("a", "b", "c"):
        found = verify({table: lake.control(table)}, job_id, Clients(lake.spec.access))
        assert not found.differences


def test_a_load_that_died_is_finished(lake):
    lake.cut_off("a", completes)
    assert lake.load("a").status == "done"
    (key,) = lake.data()
    assert key.endswith("/orders/v0000000000/00000000000000000000.parquet")
    assert not lake.aws.uploads("acme-lake")
