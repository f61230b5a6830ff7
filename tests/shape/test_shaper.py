"""Batches before and after shaping; digests are those of ``printf '%s' TEXT | sha256sum``."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakewriter.errors import SourceFailedError, ValueUnrepresentableError
from lakewriter.naming import DELETED
from lakewriter.receipt import Cursor
from lakewriter.shape.table import Shaper, plan_shape
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec, Tracking, TrackingColumn
from lakewriter.spec.table_spec import Read, TableSpec

START = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
TRACKING = tuple(TrackingColumn(name=f"_supa_{holds}", holds=holds) for holds in Tracking)
SHA_OF_1 = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
SHA_OF_2 = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35"
INT64 = pa.schema([("id", pa.int64())])
NANOS = pa.schema([("at", pa.timestamp("ns"))])


def shaper(
    source: pa.Schema,
    *,
    existing: dict[str, pa.DataType] | None = None,
    first_index: int = 1,
    tracking: Sequence[TrackingColumn] = TRACKING,
    **table: object,
) -> Shaper:
    layout = Layout("data/t", Template.parse("{uuid}.gzip.parquet"))
    values = {"source_table": "t", "schema_name": "s", "name": "t", "read": Read(), "layout": layout, "path": "data/t"}
    access = Access(bucket="b", region="us-east-1")
    spec = Spec(pipeline="p", dialect="d", access=access, catalog=NoCatalog(), tracking=tracking, tables=())
    plan = plan_shape(source, spec, TableSpec.model_validate(values | table), existing)
    return Shaper(plan, job_id="abc123", start=START, first_index=first_index)


def shaped(it: Shaper, batch: pa.RecordBatch) -> pa.RecordBatch:
    result = it.shape(batch).rows
    result.validate(full=True)
    assert result.schema.equals(it.plan.schema, check_metadata=True)
    for array, field in zip(result.columns, it.plan.schema, strict=True):
        assert array.type.equals(field.type, check_metadata=True)
        assert field.nullable or array.null_count == 0
    return result


def batch(schema: pa.Schema, *columns: Sequence[object]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(v, t) for v, t in zip(columns, schema.types, strict=True)], schema=schema)


def test_shape_whole_rows() -> None:
    source = pa.schema([("id", pa.int64()), ("a b", pa.large_string()), ("v", pa.null()), (DELETED, pa.bool_())])
    it = shaper(source, primary_key=("id",), deleted="op = 'D'", first_index=41)
    rows = shaped(it, batch(source, [1, 2], ["x", None], [None, None], [True, None])).to_pylist()
    constant = {"_supa_synced": START, "_supa_job_id": "abc123"}
    assert rows == [
        {"id": 1, "a_b": "x", "_supa_deleted": True, "_supa_index": 41, "_supa_id": SHA_OF_1, **constant},
        {"id": 2, "a_b": None, "_supa_deleted": False, "_supa_index": 42, "_supa_id": SHA_OF_2, **constant},
    ]


def test_shape_index_runs_on_over_batches_of_any_size() -> None:
    it = shaper(INT64, first_index=10)
    batches = [shaped(it, batch(INT64, list(range(rows)))) for rows in (2, 0, 3, 1)]
    assert [b.column("_supa_index").to_pylist() for b in batches] == [[10, 11], [], [12, 13, 14], [15]]
    assert [b.column("_supa_job_id").to_pylist() for b in batches] == [["abc123"] * rows for rows in (2, 0, 3, 1)]
    assert it.rows == 6


def test_shape_without_deleted_expression_is_false() -> None:
    assert shaped(shaper(INT64), batch(INT64, [1])).column("_supa_deleted").to_pylist() == [False]


def test_shape_tracking_columns_in_the_specified_order_only() -> None:
    chosen = (TrackingColumn(name="n", holds=Tracking.INDEX), TrackingColumn(name="j", holds=Tracking.JOB_ID))
    result = shaped(shaper(INT64, tracking=chosen), batch(INT64, [5]))
    assert result.to_pylist() == [{"id": 5, "n": 1, "j": "abc123"}]


def test_shape_id_uses_written_values_of_a_cast_key() -> None:
    it = shaper(pa.schema([("id", pa.int32())]), existing={"id": pa.float64()})
    # SHA-256 of "1.0".
    assert shaped(it, batch(pa.schema([("id", pa.int32())]), [1])).column("_supa_id").to_pylist() == [
        "d0ff5974b6aa52cf562bea5921840c032a860a91a3512f7fe8f768f6bbe005f6"
    ]


def test_shape_equal_columns_are_not_copied() -> None:
    rows = batch(INT64, [1, 2, 3])
    result = shaped(shaper(INT64), rows)
    assert result.column(0).buffers()[1].address == rows.column(0).buffers()[1].address


def test_shape_sliced_nested_batches() -> None:
    source = pa.schema([("s", pa.struct([("a b", pa.list_(pa.uint8()))]))])
    rows = batch(source, [{"a b": [1]}, None, {"a b": None}, {"a b": [2, 3]}])
    result = shaped(shaper(source), rows.slice(1, 3))
    assert result.column("s").to_pylist() == [None, {"a_b": None}, {"a_b": [2, 3]}]


def test_shape_two_source_columns_of_one_name() -> None:
    source = pa.schema([("a", pa.int8()), ("a", pa.string())])
    result = shaped(shaper(source, tracking=()), batch(source, [1], ["x"]))
    assert result.to_pylist() == [{"a": 1, "a_1": "x"}]


# schema of the batch, what the message says
FOREIGN = [
    (pa.schema([("ID", pa.int64())]), r"has the columns \['ID'\], expected \['id'\]"),
    (pa.schema([("id", pa.int64()), ("b", pa.int64())]), r"has the columns \['id', 'b'\]"),
    (pa.schema([("id", pa.int32())]), "column 'id' of a batch is 'int32', expected 'int64'"),
]


@pytest.mark.parametrize(("schema", "message"), FOREIGN)
def test_shape_batch_of_another_schema_is_refused(schema: pa.Schema, message: str) -> None:
    with pytest.raises(SourceFailedError, match=message):
        shaper(INT64).shape(batch(schema, *([1] for _ in schema)))


def test_shape_batches_may_differ_in_nullability_and_metadata() -> None:
    planned = pa.schema([("s", pa.struct([("a", pa.int8())]))], metadata={"k": "v"})
    strict = pa.schema([pa.field("s", pa.struct([pa.field("a", pa.int8(), nullable=False)]), metadata={"k": "v"})])
    assert shaped(shaper(planned), batch(strict, [{"a": 1}])).column("s").to_pylist() == [{"a": 1}]


# source type, values, tracking index of the bad row, its value as shown
LOST = [
    (pa.timestamp("ns"), [1000, None, 2000, 1001, 1002], 104, "1970-01-01 00:00:00.000001001"),
    (pa.timestamp("s", "UTC"), [0, 2**60], 102, "value out of range: 1152921504606846976"),
    (
        pa.list_(pa.timestamp("ns")),
        [[1000], [], [1000, 1001]],
        103,
        "[ 1970-01-01 00:00:00.000001000, 1970-01-01 00:00:00.000001001 ]",
    ),
]


@pytest.mark.parametrize(("t", "values", "row", "shown"), LOST)
def test_shape_value_that_would_change_is_named(t: pa.DataType, values: list[object], row: int, shown: str) -> None:
    source = pa.schema([("at", t)])
    with pytest.raises(ValueUnrepresentableError) as caught:
        shaper(source, first_index=101).shape(batch(source, values))
    assert f"column 'at', row {row}: value '" in caught.value.message
    assert shown in caught.value.message
    assert "columns: {at: string}" in caught.value.remedy


def test_shape_whole_microseconds_keep_their_value() -> None:
    result = shaped(shaper(NANOS), batch(NANOS, [1000, None]))
    assert result.column("at").to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1), None]


def test_cursor_is_the_maximum_so_far_and_is_taken_per_file() -> None:
    it = shaper(INT64, cursor="id")
    for values in ([5, None], [9, 7, None], [None]):
        it.shape(batch(INT64, values))
    assert (it.cursor, it.cursor_nulls) == (Cursor("int64", "9"), 3)
    assert it.take_cursor() == (Cursor("int64", "9"), 3)
    it.shape(batch(INT64, [2]))
    assert it.take_cursor() == (Cursor("int64", "2"), 0)


def test_cursor_nan_names_the_row() -> None:
    source = pa.schema([("x", pa.float64())])
    it = shaper(source, cursor="x", first_index=5)
    it.shape(batch(source, [1.0]))
    with pytest.raises(ValueUnrepresentableError, match="'x' is NaN in row 7"):
        it.shape(batch(source, [1.0, float("nan")]))
