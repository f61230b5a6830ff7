"""Documents by Arrow's parser and level by level: both give the same columns, changes and counts.

Each value is in a batch of its own, so that nothing beside it makes the batch exact, and in one with others.
"""

import json
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewriter.documents import decoding
from lakewriter.documents.arrow_lines import Refusal, join_documents, parse_json, parse_ranges
from lakewriter.documents.decoding import Documents
from lakewriter.documents.fast_decoding import find_parsed_type, parse_plain
from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import Record, make_arrow_field
from lakewriter.naming import name_avro_fields
from tests.cast.numbers_by_length import list_numbers, write_text
from tests.documents.documents_strategies import SCHEMAS, conforming
from tests.support.sample import fifth_of, values_alone

Outcome = tuple[Any, ...]


def build(record: Record, texts: list[str], *, keeps_local: bool = True) -> Outcome:
    """The bits of the columns, and what is noted of rows and paths."""
    fields = [make_arrow_field(name, t, name_avro_fields, name) for name, t in record.fields]
    documents = Documents(pa.array(texts), keeps_local=keeps_local)
    columns = documents.build_columns(record, fields)
    for column, field in zip(columns, fields, strict=True):
        column.validate(full=True)
        assert column.type == field.type
    changes = {row: [(path, fault.change, fault.reason) for path, fault in entries]
               for row, entries in sorted(documents.changes.items())}  # fmt: skip
    values = [show(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column) for column in columns]
    return values, changes, sorted(documents.cuts), sorted(documents.undeclared.items()), sorted(documents.dropped)


def show(column: pa.Array) -> list[str]:
    """Values with the signs of zeros."""
    return [repr(value) for value in column.to_pylist()]


def build_both(record: Record, texts: list[str]) -> Outcome:
    """The outcome, once it is certain that both ways have the same."""
    fast = build(record, texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "find_parsed_type", lambda _: None)
        assert build(record, texts) == fast
    return fast


def find_fast(record: Record, texts: list[str]) -> list[int]:
    """The rows that Arrow has read."""
    parsed = find_parsed_type(record)
    assert parsed is not None
    parts = parse_plain(join_documents(pa.array(texts)), parsed)
    return sorted(row for part in parts for row in part.numbers.tolist())


LEAVES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"}, "integer": {"type": "integer"}, "number": {"type": "number"},
    "boolean": {"type": "boolean"}, "date": {"type": "string", "format": "date"},
    "moment": {"type": "string", "format": "date-time"}, "time": {"type": "string", "format": "time"},
    "local": {"type": "string", "format": "date-time", "airbyte_type": "timestamp_without_timezone"},
}  # fmt: skip
PLACES: dict[str, tuple[Any, str]] = {
    "top": (lambda leaf: leaf, "%s"),
    "array": (lambda leaf: {"type": "array", "items": leaf}, "[null,%s]"),
    "struct": (lambda leaf: {"type": "object", "properties": {"x": leaf}}, '{"x":%s}'),
    "structs": (lambda leaf: {"type": "array", "items": {"type": "object", "properties": {"x": leaf}}},
                '[{"x":null},{"x":%s}]'),
}  # fmt: skip
FITTING = {
    # leaf: texts that Arrow reads
    "string": ['""', '"a"', '"\\u00e9\\n\\"\\\\ \\/"', '"\\ud83d\\ude00"', '"\\u0000"', '"2021-01-01"', '"null"'],
    "integer": ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "-0"],
    "number": ["0", "1", "-1.5", "0.1", "1e5", "1E-5", "9007199254740993", "1" + "0" * 40, "4.9e-324", "0.0", "0e5",
               "1.7976931348623157e308", "12345678901234567.5"],
    "boolean": ["true", "false"],
    "date": ['"2021-01-02"', '"2021/1/2"', '"2021-01-02T03:04:05Z"', '"soon"', '""'],
    "moment": ['"2021-01-02T03:04:05Z"', '"2021-01-02 03:04:05.1234567+01:00"', '"2021-01-02"', '"x"'],
    "time": ['"03:04"', '"03:04:05.5+01"', '"25:00"'],
    "local": ['"2021-01-02T03:04:05+01:00"', '"2021-01-02T03:04:05 PST"', '"2021-01-02T03:04:05 Foo/Bar"'],
}  # fmt: skip
ODD = {
    "string": ["1", "true", "{}", "[]", '{"a":1,"a":2}', "1.50"],
    "integer": ["1.0", "1e3", "1.5", "9223372036854775808", "1" + "0" * 60, '"1"', "true", "[1]", '{"a":1}', "1e-3",
                "0.99999999999999999999", "9007199254740993.0", "-9223372036854775809"],
    "number": ["-0", "-0.0", "1e400", "-1e400", "1e-400", "2e-324", "1e-99999999999999999999",
               "12345678901234567890.5e300", '"1"', '"NaN"', "true",
               "0." + "0" * 330 + "1"],
    "boolean": ["0", '"true"', "{}"],
    "date": ["5", "{}"], "moment": ["1609545600", "[]"], "time": ["1"], "local": ["true"],
}  # fmt: skip


@pytest.mark.parametrize(("leaf", "place"), list(product(LEAVES, PLACES)))
def test_each_value_in_a_batch_of_its_own(leaf: str, place: str) -> None:
    nest, pattern = PLACES[place]
    record = make_record_type({"properties": {"p": nest(LEAVES[leaf]), "id": {"type": "integer"}}})
    for text in ["null", *FITTING[leaf]]:
        whole = '{"p":%s,"id":1}' % (pattern % text)
        build_both(record, [whole])
        if text != "-0":
            assert find_fast(record, [whole]) == [0], text
    for text in ODD[leaf]:
        whole = '{"p":%s,"id":1}' % (pattern % text)
        beside = '{"p":null,"id":2}'
        build_both(record, [whole])
        build_both(record, [beside, whole, beside])
        assert find_fast(record, [beside, whole, beside]) == [0, 2], text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("leaf", "digits", "scale"), [("integer", 18, 0), ("number", 17, 9)])
def test_random_numbers_each_in_a_batch_of_its_own(leaf: str, digits: int, scale: int, place: str) -> None:
    rng, (nest, pattern), fast, count = random.Random(f"{leaf} {place}"), PLACES[place], 0, values_alone() // 80
    record = make_record_type({"properties": {"p": nest(LEAVES[leaf]), "id": {"type": "integer"}}})
    for number in list_numbers(rng, digits, scale, count):
        text = f'"{write_text(rng, number)}"' if rng.random() < 0.2 else number
        whole = '{"p":%s,"id":1}' % (pattern % text)
        build_both(record, [whole])
        fast += len(find_fast(record, [whole]))
    assert fast >= count // 25


NESTED = {
    "properties": {
        "id": {"type": "integer"},
        "o": {"type": "object", "properties": {"x": {"type": "string"}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "integer"}}}},
    }
}
UNDECLARED = [
    # document, the undeclared properties that are counted, whether Arrow has read it
    ('{"id":1,"u":5}', {"u": 1}, True),
    ('{"id":1,"u":{"a":1,"b":[2]},"v":[{"c":1}]}', {"u": 1, "v": 1}, True),
    ('{"o":{"x":"a","z":1}}', {"o.z": 1}, True),
    ('{"l":[{"y":1,"z":1},{"z":"2"},{"y":3}]}', {"l[].z": 2}, False),
    ('{"l":[{"y":1,"z":1},{"z":2},{"y":3}]}', {"l[].z": 2}, True),
    ('{"id":1,"u":null}', {"u": 1}, False),
    ('{"id":1,"u" : null}', {"u": 1}, False),
    ('{"id":1,"\\u0075":null}', {"u": 1}, False),
    ('{"id":1,"a\\"b":null}', {'a"b': 1}, False),
    ('{"o":{"z":null}}', {"o.z": 1}, False),
    ('{"l":[{"z":null},{"z":1}]}', {"l[].z": 2}, False),
    ('{"id":1,"u":[],"w":{}}', {"u": 1, "w": 1}, True),
    ('{"id":1,"é/\\n":1}', {"é/\n": 1}, True),
    ('{"id":1,"":1}', {"": 1}, True),
    ('{"id":1,"ID":1}', {"ID": 1}, True),
    ('{"id":1,"u":"{\\"z\\":null}"}', {"u": 1}, True),
]


@pytest.mark.parametrize(("text", "counted", "is_fast"), UNDECLARED)
def test_undeclared_properties_are_counted(text: str, counted: dict[str, int], is_fast: bool) -> None:
    record = make_record_type(NESTED)
    _, changes, _, undeclared, dropped = build_both(record, [text])
    assert (dict(undeclared), changes, len(dropped)) == (counted, {}, sum(counted.values()))
    assert find_fast(record, [text]) == ([0] if is_fast else [])
    texts = ['{"id":0}', text, '{"id":2}'] * 3
    assert dict(build_both(record, texts)[3]) == {path: 3 * count for path, count in counted.items()}


TWICE = [
    # document, the paths of the values that are left out
    ('{"id":1,"id":2}', ["id"]), ('{"id":1,"u":1,"u":2}', ["u"]), ('{"id":1,"u":{"k":1,"k":2}}', []),
    ('{"o":{"x":"a","x":"b"}}', ["o.x"]), ('{"o":{"z":1,"z":2}}', ["o.z"]), ('{"id":1,"\\u0069d":2}', ["id"]),
    ('{"l":[{"y":1},{"y":1,"y":2}]}', ["l.[1].y"]), ('{"id":1,"id":1}', ["id"]), ('{"id":null,"id":2}', ["id"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "paths"), TWICE)
def test_keys_twice_are_noted(text: str, paths: list[str]) -> None:
    record = make_record_type(NESTED)
    changes = build_both(record, ['{"id":7}', text, '{"id":8}'])[1]
    entry = ("TRUNCATED", "SOURCE_SERIALIZATION_ERROR")
    assert changes == ({1: [(path, *entry) for path in paths]} if paths else {})
    assert find_fast(record, ['{"id":7}', text, '{"id":8}']) == [0, 2]


def test_one_refused_row_in_many_leaves_the_others_to_arrow() -> None:
    record = make_record_type(NESTED)
    texts = [json.dumps({"id": number, "o": {"x": "a"}, "l": [{"y": number}]}) for number in range(3000)]
    odd = {500: '{"id":"x"}', 501: '{"id":1.5}', 777: '{"id":1.0}', 1500: '{"id":1,"id":2}', 2999: '{"u":null}',
           2000: '{"o":{"x":1}}', 2001: '{"l":{}}', 2002: '{"id":99999999999999999999}'}  # fmt: skip
    for row, text in odd.items():
        texts[row] = text
    values, changes, *_ = build_both(record, texts)
    assert values[0][498:503] == ["498", "499", "None", "None", "502"]
    assert values[0][777] == "1"
    assert list(changes) == [500, 501, 1500, 2001, 2002]
    assert find_fast(record, texts) == [row for row in range(3000) if row not in odd]


def test_undeclared_properties_of_several_types() -> None:
    record = make_record_type(NESTED)
    values = ["1", '"a"', "1.5", "true", "[1]", "{}", '{"a":1}', '"2021-01-01"', "null"]
    texts = [f'{{"id":{number},"u":{values[number % len(values)]}}}' for number in range(90)]
    assert dict(build_both(record, texts)[3]) == {"u": 90}


def test_white_space_and_line_breaks_between_parts() -> None:
    record = make_record_type(NESTED)
    texts = ['{ "id" : 1 ,\n "o":{\r\n"x"\t: "a" } }', '{"id":2}', '\n{"id":3}\n']
    assert build_both(record, texts)[0][0] == ["1", "2", "3"]
    assert find_fast(record, texts[:2]) == [0, 1]


def test_depth_does_not_reach_arrow() -> None:
    record = make_record_type(NESTED)
    deep = '{"id":1,"u":' + "[" * 900 + "]" * 900 + "}"
    assert find_fast(record, [deep, '{"id":2}']) == [1]
    assert dict(build_both(record, [deep, '{"id":2}'])[3]) == {"u": 1}


SLOW = [
    {"properties": {"p": {"type": "object"}}}, {"properties": {"p": {}}}, {"properties": {}},
    {"properties": {"p": {"type": ["string", "integer"]}}}, {"properties": {"p": {"type": "array"}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SLOW)
def test_values_of_several_types_are_left_to_the_exact_decoder(schema: dict[str, Any]) -> None:
    assert find_parsed_type(make_record_type(schema)) is None


@settings(max_examples=fifth_of(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_records(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    records = [data.draw(conforming(schema)) for _ in range(data.draw(st.integers(1, 4)))]
    record = make_record_type(schema)
    build_both(record, [json.dumps(one if isinstance(one, dict) else {}) for one in records])


ALIKE: list[tuple[str, pa.DataType, Callable[[int], object], int]] = [
    # what is odd in one line of 500, the type, the value on an odd line, how often Arrow parses
    ("a text", pa.int64(), lambda row: f"x{row}", 2),
    ("a boolean", pa.int64(), lambda row: row % 2 == 0, 2),
    ("an object", pa.int64(), lambda row: {"a": row}, 2),
    ("an array", pa.int64(), lambda row: [row], 2),
    ("a number", pa.bool_(), lambda row: -row - 1, 2),
    ("another fraction each", pa.int64(), lambda row: row + 0.25, 2),
    ("another exponent each", pa.int64(), lambda row: float(f"{row + 1}e30"), 2),
    ("more than 64 bits", pa.int64(), lambda row: 2**70 + row, 2),
    ("too many places", pa.decimal256(10, 2), lambda row: row + 0.125, 2),
    ("a text and a fraction", pa.int64(), lambda row: row + 0.25 if row % 1000 else "x", 3),
]


@pytest.mark.parametrize(("odd", "kind", "make", "most"), ALIKE, ids=[odd for odd, *_ in ALIKE])
def test_what_is_refused_is_cut_out_with_its_like(odd, kind, make, most):
    """The member ``other`` has such values everywhere, one of them the same, and is not cut out for it."""
    plain = True if pa.types.is_boolean(kind) else 7
    values = [make(row) if row % 500 == 0 else plain for row in range(5000)]
    rows = [{"a": {"v": value}, "other": 500.25} for value in values]
    texts = [json.dumps(row) for row in rows]
    lines = join_documents(pa.array(texts))
    schema = pa.schema([("a", pa.struct([("v", kind)])), ("other", pa.float64())])
    calls, parsed = 0, list[int]()

    def parse(data: bytes, count: int) -> pa.Table | Refusal:
        nonlocal calls
        calls += 1
        return parse_json(data, count, schema)

    for numbers, _ in parse_ranges(lines, np.arange(len(texts)), parse):
        parsed += numbers.tolist()
    assert (calls, parsed) == (most, [row for row in range(5000) if row % 500])
