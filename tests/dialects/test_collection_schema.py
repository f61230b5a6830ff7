"""JSON Schemas and the locations they tell of; kinds as the field types of the vendor's connector."""

import pytest

from job.dialects.collection_schema import locations
from job.errors import SpecInvalidError

TYPES = [
    # a property's schema, its kind; None for no location
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
    ({"type": "string", "format": "duration"}, "string"),
    ({"type": "string", "format": "integer"}, "text_integer"),
    ({"type": "string", "format": "number"}, "text_number"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": ["string", "integer"]}, "json"),
    ({"type": ["string", "integer"], "format": "integer"}, "json"),
    ({"type": "array", "items": {"type": "integer"}}, "array"),
    ({"type": "object"}, "map"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "map"),
    ({"type": ["object", "string"], "properties": {"b": {"type": "integer"}}}, "json"),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json"),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "integer"),
    ({"type": "string", "anyOf": [{"type": "string", "format": "date"}]}, "date"),
    ({"$ref": "#/$defs/stamp"}, "timestamp"),
    ({"$ref": "https://example.com/s.json"}, None),
    ({"type": "null"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("schema", "kind"), TYPES)
def test_kind(schema, kind):
    root = {"$defs": {"stamp": {"type": "string", "format": "date-time"}}, "properties": {"a": schema}}
    assert [found.kind for found in locations(root)] == ([kind] if kind else [])


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
    assert [("/".join(each.path), each.kind) for each in found] == [("x", "json")]


def test_a_type_that_holds_itself_ends():
    node = {"type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/node"}}}
    found = locations({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    assert [("/".join(each.path), each.kind) for each in found] == [("name", "string")]


@pytest.mark.parametrize("schema", [{"type": "array"}, {"properties": {"a": {"type": "objekt"}}}])
def test_what_is_no_collection(schema):
    with pytest.raises(SpecInvalidError):
        locations(schema)
