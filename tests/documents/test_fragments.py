"""Typed columns as JSON text."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.documents.fragments import fragments, not_finite

NOW = dt.datetime(2024, 1, 15, 10, 30, tzinfo=dt.UTC)
CASES = [
    # type, value, its JSON text
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
    (pa.date32(), dt.date(2024, 1, 15), '"2024-01-15"'),
    (pa.timestamp("us", "UTC"), NOW, '"2024-01-15T10:30:00.000000Z"'),
    (pa.timestamp("us"), NOW.replace(tzinfo=None), '"2024-01-15T10:30:00.000000"'),
    (pa.list_(pa.int64()), [1, None], "[1,null]"),
    (pa.list_(pa.int64()), [], "[]"),
    (pa.list_(pa.list_(pa.string())), [["a"], None, []], '[["a"],null,[]]'),
    (pa.struct([("a b", pa.int64()), ("c", pa.string())]), {"a b": 1, "c": None}, '{"a b":1,"c":null}'),
    (pa.map_(pa.string(), pa.int64()), [('k"', 1), ("n", None)], '{"k\\"":1,"n":null}'),
    (pa.map_(pa.int64(), pa.string()), [(1, "x")], '{"1":"x"}'),
]


@pytest.mark.parametrize(("kind", "value", "expected"), CASES)
def test_fragment(kind, value, expected):
    array = pa.array([None, value, None, value], kind).slice(1)
    assert fragments(array).to_pylist() == [expected, None, expected]
    assert expected is None or json.loads(expected) is not None


def test_floats_without_json_are_found_at_every_depth():
    nan = float("nan")
    kind = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.map_(pa.string(), pa.float64()))])
    rows = [{"a": [1.0], "b": []}, {"a": [nan], "b": []}, None, {"a": [], "b": [("k", nan)]}]
    assert not_finite(pa.array(rows, kind)) == [1, 3]
