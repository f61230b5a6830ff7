"""The first-run check beside another first load of the same pipeline."""

import random
from datetime import UTC, datetime

import pytest

from lakewriter.commit.catalog import NoTable
from lakewriter.errors import TableNotEmptyError
from lakewriter.records.state import Pending, TableState
from lakewriter.run.checks import check_empty, check_unwritten
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.table_spec import Read, TableSpec
from tests.commit.memory import Memory, World

TABLE = TableSpec(
    source_table="t",
    schema_name="s",
    name="t",
    read=Read(format="csv", path="t.csv"),
    layout=Layout("data", Template.parse("part-{uuid}.parquet")),
    path="data/s/t",
    must_be_empty=True,
)
PENDING = Pending(job_id="b", attempt="b1", phase="intended", since=datetime(2024, 1, 15, tzinfo=UTC))
STATES = [
    # the state that the load registered with, the state now, whether what lies there may be the pipeline's own
    (TableState(), TableState(), False),
    (TableState(), TableState(committed=1), True),
    (TableState(), TableState(pending=PENDING), True),
    (TableState(committed=1), TableState(committed=1), True),
]


class Occupied(NoTable):
    """A table of the catalog with a snapshot."""

    def explain_occupied(self):
        return "Iceberg table s.t has 1 snapshots in the catalog"


@pytest.mark.parametrize(("began", "now", "own"), STATES)
def test_first_load_beside_another(began, now, own):
    store = Memory(World(), lambda: None, random.Random(0), 0)
    store.create("data/s/t/part-b", b"x")
    calls = [
        lambda: check_empty(store, TABLE, began, lambda: now),
        lambda: check_unwritten(Occupied(), TABLE, began, lambda: now),
    ]
    for call in calls:
        if own:
            call()
        else:
            with pytest.raises(TableNotEmptyError):
                call()
