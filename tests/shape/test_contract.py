"""Sources that grow beside a table whose contract allows it, forbids it, or leaves out what is new."""

import datetime as dt

import pyarrow as pa
import pytest

from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError
from lakewriter.shape.contract import find_columns_to_discard, require_types
from lakewriter.shape.table import Shaper
from lakewriter.spec.row_rules import Contract
from tests.shape.test_plan import plan, table_of

SOURCE = pa.schema([("id", pa.int64()), ("Name", pa.string()), ("note", pa.string()), ("näme", pa.int32())])
KNOWN = {"id": pa.int64(), "name": pa.string()}


def test_columns_of_the_table_are_all_that_is_written():
    table = table_of(contract=Contract(columns="discard"))
    discard = find_columns_to_discard(table, plan(SOURCE), KNOWN)
    assert discard == {"note", "name_1"}
    found = plan(SOURCE, discard=discard)
    assert [column.name for column in found.columns] == ["id", "Name"]
    assert found.notes == (
        "column 'note' is not in the table: left out and counted",
        "column 'näme' is not in the table: left out and counted",
    )
    shaper = Shaper(found, job_id="j", start=dt.datetime.now(dt.UTC), first_index=1)
    rows = pa.RecordBatch.from_pydict(
        {"id": [1, 2], "Name": ["a", "b"], "note": ["x", None], "näme": pa.array([None, None], pa.int32())}
    )
    assert shaper.shape(rows).rows.schema.names[:2] == ["id", "Name"]
    shaper.shape(rows)
    assert shaper.take_findings().undeclared == {"note": 2, "näme": 0}
    assert not shaper.take_findings().undeclared


def test_frozen_columns_name_what_is_new():
    table = table_of(contract=Contract(columns="freeze"))
    with pytest.raises(SchemaIncompatibleError, match=r"contract\.columns is 'freeze': 'note', 'näme'\."):
        find_columns_to_discard(table, plan(SOURCE), KNOWN)
    assert find_columns_to_discard(table, plan(SOURCE), None) == frozenset()
    # What the table has besides may stay away.
    assert find_columns_to_discard(table, plan(pa.schema([("id", pa.int64())])), KNOWN) == frozenset()


@pytest.mark.parametrize("contract", [None, Contract()])
def test_columns_are_added_unless_the_contract_says_otherwise(contract):
    assert find_columns_to_discard(table_of(contract=contract), plan(SOURCE), KNOWN) == frozenset()


def test_key_that_is_left_out():
    with pytest.raises(SpecInvalidError, match="the source has no column 'note'"):
        plan(SOURCE, discard={"note"}, primary_key=("note",))


TYPES = [
    # type in the source, in the table, whether frozen types allow it
    (pa.int64(), pa.int64(), True),
    (pa.int32(), pa.int64(), True),
    (pa.int64(), pa.int32(), False),
    (pa.float64(), pa.float32(), False),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), True),
    (pa.struct([("a", pa.int32()), ("b", pa.int32())]), pa.struct([("a", pa.int32())]), False),
]


@pytest.mark.parametrize(("source", "there", "allowed"), TYPES)
def test_frozen_types(source, there, allowed):
    grown = plan(pa.schema([("c", source)]), {"c": there})
    require_types(table_of(contract=Contract(types="evolve")), grown, {"c": there})
    if allowed:
        require_types(table_of(contract=Contract(types="freeze")), grown, {"c": there})
    else:
        with pytest.raises(SchemaIncompatibleError, match=r"in the table, and contract\.types is 'freeze'"):
            require_types(table_of(contract=Contract(types="freeze")), grown, {"c": there})
