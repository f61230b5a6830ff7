"""JSON Schemas and the locations they tell of; kinds as the field types of the vendor's connector."""

import pytest

from lakewriter.dialects.estuary.collection_schema import read_schema
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.collection import Kind, Location


def locations(schema):
    return read_schema(schema).locations


TYPES = [
    # a property's schema, its kind
    ({"type": "integer"}, "integer"),
    ({"type": ["integer", "null"]}, "integer"),
    ({"type": ["integer", "number"]}, "number"),
    ({"type": "number"}, "number"),
    ({"type": "boolean"}, "boolean"),
    ({"type": "string"}, "string"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "format": "date-time"}, "timestamp"),
    ({"type": "string", "format": "time"}, "time"),
    ({"type": "string", "format": "uuid"}, "string"),
    ({"type": "string", "format": "duration"}, "duration"),
    ({"type": "string", "format": "integer"}, "text_integer"),
    ({"type": "string", "format": "number"}, "text_number"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": ["string", "integer"]}, "json"),
    ({"type": ["string", "integer", "null"], "format": "integer"}, "mixed_integer"),
    ({"type": ["string", "number"], "format": "number"}, "mixed_number"),
    ({"type": ["string", "integer"], "format": "number"}, "json"),
    ({"type": ["string", "integer"], "format": "date"}, "json"),
    ({"type": ["string", "integer", "boolean"], "format": "integer"}, "json"),
    ({"type": "array", "items": {"type": "integer"}}, "array"),
    ({"type": "object"}, "map"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "map"),
    ({"type": ["object", "string"], "properties": {"b": {"type": "integer"}}}, "json"),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json"),
    ({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}, "string"),
    ({"anyOf": [{"type": "string"}, {"type": "string", "format": "date-time"}]}, "string"),
    ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "date"),
    ({"oneOf": [{"type": "string", "format": "integer"}, {"type": "string", "format": "number"}]}, "text_number"),
    ({"oneOf": [{"type": "integer"}, {"type": "string", "format": "integer"}]}, "mixed_integer"),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "integer"),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": "number"}]}, "integer"),
    ({"type": "string", "allOf": [{"format": "date"}]}, "date"),
    ({"type": "string", "format": "date", "anyOf": [{"minLength": 3}, {"pattern": "2"}]}, "date"),
    ({"type": "string", "anyOf": [{"type": "string", "format": "date"}]}, "date"),
    ({"$ref": "#/$defs/stamp"}, "timestamp"),
    ({"$ref": "#stamp"}, "timestamp"),
    ({"enum": ["a", "b", None]}, "string"),
    ({"enum": [1, 2.5]}, "number"),
    ({"enum": ["a", 1]}, "json"),
    ({"const": 3}, "integer"),
    ({"const": True}, "boolean"),
    ({"const": {"b": 1}}, "map"),
    ({"type": "null"}, "untyped"),
    ({"description": "x"}, "untyped"),
    ({"anyOf": [{"type": "string"}, {}]}, "untyped"),
    (True, "untyped"),
    ({}, "untyped"),
]


@pytest.mark.parametrize(("schema", "kind"), TYPES)
def test_kind(schema, kind):
    stamp = {"$anchor": "stamp", "type": "string", "format": "date-time"}
    assert locations({"$defs": {"stamp": stamp}, "properties": {"a": schema}}) == (Location(("a",), Kind(kind)),)


def test_objects_hold_locations():
    length = {"type": "object", "properties": {"new": {"type": "integer"}, "old": {"type": "integer"}}}
    found = locations({"type": "object", "properties": {"length": length, "id": {"type": "string"}}})
    assert [("/".join(each.path), each.kind) for each in found] == [
        ("length", "object"),
        ("length/new", "integer"),
        ("length/old", "integer"),
        ("id", "string"),
    ]


def test_alternatives_add_up():
    a, b = {"properties": {"x": {"type": "integer"}}}, {"properties": {"x": {"type": "string"}, "y": {}}}
    found = locations({"oneOf": [a, b]})
    assert [("/".join(each.path), each.kind) for each in found] == [("x", "json"), ("y", "untyped")]


def test_a_root_that_holds_itself_ends():
    found = locations({"properties": {"name": {"type": "string"}, "child": {"$ref": "#"}}})
    assert [("/".join(each.path), each.kind) for each in found] == [("name", "string"), ("child", "map")]


def test_a_type_that_holds_itself_ends():
    node = {"type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/node"}}}
    found = locations({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    assert [("/".join(each.path), each.kind) for each in found] == [("name", "string"), ("child", "map")]


@pytest.mark.parametrize("schema", [{"type": "array"}, {"properties": {"a": {"type": "objekt"}}}])
def test_what_is_no_collection(schema):
    with pytest.raises(SpecInvalidError):
        locations(schema)


def test_a_property_whose_name_is_no_text_is_refused():
    with pytest.raises(SpecInvalidError, match="a property at the root whose name is not text"):
        read_schema({"properties": {True: {"type": "string"}}})


@pytest.mark.parametrize("key", ["allOf", "oneOf", "anyOf", "enum"])
def test_what_should_be_a_list_is_refused(key):
    with pytest.raises(SpecInvalidError, match=f"no list as '{key}' at the root; expected one"):
        read_schema({key: 5})


WRITE = {"$defs": {"word": {"type": "string"}}, "properties": {"id": {"$ref": "#/$defs/word"}}}
INFERRED = {"$id": "flow://inferred-schema", "properties": {"n": {"type": "integer"}}}
READ = [{"$ref": "flow://relaxed-write-schema"}, {"$ref": "flow://inferred-schema"}]


def test_read_schema_of_a_collection_whose_schema_is_inferred():
    """What the vendor's discovery writes as ``readSchema``."""
    found = read_schema({"allOf": READ}, WRITE)
    assert found.locations == (Location(("id",), Kind.STRING),)
    assert found.notes == (
        "its schema refers to 'flow://inferred-schema', which only the vendor's platform has: nothing of that is"
        " written.",
    )


def test_inferred_schema_bundled_with_the_read_schema():
    """As the vendor's platform hands schemas out."""
    found = read_schema({"$defs": {"flow://inferred-schema": INFERRED}, "allOf": READ}, WRITE)
    assert found.locations == (Location(("id",), Kind.STRING), Location(("n",), Kind.INTEGER))
    assert found.notes == ()


REFERENCES = [
    ({"$ref": "flow://inferred-schema"}, "is 'flow://inferred-schema', which only the vendor's platform has"),
    ({"$ref": "flow://write-schema"}, "refers to 'flow://write-schema' at the root, which is not there"),
    ({"properties": {"a": {"$ref": "https://example.com/s.json"}}}, "'https://example.com/s.json' at a, which"),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "refers to '#/\\$defs/b' at a, which is not there"),
]


@pytest.mark.parametrize(("schema", "message"), REFERENCES)
def test_references_to_what_is_not_there(schema, message):
    with pytest.raises(SpecInvalidError, match=message):
        read_schema(schema)
