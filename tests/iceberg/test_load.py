"""Whole Iceberg loads: one snapshot a load, read by others."""

import pytest

from tests.iceberg.tables import SCHEMA
from tests.load.lakes import BUCKET, table

pytestmark = pytest.mark.spark

CITIES = "id,Full Name,pop\n1,Ann,1.5\n2,Ben,\n"


def test_first_load(lake):
    lake.write(table("Cities", lake.csv("cities.csv", CITIES), primary_key=["id"]))
    (result,) = lake.load("abc").tables
    assert (result.code, result.message, result.rows) == (None, None, 2)
    key = f"data/production/{SCHEMA}/cities/data/part-abc-00000.parquet"
    assert result.keys == (key,)
    found = lake.table("cities")
    assert found.location() == f"s3://{BUCKET}/data/production/{SCHEMA}/cities"
    assert found.properties["lakewriter.flights"] == "1"
    assert lake.scan("cities").select(["id", "Full_Name", "pop", "_supa_index"]).to_pylist() == [
        {"id": 1, "Full_Name": "Ann", "pop": 1.5, "_supa_index": 1},
        {"id": 2, "Full_Name": "Ben", "pop": None, "_supa_index": 2},
    ]
