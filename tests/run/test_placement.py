"""Where an Iceberg table's files go: where its catalog keeps it, as far as that is a folder of its own."""

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.state import TableState
from lakewriter.run.placement import make_ready
from lakewriter.run.prepare import Prepared
from lakewriter.shape.table import plan_shape
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import GlueService
from tests.staging.plans import SPEC, START, TABLE

SOURCE = pa.schema([("id", pa.int64())])
PLAIN = TABLE.model_copy(update={"cursor": None, "deleted": None, "primary_key": ("id",), "columns": {}})


def place(location: str) -> str:
    """The folder of the files of a table that is in the catalog at ``location``."""
    action = IcebergAction(service=GlueService(), namespace="s", table="t", location=location)
    table = SimpleNamespace(prepare=lambda schema, *_: (action, schema))
    prepared = cast(Prepared, SimpleNamespace(table=table, shape=plan_shape(SOURCE, SPEC, PLAIN)))
    names = TABLE.layout.bind(job_id="j", attempt="a", start=START)
    state: Any = TableState()
    return make_ready(prepared, Access(bucket="lake", region="us-east-1"), names, state, lambda: state)[2].directory


def test_location_of_the_catalog():
    assert place("s3://lake/elsewhere/t") == "elsewhere/t/data"


LOCATIONS = [
    ("s3://lake/x/../t", "has the segment '..'"),
    ("s3://lake/x/_lakewriter/p/t", "has the segment '_lakewriter'"),
    ("s3://lake/x/a\x07b", "has the control character U.0007"),
    ("s3://other/t", "is not in bucket 'lake'"),
]


@pytest.mark.parametrize(("location", "said"), LOCATIONS)
def test_location_that_is_no_folder_of_its_own(location, said):
    with pytest.raises(SpecInvalidError, match=f"the catalog keeps the table at .*{said}"):
        place(location)
