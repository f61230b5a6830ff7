"""Types and columns as SQL spells them."""

import pyarrow as pa
import pytest

from lakewriter.cast.sql_types import TYPE_NAMES, parse_columns, parse_type
from lakewriter.column_types import UTC_MICROS, make_list

TYPES = [
    ("string", pa.string()), ("BIGINT", pa.int64()), ("long", pa.int64()), (" integer ", pa.int32()),
    ("short", pa.int16()), ("byte", pa.int8()), ("real", pa.float32()), ("boolean", pa.bool_()),
    ("decimal", pa.decimal128(10, 0)), ("numeric(12)", pa.decimal128(12, 0)), ("Dec(38, 38)", pa.decimal128(38, 38)),
    ("timestamp", UTC_MICROS), ("timestamp_ltz", UTC_MICROS), ("timestamp_ntz", pa.timestamp("us")),
    ("char(3)", pa.string()), ("varchar(10)", pa.string()), ("binary", pa.binary()), ("date", pa.date32()),
    ("array<array<int>>", make_list(make_list(pa.int32()))),
    ("map<string, decimal(3,1)>", pa.map_(pa.string(), pa.decimal128(3, 1))),
    ("struct<id: bigint, `a b`: string, Id int NOT NULL COMMENT 'it''s'>",
     pa.struct([("id", pa.int64()), ("a b", pa.string()), ("Id", pa.int32())])),
    ("struct<>", pa.struct([])),
]  # fmt: skip

REFUSED = [
    ("money", "there is no type 'money'"),
    ("timestmp", "there is no type 'timestmp'; did you mean 'timestamp'?"),
    ("", "expected a type, got the end"),
    ("int int", "unexpected 'int'"),
    ("decimal(39,1)", "expected decimal(p,s) with p from 1 to 38 and s from 0 to p"),
    ("decimal(2,3)", "expected decimal(p,s) with p from 1 to 38 and s from 0 to p"),
    ("decimal(2,", "expected a number, got the end"),
    (
        "decimal(50",
        "expected ')', got the end. Within {...} of YAML a type with a comma needs quotes: {amount: 'decimal(12,2)'}",
    ),
    ("decimal(a)", "expected a number, got 'a'"),
    ("varchar", "expected a length, as in varchar(10)"),
    ("array", "expected '<', got the end"),
    ("array<int", "expected '>', got the end"),
    ("map<int>", "expected ',', got '>'"),
    ("struct<1: int>x", "unexpected 'x'"),
    ("interval", "there is no type 'interval'"),
    ("variant", "there is no type 'variant'"),
]


@pytest.mark.parametrize(("text", "kind"), TYPES)
def test_types(text: str, kind: pa.DataType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused_types(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="Types: string, ") as error:
        parse_type(text)
    assert str(error.value) == f"{reason}{'' if reason[-1] == '?' else '.'} Types: {TYPE_NAMES}"


COLUMNS = [
    ("id BIGINT, name STRING", [("id", pa.int64()), ("name", pa.string())]),
    ("id: bigint", [("id", pa.int64())]),
    (
        "date date NOT NULL, `a``b` decimal(3,1) COMMENT 'one, two'",
        [("date", pa.date32()), ("a`b", pa.decimal128(3, 1))],
    ),
    ("Id int, id int", [("Id", pa.int32()), ("id", pa.int32())]),
    ("struct<a: int, b: string>", [("a", pa.int32()), ("b", pa.string())]),
    ("string", [("value", pa.string())]),
    ("größe int", [("größe", pa.int32())]),
]


@pytest.mark.parametrize(("text", "fields"), COLUMNS)
def test_columns(text: str, fields: list[tuple[str, pa.DataType]]) -> None:
    assert parse_columns(text) == pa.schema(fields)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id", "expected a type, got the end"),
        ("id, name", "there is no type ','"),
        ("id bigint name string", "unexpected 'name'"),
        ("a-b int", "there is no type '-'"),
        ("'a' int", "expected a name, got \"'a'\"; put other names in backquotes"),
        ("x money", "there is no type 'money'"),
    ],
)
def test_refused_columns(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="Types: ") as error:
        parse_columns(text)
    assert str(error.value) == f"{reason}{'' if reason[-1] == '?' else '.'} Types: {TYPE_NAMES}"
