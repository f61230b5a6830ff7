"""Plans: names, types and their order; the tracking columns are the vendor's documented five."""

import pickle
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.column_types import UTC_MICROS
from lakewriter.errors import SchemaIncompatibleError, SourceFailedError, SpecInvalidError
from lakewriter.naming import DELETED
from lakewriter.shape.table import ShapePlan, plan_shape
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import GlueCatalog
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec, Tracking, TrackingColumn
from lakewriter.spec.table_spec import Read, TableSpec

TRACKING = (
    TrackingColumn(name="_supa_synced", holds=Tracking.SYNCED),
    TrackingColumn(name="_supa_deleted", holds=Tracking.DELETED),
    TrackingColumn(name="_supa_index", holds=Tracking.INDEX),
    TrackingColumn(name="_supa_id", holds=Tracking.ID),
    TrackingColumn(name="_supa_job_id", holds=Tracking.JOB_ID),
)
TRACKED = [
    pa.field("_supa_synced", UTC_MICROS, nullable=False),
    pa.field("_supa_deleted", pa.bool_(), nullable=False),
    pa.field("_supa_index", pa.int64(), nullable=False),
    pa.field("_supa_id", pa.string(), nullable=False),
    pa.field("_supa_job_id", pa.string(), nullable=False),
]


def table_of(**fields: Any) -> TableSpec:
    layout = Layout("data/t", Template.parse("{uuid}.gzip.parquet"))
    values = {"source_table": "t", "schema_name": "s", "name": "t", "read": Read(), "layout": layout, "path": "data/t"}
    return TableSpec.model_validate(values | fields)


def plan(
    source: pa.Schema,
    existing: Mapping[str, pa.DataType] | None = None,
    discard: Collection[str] = (),
    **table: Any,
) -> ShapePlan:
    spec = Spec(
        pipeline="p",
        dialect="d",
        access=Access(bucket="b", region="us-east-1"),
        catalog=GlueCatalog(partition_key="_supa_partition"),
        tracking=TRACKING,
        tables=(),
    )
    return plan_shape(source, spec, table_of(**table), existing, discard=discard)


ID_NAME = pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_plan_shape_tracking_columns_follow_the_data() -> None:
    source = pa.schema([pa.field("first name", pa.large_string(), nullable=False), ("at", pa.timestamp("ns", "CET"))])
    expected = pa.schema([("first_name", pa.string()), ("at", UTC_MICROS), *TRACKED])
    assert plan(source).schema.equals(expected, check_metadata=True)


def test_plan_shape_metadata_of_the_source_is_left_behind() -> None:
    field = pa.field("a", pa.int8(), metadata={"PARQUET:field_id": "1"})
    nested = pa.field("s", pa.struct([field]), metadata={"PARQUET:field_id": "2"})
    expected = pa.schema([("a", pa.int8()), ("s", pa.struct([("a", pa.int8())])), *TRACKED])
    assert plan(pa.schema([field, nested], metadata={"k": "v"})).schema.equals(expected, check_metadata=True)


def test_plan_shape_reserved_names_take_a_suffix() -> None:
    source = pa.schema([("_supa_id", pa.int8()), ("_SUPA_PARTITION", pa.int8()), ("a", pa.int8()), ("A", pa.int8())])
    assert plan(source).schema.names[:4] == ["_supa_id_1", "_SUPA_PARTITION_1", "a", "A_1"]


def test_plan_shape_void_columns_are_left_out_and_keep_their_names_taken() -> None:
    source = pa.schema([("a b", pa.null()), ("a_b", pa.int8()), ("s", pa.struct([("v", pa.null())]))])
    made = plan(source)
    assert (made.left_out, made.schema.names[:-5], made.keys) == (("a b", "s"), ["a_b_1"], ("a_b_1",))


def test_plan_shape_only_void_columns_is_an_error() -> None:
    with pytest.raises(SchemaIncompatibleError, match=r"'s\.t' has no column with a type"):
        plan(pa.schema([("a", pa.null())]))


def test_plan_shape_unstorable_column_is_named() -> None:
    with pytest.raises(SchemaIncompatibleError, match=r"column 'took' .* columns: \{took: string\}"):
        plan(pa.schema([("took", pa.duration("us"))]))


# existing type of id, written type, whether values are cast
EXISTING = [
    (None, pa.int32(), False),
    (pa.int32(), pa.int32(), False),
    (pa.int64(), pa.int64(), True),
    (pa.int16(), pa.int32(), False),
    (pa.decimal128(12, 2), pa.decimal128(12, 2), True),
]


@pytest.mark.parametrize(("existing", "expected", "casts"), EXISTING)
def test_plan_shape_existing_types_win(existing: pa.DataType | None, expected: pa.DataType, casts: bool) -> None:
    made = plan(pa.schema([("ID", pa.int32())]), {"id": existing} if existing else None)
    (column,) = made.columns
    assert (column.name, column.type, column.casts) == ("ID", expected, casts)


def test_plan_shape_existing_type_that_does_not_fit_names_both() -> None:
    with pytest.raises(SchemaIncompatibleError, match=r"'name' is 'string' in the source and 'int64' in the table"):
        plan(ID_NAME, {"name": pa.int64()})


def test_plan_shape_tracking_column_of_another_type_is_an_error() -> None:
    with pytest.raises(SchemaIncompatibleError, match="tracking column '_supa_index' is 'string'"):
        plan(ID_NAME, {"_supa_index": pa.string()})


# primary key, unique key, columns of the id
KEYS = [
    (("id",), ("name",), ("id",)),
    ((), ("name", "id"), ("name", "id")),
    ((), (), ("id", "name")),
    (("ID",), (), ("id",)),
]


@pytest.mark.parametrize(("primary", "unique", "expected"), KEYS)
def test_plan_shape_keys_in_order_of_preference(
    primary: tuple[str, ...], unique: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert plan(ID_NAME, primary_key=primary, unique_key=unique).keys == expected


def test_plan_shape_keys_and_cursor_are_source_names() -> None:
    made = plan(pa.schema([("a b", pa.int8()), ("a_b", pa.int8())]), primary_key=("a_b",), cursor="a b")
    assert (made.keys, made.cursor) == (("a_b_1",), "a_b")


TWICE = pa.schema([("id", pa.int64()), ("total", pa.int64()), ("id", pa.int64())])


def test_plan_shape_columns_of_one_name_are_all_in_the_key() -> None:
    # "unique/all fields if no PK", and the vendor's collision rule names the second one id_1
    assert plan(TWICE).keys == ("id", "total", "id_1")


# the table's settings, what the message begins with
REPEATED = [
    ({"primary_key": ("id",)}, "primary_key of 's.t': the source has 2 columns 'id', expected one. Give each"),
    ({"unique_key": ("total", "ID")}, "unique_key of 's.t': the source has 2 columns 'id'"),
    ({"cursor": "id"}, "cursor of 's.t': the source has 2 columns 'id'"),
    ({"partition_by": ({"column": "id"},)}, "partition_by of 's.t': the source has 2 columns 'id'"),
    ({"cursor": "void"}, "cursor of 's.t': the source has 2 columns 'void'"),
    (
        {"primary_key": ("total", "TOTAL")},
        "primary_key of 's.t': 'total' and 'TOTAL' are one column of the source. Name",
    ),
]


@pytest.mark.parametrize(("settings", "message"), REPEATED)
def test_plan_shape_column_that_is_there_twice_is_not_chosen(settings: dict[str, Any], message: str) -> None:
    source = pa.schema([*TWICE, ("void", pa.null()), ("void", pa.int64())])
    with pytest.raises(SpecInvalidError) as caught:
        plan(source, **settings)
    assert str(caught.value).startswith(f"SPEC_INVALID: {message}")


# the table's settings, what the message says
INVALID = [
    ({"primary_key": ("idd",)}, r"primary_key of 's\.t': the source has no column 'idd'. Did you mean 'id'\?"),
    ({"unique_key": ("nme",)}, r"unique_key of 's\.t': .* Did you mean 'name'\?"),
    ({"cursor": "updated"}, r"cursor of 's\.t': the source has no column 'updated'"),
    ({"cursor": "flag"}, r"cursor of 's\.t': column 'flag' has type 'bool'"),
    ({"sort_by": ("nme",)}, r"sort_by of 's\.t': the source has no column 'nme'. Did you mean 'name'\?"),
    ({"sort_by": ("id", "ID")}, r"sort_by of 's\.t': 'id' and 'ID' are one column of the source. Name it once\."),
    (
        {"sort_by": ("tags",)},
        r"sort_by of 's\.t': column 'tags' has type 'list<element: string>', by which no rows are",
    ),
    ({"primary_key": ("void",)}, r"column 'void' has no type.* columns: \{void: string\}"),
]


@pytest.mark.parametrize(("settings", "message"), INVALID)
def test_plan_shape_columns_that_are_not_there(settings: dict[str, Any], message: str) -> None:
    source = pa.schema([*ID_NAME, ("flag", pa.bool_()), ("void", pa.null()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(SpecInvalidError, match=message):
        plan(source, **settings)


def test_plan_shape_hidden_deleted_column_is_no_data() -> None:
    made = plan(ID_NAME.append(pa.field(DELETED, pa.bool_())), deleted="op = 'D'")
    assert (made.deleted, made.keys, made.schema.names[:3]) == (True, ("id", "name"), ["id", "name", "_supa_synced"])


def test_plan_shape_missing_hidden_column_is_an_error() -> None:
    with pytest.raises(SourceFailedError, match="__lakewriter_deleted"):
        plan(ID_NAME, deleted="op = 'D'")


def test_plan_shape_survives_pickling() -> None:
    made = plan(pa.schema([("s", pa.struct([("a b", pa.uint8())]))]), {"s": pa.struct([("a_b", pa.int64())])})
    assert pickle.loads(pickle.dumps(made)) == made
