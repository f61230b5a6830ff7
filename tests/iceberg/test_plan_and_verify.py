"""What plan says of a load to come, and verify of one that was."""

import pytest

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from lakewriter.operate.verification import verify
from tests.iceberg.tables import SCHEMA
from tests.load.lakes import BUCKET, table

pytestmark = pytest.mark.spark

LOCATION = f"s3://{BUCKET}/data/production/{SCHEMA}/t"


def planned(lake, spark):
    spec = lake.spec
    controls = {f"{SCHEMA}.t": lake.control(f"{SCHEMA}.t")}
    (found,) = plan(spec, job_id="a", clients=Clients(spec.access), spark=lambda: spark, controls=controls)
    return found


def verified(lake, job):
    return verify({f"{SCHEMA}.t": lake.control(f"{SCHEMA}.t")}, job, Clients(lake.spec.access))


@pytest.mark.exhaustive
def test_a_load_that_was_rolled_back_is_not_done(lake):
    lake.write(table("t", lake.csv("t.csv", "id,name\n1,a\n")))
    for job in "ab":
        assert lake.load(job).status == "done"
    assert lake.load("b").tables[0].status == "already_done"
    lake.aws.hide_missing = False
    seen = lake.table("t")
    with seen.manage_snapshots() as change:
        change.set_current_snapshot(snapshot_id=seen.current_snapshot().parent_snapshot_id)
    (result,) = lake.load("b").tables
    assert (result.status, result.code) == ("failed", "LOAD_GONE")
    assert f"load 'b' of table {SCHEMA}.t was committed, and readers do not see it any more" in result.message
    assert "Load its rows again under a new job id" in result.message
    (difference,) = verified(lake, "b").differences
    assert difference.code == "LOAD_GONE"
    assert lake.load("a").tables[0].status == "already_done"
    assert verified(lake, "a").differences == ()
    assert lake.load("c").status == "done"
    assert lake.scan("t").num_rows == 2


def test_plan_then_verify(lake, spark):
    lake.write(table("t", lake.csv("t.csv", "id,name\n1,a\n")))
    found = planned(lake, spark)
    assert found.key == f"{LOCATION}/data/part-a-00000.parquet"
    assert found.catalog == (f"create Iceberg table {SCHEMA}.t at {LOCATION} with 7 columns",)
    assert lake.aws.objects(BUCKET) == {}
    lake.load("a")
    lake.csv("t.csv", "id,name,more\n3000000000,a,1\n")
    assert planned(lake, spark).catalog == (
        f"widen column id of {SCHEMA}.t from int to long",
        f"add column more int to {SCHEMA}.t",
    )
    assert verified(lake, "a").differences == ()
    lake.aws.hide_missing = False
    with lake.table("t").transaction() as transaction:
        transaction.remove_properties("lakewriter.flights")
    (difference,) = verified(lake, "a").differences
    assert "lakewriter.flights" in difference.message
    lake.aws.client("glue").delete_table(DatabaseName=SCHEMA, Name="t")
    (difference,) = verified(lake, "a").differences
    assert "is gone" in difference.message
