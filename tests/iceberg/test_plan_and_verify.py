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
