"""Types; expectations are the type table of the documentation (Spark, Parquet, Glue) and Hive's type syntax."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.column_types import (
    UTC_MICROS,
    is_void,
    make_list,
    reconcile,
    to_arrow_type,
    to_glue_type,
    to_stored_type,
)
from lakewriter.errors import SchemaIncompatibleError

LOCAL = pa.timestamp("us")

# (file type, Glue text), readable both ways
GLUE = [
    (pa.bool_(), "boolean"),
    (pa.int8(), "tinyint"),
    (pa.int16(), "smallint"),
    (pa.int32(), "int"),
    (pa.int64(), "bigint"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.decimal128(10, 2), "decimal(10,2)"),
    (pa.string(), "string"),
    (pa.binary(), "binary"),
    (pa.date32(), "date"),
    (UTC_MICROS, "timestamp"),
    (make_list(pa.int32()), "array<int>"),
    (pa.map_(pa.string(), pa.decimal128(5, 1)), "map<string,decimal(5,1)>"),
    (
        pa.struct([("a", pa.int32()), ("b", make_list(pa.struct([("c", pa.string())])))]),
        "struct<a:int,b:array<struct<c:string>>>",
    ),
]


@pytest.mark.parametrize(("t", "text"), GLUE)
def test_glue_type_and_arrow_type_are_inverse(t: pa.DataType, text: str) -> None:
    assert to_glue_type(t) == text
    assert to_arrow_type(text).equals(t, check_metadata=True)


# (Glue text as others write it, file type)
FOREIGN = [
    ("INTEGER", pa.int32()),
    ("decimal", pa.decimal128(10, 0)),
    ("Decimal( 12 )", pa.decimal128(12, 0)),
    ("varchar(20)", pa.string()),
    ("char(3)", pa.string()),
    ("struct< first-name : string , n : map< string , int > >", None),
]


@pytest.mark.parametrize(("text", "t"), FOREIGN)
def test_arrow_type_takes_foreign_spellings(text: str, t: pa.DataType | None) -> None:
    nested = pa.struct([("first-name", pa.string()), ("n", pa.map_(pa.string(), pa.int32()))])
    assert to_arrow_type(text) == (t or nested)


def test_arrow_type_timestamp_is_what_it_is_told() -> None:
    assert to_arrow_type("array<timestamp>", timestamp=LOCAL) == make_list(LOCAL)


@pytest.mark.parametrize(
    "text",
    ["", "uniontype<int>", "array<int", "array<int,int>", "map<int>", "int>", "struct<a>", "decimal(99,2)", "struct<>"],
)
def test_arrow_type_unreadable_text_is_named(text: str) -> None:
    with pytest.raises(SchemaIncompatibleError, match="Glue type"):
        to_arrow_type(text)


def test_glue_type_folds_names_and_ignores_the_zone() -> None:
    assert to_glue_type(pa.struct([("Ab", LOCAL)])) == "struct<ab:timestamp>"


def test_glue_type_unknown_type_is_named() -> None:
    with pytest.raises(SchemaIncompatibleError, match="uint8"):
        to_glue_type(pa.uint8())


_SCALARS = st.sampled_from([t for t, text in GLUE if "<" not in text])
_NAMES = st.lists(st.sampled_from(["a", "b", "c", "_d", "array"]), min_size=1, max_size=3, unique=True)
_TYPES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(make_list),
        st.builds(pa.map_, _SCALARS, inner),
        _NAMES.flatmap(
            lambda names: st.tuples(*[inner] * len(names)).map(lambda ts: pa.struct(zip(names, ts, strict=True)))
        ),
    ),
    max_leaves=6,
)


@given(_TYPES)
def test_arrow_type_reads_every_text_glue_type_writes(t: pa.DataType) -> None:
    assert to_arrow_type(to_glue_type(t)) == t


# (source type, file type)
STORABLE = [
    (pa.uint8(), pa.int16()),
    (pa.uint16(), pa.int32()),
    (pa.uint32(), pa.int64()),
    (pa.uint64(), pa.decimal128(20, 0)),
    (pa.float16(), pa.float32()),
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary_view(), pa.binary()),
    (pa.binary(16), pa.binary()),
    (pa.date64(), pa.date32()),
    (pa.timestamp("ns"), LOCAL),
    (pa.timestamp("s", "Europe/Paris"), UTC_MICROS),
    (pa.decimal32(5, 2), pa.decimal128(5, 2)),
    (pa.decimal256(38, 38), pa.decimal128(38, 38)),
    (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
    (pa.run_end_encoded(pa.int32(), pa.uint8()), pa.int16()),
    (pa.large_list(pa.uint8()), make_list(pa.int16())),
    (pa.list_(pa.int8(), 3), make_list(pa.int8())),
    (pa.list_view(pa.int8()), make_list(pa.int8())),
    (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
    (
        pa.struct([("v", pa.null()), ("a", pa.uint8()), ("s", pa.struct([("w", pa.null())]))]),
        pa.struct([("a", pa.int16())]),
    ),
    *((t, t) for t, _ in GLUE),
]


@pytest.mark.parametrize(("source", "expected"), STORABLE)
def test_storable_gives_the_files_type(source: pa.DataType, expected: pa.DataType) -> None:
    assert to_stored_type("c", source).equals(expected, check_metadata=True)


# (source type, the column as the message names it)
UNSTORABLE = [
    (pa.time64("us"), "c"),
    (pa.duration("us"), "c"),
    (pa.month_day_nano_interval(), "c"),
    (pa.dense_union([pa.field("a", pa.int8())]), "c"),
    (pa.decimal256(39, 0), "c"),
    (pa.decimal128(5, -2), "c"),
    (pa.null(), "c"),
    (pa.uuid(), "c"),
    (pa.list_(pa.struct([("t", pa.time32("s"))])), "c.element.t"),
    (pa.map_(pa.string(), pa.duration("s")), "c.value"),
]


@pytest.mark.parametrize(("source", "path"), UNSTORABLE)
def test_storable_refuses_and_names_the_column(source: pa.DataType, path: str) -> None:
    with pytest.raises(SchemaIncompatibleError) as caught:
        to_stored_type("c", source)
    assert f"column '{path}' has type" in caught.value.message
    assert "columns: {c: string}" in caught.value.remedy


VOID = [
    (pa.null(), True),
    (pa.list_(pa.null()), True),
    (pa.map_(pa.string(), pa.null()), True),
    (pa.struct([("a", pa.null())]), True),
    (pa.struct([]), True),
    (pa.struct([("a", pa.null()), ("b", pa.int8())]), False),
    (pa.int8(), False),
]


@pytest.mark.parametrize(("t", "expected"), VOID)
def test_is_void_types_without_values(t: pa.DataType, expected: bool) -> None:
    assert is_void(t) is expected


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


# (source, existing, type to write)
RECONCILED = [
    (pa.int32(), pa.int64(), pa.int64()),
    (pa.int8(), pa.int16(), pa.int16()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int32(), pa.float64(), pa.float64()),
    (pa.int32(), pa.decimal128(12, 2), pa.decimal128(12, 2)),
    (pa.int64(), pa.decimal128(19, 0), pa.decimal128(19, 0)),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
    # the table widens
    (pa.int64(), pa.int32(), pa.int64()),
    (pa.int16(), pa.int8(), pa.int16()),
    (pa.float64(), pa.float32(), pa.float64()),
    # Glue's timestamp has no zone
    (LOCAL, UTC_MICROS, LOCAL),
    (pa.timestamp("ns", "UTC"), UTC_MICROS, UTC_MICROS),
    (pa.large_string(), pa.string(), pa.string()),
    (make_list(pa.int32()), make_list(pa.int64()), make_list(pa.int64())),
    (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float64())),
    (
        struct(New=pa.int8(), B=pa.int32(), A=pa.int64()),
        struct(a=pa.int32(), b=pa.int64(), gone=pa.string()),
        struct(A=pa.int64(), B=pa.int64(), gone=pa.string(), New=pa.int8()),
    ),
]


@pytest.mark.parametrize(("source", "existing", "expected"), RECONCILED)
def test_reconcile_loses_nothing(source: pa.DataType, existing: pa.DataType, expected: pa.DataType) -> None:
    assert reconcile("c", source, existing) == expected


# (source, existing, columns: entry of the remedy)
IRRECONCILABLE = [
    (pa.string(), pa.int64(), "bigint"),
    (pa.int64(), pa.float64(), "double"),
    (pa.int32(), pa.float32(), "float"),
    (pa.float64(), pa.int32(), "int"),
    (pa.int64(), pa.decimal128(18, 0), "decimal(18,0)"),
    (pa.decimal128(12, 2), pa.decimal128(10, 2), "decimal(10,2)"),
    (pa.decimal128(10, 4), pa.decimal128(12, 2), "decimal(12,2)"),
    (pa.date32(), UTC_MICROS, "timestamp"),
    (make_list(pa.string()), pa.string(), "string"),
    (struct(a=pa.string()), struct(a=pa.int32()), "struct<a:int>"),
]


@pytest.mark.parametrize(("source", "existing", "entry"), IRRECONCILABLE)
def test_reconcile_refuses_loss_and_names_both(source: pa.DataType, existing: pa.DataType, entry: str) -> None:
    with pytest.raises(SchemaIncompatibleError) as caught:
        reconcile("c", source, existing)
    assert f'columns: {{c: "{entry}"}}' in caught.value.remedy
