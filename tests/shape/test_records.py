"""Records of a stream as rows: the types of columns, the order in a database's log, and what deletes."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.documents.types import DOCUMENTS
from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.shape.records import RecordsPlan, plan_records
from lakewriter.shape.shapers import AnyShaper, make_shaper
from lakewriter.shape.table import plan_shape
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import LogProperties, Stream
from tests.shape.enveloped import START, TABLE

SPEC = Spec(
    pipeline="p",
    dialect="d",
    access=Access(bucket="b", region="us-east-1"),
    catalog=NoCatalog(),
    tracking=(),
    tables=(),
)
LOG = LogProperties(cursor="_ab_cdc_cursor", file="_ab_cdc_log_file", in_file="_ab_cdc_log_pos", lsn="_ab_cdc_lsn")
CHANGED = {"type": "object", "properties": {**{key: {} for key in (*LOG.numbers, "_ab_cdc_log_file")}, "gone": {}}}


def make(schema: dict[str, Any], **of_stream: Any) -> AnyShaper:
    stream = Stream(name="users", json_schema=schema, at_once=True, **of_stream)
    table = TABLE.model_copy(update={"stream": stream})
    records = plan_records(table)
    plan = RecordsPlan.of(plan_shape(records.schema, SPEC, table), records)
    return make_shaper(plan, job_id="j", start=START, first_index=0)


def shape(shaper: AnyShaper, *data: dict[str, Any]) -> list[dict[str, Any]]:
    texts = [json.dumps(one) for one in data]
    columns = [range(len(data)), texts, [0] * len(data), [None] * len(data)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
    rows: list[dict[str, Any]] = shaper.shape(pa.RecordBatch.from_arrays(arrays, schema=DOCUMENTS)).rows.to_pylist()
    return rows


CURSOR = 1 << 40
ORDERS: list[tuple[dict[str, Any], int | None, int | None]] = [
    # what a record says, log and position: the connector's cursor, else file and position, else an LSN
    ({"_ab_cdc_cursor": 7, "_ab_cdc_log_file": "bin.000003", "_ab_cdc_log_pos": 4, "_ab_cdc_lsn": 5}, CURSOR, 7),
    ({"_ab_cdc_log_file": "bin.000003", "_ab_cdc_log_pos": "4", "_ab_cdc_lsn": 5}, 3, 4),
    # its number is the file's order, not its text
    ({"_ab_cdc_log_file": "bin.1000000", "_ab_cdc_log_pos": 4}, 1000000, 4),
    ({"_ab_cdc_log_file": None, "_ab_cdc_log_pos": 4, "_ab_cdc_lsn": "0/5"}, 0, 5),
    ({"_ab_cdc_lsn": 9007199254740993}, 0, 9007199254740993),
    ({"_ab_cdc_lsn": None}, None, None),
    ({}, None, None),
]


@pytest.mark.parametrize("at_once", [True, False])
def test_the_order_in_a_log(at_once):
    """One by one, and in one batch, where a text is beside numbers."""
    shaper = make(CHANGED, log=LOG, deleted_at="gone")
    data = [one for one, _, _ in ORDERS]
    rows = shape(shaper, *data) if at_once else [row for one in data for row in shape(shaper, one)]
    found = [(row["_change_log"], row["_change_position"]) for row in rows]
    assert found == [(log, None if at is None else Decimal(at)) for _, log, at in ORDERS]
    assert rows[1]["_ab_cdc_log_pos"] == Decimal(4)
    assert shaper.take_findings().changes == 0


def test_a_place_that_is_none():
    with pytest.raises(ValueUnrepresentableError, match="column '_ab_cdc_lsn': 'soon' is no place in a database's log"):
        shape(make(CHANGED, log=LOG), {"_ab_cdc_lsn": 1}, {"_ab_cdc_lsn": "soon"})


TYPES = {
    # a stream's type, a value, and the column's type and value
    "a time of day": ({"type": "string", "format": "time"}, "10:30:00Z", pa.string(), "10:30:00Z"),
    "a local time": (
        {"type": "string", "format": "date-time", "airbyte_type": "timestamp_without_timezone"},
        "2026-01-05T10:30:00",
        pa.timestamp("us"),
        datetime(2026, 1, 5, 10, 30),
    ),
    "a moment": (
        {"type": "string", "format": "date-time"},
        "2026-01-05T10:30:00+01:00",
        pa.timestamp("us", "UTC"),
        datetime(2026, 1, 5, 9, 30, tzinfo=UTC),
    ),
    "a value that does not fit": ({"type": "integer"}, "x", pa.int64(), None),
}


@pytest.mark.parametrize("case", TYPES)
def test_types(case):
    """By themselves, in objects and in arrays."""
    kind, value, expected, read = TYPES[case]
    inside = {"at": {"type": "object", "properties": {"one": kind}}, "all": {"type": "array", "items": kind}}
    shaper = make({"type": "object", "properties": {"own": kind, **inside}}, paths=(("at", "one"),))
    (row,) = shape(shaper, {"own": value, "at": {"one": value}, "all": [value]})
    assert row == {"own": read, "at": {"one": read}, "all": [read], "at_one": read}
    types = shaper.plan.schema  # type: ignore[attr-defined]
    assert [types.field("own").type, types.field("at_one").type] == [expected, expected]
    assert shaper.take_findings().changes == (3 if read is None else 0)


def test_a_key_that_no_schema_has():
    schema = {"type": "object", "properties": {"at": {"type": "object"}}}
    with pytest.raises(SpecInvalidError, match=r"merged by 'at\.id', which its schema does not describe"):
        make(schema, paths=(("at", "id"),))


def test_what_deletes():
    """Any value, whatever its type."""
    shaper = make(CHANGED, deleted_at="gone", log=LOG)
    deletes = [row.pop("gone") for row in shape(shaper, {"gone": None}, {}, {"gone": "2026"}, {"gone": 5})]
    assert deletes == [None, None, "2026", "5"]
