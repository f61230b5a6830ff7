"""JSON schemas as document types: the table of Airbyte's documents, unions, references, and what is refused."""

import pytest

from lakewriter.documents.schema import find_property_names, make_record_type
from lakewriter.documents.types import Items, Leaf, Record, Union
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.spec.collection import Kind


def leaf(kind: Kind) -> Leaf:
    return Leaf(kind)


STRING, INTEGER, NUMBER, BOOLEAN = (leaf(kind) for kind in (Kind.STRING, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN))
JSON, DATE, TIME, TIME_TZ = (leaf(kind) for kind in (Kind.JSON, Kind.DATE, Kind.LOCAL_TIME, Kind.TIME))
TIMESTAMP, TIMESTAMP_TZ = leaf(Kind.LOCAL_TIMESTAMP), leaf(Kind.TIMESTAMP)


def known(name: str) -> dict[str, str]:
    return {"$ref": f"WellKnownTypes.json#/definitions/{name}"}


def text(form: str, own: str | None = None) -> dict[str, str]:
    return {"type": "string", "format": form} | ({"airbyte_type": own} if own else {})


UNKNOWN = ("unknown", JSON)
A, B = {"a": {"type": "integer"}}, {"b": {"type": "string"}}
TYPES = [
    # a property's schema, its type
    ({"type": "string"}, STRING),
    ({"type": "boolean"}, BOOLEAN),
    ({"type": "integer"}, INTEGER),
    ({"type": "int"}, INTEGER),
    ({"type": "number", "airbyte_type": "integer"}, INTEGER),
    ({"type": "number"}, NUMBER),
    ({"type": ["null", "number"]}, NUMBER),
    (text("date"), DATE),
    (text("time"), TIME_TZ),
    (text("time", "time_with_timezone"), TIME_TZ),
    (text("time", "time_without_timezone"), TIME),
    (text("date-time"), TIMESTAMP_TZ),
    (text("date-time", "timestamp_with_timezone"), TIMESTAMP_TZ),
    (text("date-time", "timestamp_without_timezone"), TIMESTAMP),
    (text("email"), STRING),
    ({"type": "object", "properties": A}, Record((("a", INTEGER),))),
    ({"properties": A}, Record((("a", INTEGER),))),
    ({"type": "object"}, JSON),
    ({"type": "object", "properties": {}}, JSON),
    ({"type": "array", "items": {"type": "integer"}}, Items(INTEGER)),
    ({"type": "array"}, JSON),
    ({"type": "array", "items": {}}, JSON),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
     Items(Union((("integer", INTEGER), ("string", STRING))))),
    ({}, JSON),
    (True, JSON),
    ({"type": "null"}, JSON),
    ({"type": ["string", "integer"]}, Union((("string", STRING), ("integer", INTEGER)))),
    ({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, Union((("integer", INTEGER), ("boolean", BOOLEAN)))),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, INTEGER),
    ({"allOf": [{"properties": A}, {"properties": B}]}, Record((("a", INTEGER), ("b", STRING)))),
    # objects and arrays become one; those without a schema are text beside it
    ({"oneOf": [{"properties": A}, {"properties": B}, {"type": "object"}]},
     Union((("object", Record((("a", INTEGER), ("b", STRING)))), ("unknown", JSON)))),
    ({"oneOf": [{"type": "object"}, {"properties": A}]}, Union((("object", Record((("a", INTEGER),))), UNKNOWN))),
    ({"oneOf": [{"properties": {"x": {"properties": A}}}, {"properties": {"x": {"type": "object"}}}]},
     Record((("x", Union((("object", Record((("a", INTEGER),))), UNKNOWN))),))),
    ({"type": "array", "items": [{"properties": A}, {"type": "object"}]},
     Items(Union((("object", Record((("a", INTEGER),))), UNKNOWN)))),
    ({"allOf": [{"properties": A}, {"type": "object"}]}, Record((("a", INTEGER),))),
    ({"properties": A, "anyOf": [{"type": "object"}, {"properties": B}]}, Record((("a", INTEGER), ("b", STRING)))),
    ({"type": ["string", "integer", "object"]},
     Union((("string", STRING), ("integer", INTEGER), ("object", JSON)))),
    ({"oneOf": [{"type": "string"}, {"properties": A}, {"type": "object"}]},
     Union((("string", STRING), ("object", Record((("a", INTEGER),))), UNKNOWN))),
    ({"type": ["integer", "object", "array"]}, Union((("integer", INTEGER), UNKNOWN))),
    ({"oneOf": [{"properties": A}, {"properties": {"a": {"type": "boolean"}}}]},
     Record((("a", Union((("integer", INTEGER), ("boolean", BOOLEAN)))),))),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array"}]},
     Union((("array", Items(INTEGER)), UNKNOWN))),
    ({"type": ["object", "array"]}, JSON),
    ({"type": ["object", "string"]}, STRING),
    # a schema's own properties and items go with its options; what only constrains is no option
    ({"type": "object", "properties": A, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     Record((("a", INTEGER),))),
    ({"properties": A, "oneOf": [{"properties": B}, {"required": ["a"]}]}, Record((("a", INTEGER), ("b", STRING)))),
    ({"type": "array", "items": {"type": "integer"}, "anyOf": [{"minItems": 1}, {"maxItems": 0}]}, Items(INTEGER)),
    ({"type": ["object", "null"], "oneOf": [{"properties": A}, {"properties": B}]},
     Record((("a", INTEGER), ("b", STRING)))),
    ({"allOf": [{"properties": A}], "anyOf": [{"properties": B}, {"required": ["b"]}]},
     Record((("a", INTEGER), ("b", STRING)))),
    ({"type": "string", "allOf": [{"minLength": 1}]}, STRING),
    ({"type": "string", "anyOf": [{"maxLength": 3}, {"pattern": "x"}]}, STRING),
    ({"type": "integer", "allOf": [{"anyOf": [{"minimum": 1}, {"maximum": -1}]}]}, INTEGER),
    ({"properties": A, "anyOf": [{"$ref": "#/definitions/needs"}]}, Record((("a", INTEGER),))),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, INTEGER),
    # a bare type says less than options that all have one
    ({"type": "string", "oneOf": [text("date"), {"type": "null"}]}, DATE),
    ({"type": "number", "anyOf": [{"type": "integer"}]}, INTEGER),
    # where nothing else says a type, an option that says none takes anything
    ({"anyOf": [{"type": "integer"}, {"const": "none"}]}, Union((("integer", INTEGER), ("unknown", JSON)))),
    ({"anyOf": [{"const": 1}, {"const": 2}]}, JSON),
    # times beside what a file cannot tell them from are text
    ({"oneOf": [text("date"), {"type": "string"}]}, STRING),
    ({"oneOf": [text("time"), text("date-time")]}, STRING),
    ({"oneOf": [text("date-time"), {"type": "integer"}]}, Union((("integer", INTEGER), ("string", STRING)))),
    ({"oneOf": [text("date"), {"type": "integer"}]}, Union((("date", DATE), ("integer", INTEGER)))),
    # JsonSchemaToAirbyteType reads a composition that is no list as the one schema
    ({"oneOf": {"type": "integer"}}, INTEGER),
    ({"anyOf": {"type": ["null", "string"], "format": "date"}}, DATE),
    ({"allOf": {"properties": A}}, Record((("a", INTEGER),))),
    ({"oneOf": {"oneOf": {"anyOf": "boolean"}}}, BOOLEAN),
    ({"items": {"oneOf": {"$ref": "#/definitions/own"}}}, Items(Record((("x", INTEGER),)))),
    ({"oneOf": {}}, JSON),
    ({"oneOf": 5}, JSON),
    *((known(name), leaf(kind)) for name, kind in [
        ("String", Kind.STRING), ("BinaryData", Kind.STRING), ("Date", Kind.DATE), ("Number", Kind.NUMBER),
        ("TimestampWithTimezone", Kind.TIMESTAMP), ("TimestampWithoutTimezone", Kind.LOCAL_TIMESTAMP),
        ("TimeWithTimezone", Kind.TIME), ("TimeWithoutTimezone", Kind.LOCAL_TIME), ("Integer", Kind.INTEGER),
        ("Boolean", Kind.BOOLEAN),
    ]),
    ({"$ref": "#/definitions/own"}, Record((("x", INTEGER),))),
    # An unknown type, as the vendor's destinations have it for schemas that they do not know.
    ({"$ref": "#/definitions/nothing"}, JSON),
    ({"$ref": "https://example.com/other.json"}, JSON),
    ({"$ref": "#/definitions/tree"}, Record((("child", JSON),))),
]  # fmt: skip
DEFINITIONS = {
    "own": {"properties": {"x": {"type": "integer"}}},
    "needs": {"required": ["a"]},
    "tree": {"properties": {"child": {"$ref": "#/definitions/tree"}}},
}


@pytest.mark.parametrize(("schema", "expected"), TYPES)
def test_type(schema, expected):
    found = make_record_type({"type": "object", "properties": {"p": schema}, "definitions": DEFINITIONS})
    assert found == Record((("p", expected),))


ALL_A = Record((("a", INTEGER),), declares_all=True)
ONE_TEXT = [
    # a property's schema, its type where a union has one branch of text
    ({"oneOf": [{"properties": A}, {"type": "object"}]}, ALL_A),
    ({"oneOf": [{"type": "string"}, {"properties": A}, {}]}, Union((("string", STRING), ("object", ALL_A)))),
    ({"oneOf": [{"properties": A}, {}]}, Union((("object", Record((("a", INTEGER),))), UNKNOWN))),
    (
        {"oneOf": [{"properties": {"x": {"items": {"properties": A}}}}, {"type": "object"}]},
        Record((("x", Items(ALL_A)),), declares_all=True),
    ),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array"}]}, Items(INTEGER)),
    ({"type": ["string", "integer", "object"]}, Union((("string", STRING), ("integer", INTEGER)))),
    ({"type": ["integer", "object"]}, Union((("integer", INTEGER), ("object", JSON)))),
]


@pytest.mark.parametrize(("schema", "expected"), ONE_TEXT)
def test_type_with_one_text(schema, expected):
    assert make_record_type({"properties": {"p": schema}}, one_text=True) == Record((("p", expected),))


def test_a_schema_without_end_is_refused():
    schema: dict[str, object] = {"type": "integer"}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaIncompatibleError, match="nests too deep"):
        make_record_type(schema)


ROOTS = [
    # the schema of a stream, its record
    ({"type": "object", "properties": A | B, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     Record((("a", INTEGER), ("b", STRING)))),
    ({"type": "object", "properties": A, "oneOf": [{"properties": B}, {"not": {}}]},
     Record((("a", INTEGER), ("b", STRING)))),
    ({"type": "object", "oneOf": [{"properties": A}, {"properties": B}]}, Record((("a", INTEGER), ("b", STRING)))),
    ({"type": "object", "anyOf": [{"required": ["a"]}]}, Record(())),
    ({"oneOf": {"type": "object", "properties": A}}, Record((("a", INTEGER),))),
    ({"oneOf": [{"properties": A}, {"type": "object"}]}, ALL_A),
    ({"oneOf": [{"properties": {"x": {"properties": A}}}, {}]}, Record((("x", ALL_A),), declares_all=True)),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), ROOTS)
def test_record_of_a_stream(schema, expected):
    assert make_record_type(schema) == expected


def test_unknown_type_is_refused():
    with pytest.raises(SchemaIncompatibleError, match=r"the schema of a\.b has type 'money'"):
        make_record_type({"properties": {"a": {"properties": {"b": {"type": "money"}}}}})


def test_properties_of_a_stream_without_looking_at_their_types():
    schema = {
        "allOf": [{"properties": {"a": {"type": "money"}}}, {"$ref": "#/definitions/more"}],
        "definitions": {"more": {"properties": {"b": {}}}},
        "properties": {"c": {}},
    }
    assert find_property_names(schema) == ("c", "a", "b")
    assert find_property_names({}) == ()
    assert find_property_names({"oneOf": {"properties": {"a": {}}}}) == ("a",)
