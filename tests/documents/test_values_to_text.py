"""Texts of values; floats as Python's repr has them, decimals as Python's ``format(..., "f")``.

The first table is what row ids are digests of: a text that changes gives stored rows another id.
"""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.column_types import UTC_MICROS, make_list
from lakewriter.documents.values_to_text import (
    COMPACT,
    WHOLE,
    find_non_finite,
    render_json,
    render_members,
    render_text,
)

MOMENT = datetime(2024, 1, 15, 10, 30)
ZONED = MOMENT.replace(tzinfo=UTC)
NESTED = pa.struct(
    [("b", pa.string()), ("a", make_list(pa.float64())), ("d", pa.decimal128(20, 10)), ("t", UTC_MICROS)]
)

# Each: type, value, its text.
TEXTS = [
    (pa.int8(), -5, "-5"),
    (pa.int64(), 2**63 - 1, "9223372036854775807"),
    (pa.bool_(), True, "true"),
    (pa.bool_(), False, "false"),
    (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
    (pa.decimal128(20, 10), Decimal("1E-10"), "0.0000000001"),
    (pa.decimal128(20, 10), Decimal("-0.0000000150"), "-0.0000000150"),
    (pa.decimal128(20, 10), Decimal(0), "0.0000000000"),
    (pa.decimal128(38, 6), Decimal("0.000001"), "0.000001"),
    (pa.decimal128(38, 38), Decimal("1E-38"), "0." + "0" * 37 + "1"),
    (pa.float64(), 1.0, "1.0"),
    (pa.float64(), 0.1, "0.1"),
    (pa.float64(), 1e16, "1e+16"),
    (pa.float64(), 1e-5, "1e-05"),
    (pa.float64(), -0.0, "-0.0"),
    (pa.float64(), 5e-324, "5e-324"),
    (pa.float64(), float("nan"), "nan"),
    (pa.float64(), float("-inf"), "-inf"),
    (pa.float32(), 0.1, "0.1"),
    (pa.float32(), 16777216.0, "16777216.0"),
    (pa.float32(), 3.4028234663852886e38, "3.4028235e+38"),
    (pa.float32(), 1e-5, "1e-05"),
    (pa.string(), "as it | is \\ é", "as it | is \\ é"),
    (pa.date32(), date(2024, 1, 15), "2024-01-15"),
    (UTC_MICROS, ZONED, "2024-01-15T10:30:00.000000Z"),
    (UTC_MICROS, datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "0001-01-01T00:00:00.000001Z"),
    (pa.timestamp("us"), MOMENT, "2024-01-15T10:30:00.000000"),
    (pa.binary(), b"\x00\xfe", "00fe"),
    (make_list(pa.int64()), [1, None, 3], "[1,null,3]"),
    (make_list(pa.bool_()), [], "[]"),
    (make_list(pa.float32()), [0.1, float("nan"), float("inf")], '[0.1,"nan","inf"]'),
    (make_list(pa.string()), ['"\n', "é"], '["\\"\\n","é"]'),
    (make_list(pa.binary()), [b"\xff"], '["ff"]'),
    (make_list(pa.date32()), [date(2024, 1, 15)], '["2024-01-15"]'),
    (make_list(make_list(pa.int8())), [[1], None, []], "[[1],null,[]]"),
    (pa.struct([("b", pa.int8()), ("a", pa.int8())]), {"b": 1, "a": None}, '{"a":null,"b":1}'),
    (pa.map_(pa.string(), pa.string()), [("\n", "x"), ('"', "y"), ("!", None)], '{"\\n":"x","!":null,"\\"":"y"}'),
    (pa.map_(pa.float64(), pa.binary()), [(float("nan"), b"\xff"), (1.0, None)], '[[1.0,null],["nan","ff"]]'),
    (pa.map_(pa.string(), pa.int64()), [("b", 1), ("a", None)], '{"a":null,"b":1}'),
    (pa.map_(pa.int64(), pa.string()), [(10, "x"), (9, "y")], '[[10,"x"],[9,"y"]]'),
    (
        NESTED,
        {"b": None, "a": [1.0], "d": Decimal("1E-10"), "t": ZONED},
        '{"a":[1.0],"b":null,"d":"0.0000000001","t":"2024-01-15T10:30:00.000000Z"}',
    ),
]


@pytest.mark.parametrize(("t", "value", "expected"), TEXTS)
def test_texts_documented_forms(t: pa.DataType, value: object, expected: str) -> None:
    array = pa.array([None, value, None, value], t)
    assert render_text(array).to_pylist() == [None, expected, None, expected]
    assert render_text(array[1:3]).to_pylist() == [expected, None]


@pytest.mark.parametrize("t", [t for t, _, _ in TEXTS])
def test_texts_of_nothing(t: pa.DataType) -> None:
    assert render_text(pa.array([], t)).equals(pa.array([], pa.string()))


TIMES = [
    # microseconds since 1970, their text: ISO 8601 has a sign before other years than 0000 to 9999, Arrow where it must
    (-1, "1969-12-31T23:59:59.999999"),
    (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
    (253_402_300_800_000_000, "10000-01-01T00:00:00.000000"),
    (-62_167_219_200_000_000, "0000-01-01T00:00:00.000000"),
    (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999"),
    (None, None),
]


@pytest.mark.parametrize("times", [TIMES[:2], TIMES[2:4], TIMES[4:], TIMES, TIMES * 3], ids=str)
def test_texts_of_times_in_any_year(times: list[tuple[int | None, str | None]]) -> None:
    """Times that repeat are written once, and those in years of four digits by their places."""
    array = pa.array([value for value, _ in times], pa.timestamp("us"))
    assert render_text(array).to_pylist() == [text for _, text in times]
    zoned = [text if text is None else f"{text}Z" for _, text in times]
    assert render_text(array.cast(pa.timestamp("us", "Europe/Berlin"))).to_pylist() == zoned


def test_special_characters_are_found_in_every_part_of_an_array() -> None:
    array = pa.array(["a", 'b"', None, "c", "d\\", "\x1f", "é"])
    expected = ['"a"', '"b\\""', None, '"c"', '"d\\\\"', '"\\u001f"', '"é"']
    for start in range(len(array)):
        for end in range(start, len(array) + 1):
            assert render_json(array[start:end], COMPACT).to_pylist() == expected[start:end]


OBJECTS = [
    # the columns, each row as an object
    ({"a": [1, 2], "b": ["x", "y"]}, ['{"a":1,"b":"x"}', '{"a":2,"b":"y"}']),
    ({"b": ["x"], "a": [1]}, ['{"b":"x","a":1}']),
    ({"a": [None, 2], "b": [None, "y"]}, ["{}", '{"a":2,"b":"y"}']),
    ({"a": [None, 2], "b": ["x", "y"]}, ['{"b":"x"}', '{"b":"y","a":2}']),
    ({'a"': [None, "1"], "b": ['"', "y"], "c": ["", ""]}, ['{"b":"\\"","c":""}', '{"b":"y","c":"","a\\"":"1"}']),
    ({"a": [float("nan"), None]}, ['{"a":"NaN"}', "{}"]),
    ({"a": [[1], None], "b": [b"\xff", b""]}, ['{"b":"/w==","a":[1]}', '{"b":""}']),
]


@pytest.mark.parametrize(("columns", "expected"), OBJECTS)
def test_rows_as_objects(columns: dict[str, list[object]], expected: list[str]) -> None:
    arrays = [(name, pa.array(values)) for name, values in columns.items()]
    assert render_members(arrays, len(expected), WHOLE).to_pylist() == expected


@given(st.lists(st.floats() | st.none(), max_size=5))
def test_texts_floats_are_pythons_own(values: list[float | None]) -> None:
    assert render_text(pa.array(values, pa.float64())).to_pylist() == [None if v is None else repr(v) for v in values]


@given(st.lists(st.decimals(allow_nan=False, places=12, min_value=-(10**9), max_value=10**9), max_size=5))
def test_texts_decimals_are_plain(values: list[Decimal]) -> None:
    assert render_text(pa.array(values, pa.decimal128(38, 12))).to_pylist() == [
        format(value, "f").replace("-0.000000000000", "0.000000000000") for value in values
    ]


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3) | st.none(), max_size=3))
def test_texts_maps_are_what_json_writes(values: list[dict[str, str] | None]) -> None:
    array = pa.array([None if v is None else list(v.items()) for v in values], pa.map_(pa.string(), pa.string()))
    expected = [json.dumps(v, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for v in values]
    assert [text or "null" for text in render_text(array).to_pylist()] == expected


JSON_TEXTS = [
    # type, value, its JSON text in files
    (pa.bool_(), True, "true"),
    (pa.int8(), -5, "-5"),
    (pa.int64(), 2**63 - 1, "9223372036854775807"),
    (pa.float64(), 1.5, "1.5"),
    (pa.float64(), 1e300, "1e+300"),
    (pa.float32(), 0.1, "0.1"),
    (pa.float64(), float("nan"), None),
    (pa.decimal128(38, 10), Decimal("0.0000000001"), "0.0000000001"),
    (pa.string(), 'say "hi"\n\\ü🎉', '"say \\"hi\\"\\n\\\\ü🎉"'),
    (pa.string(), "", '""'),
    (pa.binary(), b"\x00\xff", '"AP8="'),
    (pa.date32(), date(2024, 1, 15), '"2024-01-15"'),
    (pa.timestamp("us", "UTC"), ZONED, '"2024-01-15T10:30:00.000000Z"'),
    (pa.timestamp("us"), MOMENT, '"2024-01-15T10:30:00.000000"'),
    (pa.list_(pa.int64()), [1, None], "[1,null]"),
    (pa.list_(pa.int64()), [], "[]"),
    (pa.list_(pa.list_(pa.string())), [["a"], None, []], '[["a"],null,[]]'),
    (pa.struct([("a b", pa.int64()), ("c", pa.string())]), {"a b": 1, "c": None}, '{"a b":1}'),
    (pa.struct([("a", pa.int64())]), {"a": None}, "{}"),
    (pa.struct([("a", pa.float32()), ("n", pa.null())]), {"a": 0.1}, '{"a":0.1}'),
    # It has a value, for which there is no JSON.
    (pa.struct([("a", pa.float64())]), {"a": float("inf")}, '{"a":null}'),
    (pa.list_(pa.decimal128(5, 2)), [Decimal("1.50")], "[1.50]"),
    (pa.time64("us"), time(10, 30), '"10:30:00.000000"'),
    (pa.time32("ms"), time(10, 30), '"10:30:00.000000"'),
    (pa.struct([]), {}, "{}"),
    (pa.map_(pa.string(), pa.int64()), [('k"', 1), ("n", None)], '{"k\\"":1,"n":null}'),
    (pa.map_(pa.int64(), pa.string()), [(1, "x")], '{"1":"x"}'),
    (pa.map_(pa.binary(), pa.binary()), [(b"\xff", b"\xff")], '{"/w==":"/w=="}'),
    (pa.dictionary(pa.int8(), pa.string()), "a", '"a"'),
    (pa.large_list(pa.large_string()), ["a"], '["a"]'),
    (pa.list_(pa.int8(), 2), [1, 2], "[1,2]"),
    (pa.binary(1), b"\xff", '"/w=="'),
    (pa.float16(), 0.5, "0.5"),
]


@pytest.mark.parametrize(("t", "value", "expected"), JSON_TEXTS)
def test_json_of_files(t: pa.DataType, value: object, expected: str | None) -> None:
    array = pa.array([None, value, None, value], t).slice(1)
    assert render_json(array, COMPACT).to_pylist() == [expected, None, expected]
    assert expected is None or json.loads(expected) is not None


def test_floats_without_json_are_found_at_every_depth() -> None:
    nan = float("nan")
    kind = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.map_(pa.string(), pa.float64()))])
    rows = [{"a": [1.0], "b": []}, {"a": [nan], "b": []}, None, {"a": [], "b": [("k", nan)]}]
    assert find_non_finite(pa.array(rows, kind)) == [1, 3]
