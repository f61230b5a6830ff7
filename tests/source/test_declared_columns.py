"""Batches with the types that a table declares: planned by names, cast, and misfits marked or raised."""

import json
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.source.bad_rows import BAD, BAD_FIELD
from lakewriter.source.declared_columns import cast_batches, declare_schema, plan_casts
from tests.source.tables import table

INT, TEXT = pa.int32(), pa.string()


def plan(names: list[str], kinds: list[pa.DataType | None], **columns: Any) -> Any:
    return plan_casts(names, kinds, table(format="csv", columns=columns))


def test_columns_are_found_by_exact_name_and_else_in_any_case() -> None:
    casts = plan(["id", "ID", "Name", "id"], [TEXT] * 4, ID="int", NAME="date", id="bigint")
    assert [(cast.index, cast.name, cast.type_name) for cast in casts] == [
        (1, "ID", "int"), (2, "Name", "date"), (0, "id", "bigint"), (3, "id", "bigint")
    ]  # fmt: skip
    schema = declare_schema(pa.schema([(name, TEXT) for name in ("id", "ID", "Name", "id")]), casts)
    assert schema.types == [pa.int64(), INT, pa.date32(), pa.int64()]


def test_columns_that_have_their_type_are_left() -> None:
    assert plan(["a", "b"], [INT, pa.timestamp("us", "UTC")], a="int", b="timestamp") == ()
    assert [cast.is_exact for cast in plan(["a", "b", "c"], [INT, None, TEXT], a="bigint", b="string", c="int")] == [
        True, True, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "declared", "said"),
    [
        (pa.int64(), "timestamp", "the source has bigint, which does not convert to it. Convert it in an sql: read, or "
         "declare another type; or name the unit: columns: {x: {type: timestamp, from: epoch_ms}}."),
        (pa.timestamp("us"), "int", "the source has timestamp_ntz, which does not convert to it. Convert it in an sql: "
         "read, or declare another type."),
        (None, "int", "the source has a type that Arrow has not, which does not convert to it."),
    ],
)  # fmt: skip
def test_types_that_do_not_convert_are_refused_before_a_row_is_read(
    kind: pa.DataType | None, declared: str, said: str
) -> None:
    with pytest.raises(SpecInvalidError) as error:
        plan(["x"], [kind], x=declared)
    assert f"tables.s.t.columns declares 'x' as {declared}, and {said}" in str(error.value)


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(SpecInvalidError, match=r"tables.s.t.columns names 'amout', .* The nearest is 'amount'."):
        plan(["id", "amount"], [TEXT, TEXT], amout="int")


COLUMNS = {"a": ["1", "2", "x", None], "b": ["2024-01-05", "5.1.2024", "6.1.2024", "2024-01-06"]}
MARKS = [
    {"file": "f", "offset": 0},
    {"file": "f", "offset": 9},
    {"file": "f", "offset": 18},
    {"file": "g", "offset": 0},
]


def test_a_misfit_marks_its_row_and_keeps_the_texts_of_all() -> None:
    marked = pa.record_batch({**COLUMNS, BAD: pa.array(MARKS, BAD_FIELD.type)})
    [cast] = cast_batches([marked], plan(["a", "b"], [TEXT, TEXT], a="int", b="date"), "s.t", "partition 0")
    cast.validate(full=True)
    assert cast.column("a").to_pylist() == [1, 2, None, None]
    marks = cast.column(BAD).to_pylist()
    date = "it does not convert to date: it is not a date as YYYY-MM-DD; another spelling can be named by format:"
    nothing = dict.fromkeys(["column", "value", "reason", "row"])
    assert marks == [
        {"file": "f", "offset": 0, **nothing},
        {"file": "f", "offset": 9, "column": "b", "value": "5.1.2024", "reason": date, "row": None},
        {"file": "f", "offset": 18, "column": "a", "value": "x", "reason": "it does not convert to int: it is not a "
         "whole number of digits 0 to 9", "row": '{"a":"x","b":"6.1.2024"}'},
        {"file": "g", "offset": 0, **nothing},
    ]  # fmt: skip
    assert json.loads(marks[2]["row"]) == {"a": "x", "b": "6.1.2024"}


def test_a_row_that_is_bad_already_keeps_its_reason() -> None:
    bad = {"file": "f", "offset": 0, "value": "the line", "reason": "too few fields"}
    batch = pa.record_batch({"a": ["x"], BAD: pa.array([bad], BAD_FIELD.type)})
    [cast] = cast_batches([batch], plan(["a"], [TEXT], a="int"), "s.t", "partition 0")
    assert cast.column(BAD)[0].as_py() == {**bad, "column": None, "row": None}


def test_the_first_misfit_is_raised_where_rows_have_no_marks() -> None:
    good, bad = pa.record_batch({"a": ["1", "2"]}), pa.record_batch({"a": ["3", "x" * 300]})
    batches = cast_batches([good, bad], plan(["a"], [TEXT], a="int"), "s.t", "partition 7")
    assert next(batches).column("a").to_pylist() == [1, 2]
    with pytest.raises(ValueUnrepresentableError) as error:
        next(batches)
    assert error.value.column == "a"
    assert str(error.value) == (
        f"VALUE_UNREPRESENTABLE: table 's.t', partition 7, row 3: '{'x' * 200}...' in column 'a' does not convert to "
        "int: it is not a whole number of digits 0 to 9. Correct the value; or declare another type or spelling under "
        "columns:; or keep such rows apart, up to a share of all: on_bad_row: {action: quarantine, at_most: 0.01}."
    )


@pytest.mark.parametrize(
    ("values", "declared", "shown"),
    [
        (pa.array([300]), "tinyint", "'300' in column 'a' does not convert to tinyint: it is outside the range of "),
        (
            pa.array([2**53 + 1]),
            "double",
            "'9007199254740993' in column 'a' does not convert to double: a part of the value",
        ),
        (
            pa.array([b"\xff"]),
            "string",
            "'ff' in column 'a' does not convert to string: a part of the value would be lost",
        ),
        (
            pa.array([[1.5]]),
            "array<int>",
            "'[1.5]' in column 'a' does not convert to array<int>: a part of the value",
        ),
    ],
)
def test_misfits_of_typed_values_are_shown(values: pa.Array, declared: str, shown: str) -> None:
    casts = plan(["a"], [values.type], a=declared)
    with pytest.raises(ValueUnrepresentableError) as error:
        list(cast_batches([pa.record_batch({"a": values})], casts, "s.t", "partition 0"))
    assert shown in str(error.value)


@pytest.mark.parametrize(
    ("kind", "declared", "key", "is_refused"),
    [
        (pa.int64(), "string", "cursor", True),
        (pa.decimal128(9, 2), "string", "order_by", True),
        (pa.float64(), "string", "cursor", True),
        (pa.int64(), "decimal(20,0)", "cursor", False),
        (pa.date32(), "string", "cursor", False),
        (TEXT, "string", "cursor", False),
        (pa.int64(), "string", "primary_key", False),
    ],
)
def test_numbers_that_are_compared_are_not_declared_as_text(
    kind: pa.DataType, declared: str, key: str, is_refused: bool
) -> None:
    compared: dict[str, Any] = {key: "V" if key == "cursor" else ("V",)}
    found = table(format="parquet", columns={"v": declared}, **compared)
    if not is_refused:
        plan_casts(["v"], [kind], found)
        return
    with pytest.raises(SpecInvalidError, match=f"tables.s.t.{key} names 'v', which has numbers"):
        plan_casts(["v"], [kind], found)
