"""What a JSON Schema says, read by the one reader, for the records of a stream and the documents of a collection.

Expectations are of the specification: references and ``$ref`` with siblings of draft 2020-12 (core, 8.2 and 10.2),
pointers of RFC 6901.
"""

import time

import pytest

from lakewriter.dialects.estuary.collection_schema import read_schema
from lakewriter.documents.schema import find_property_names, make_record_type
from lakewriter.documents.types import Items, Leaf, Record, Union
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError
from lakewriter.json_schema.reader import MOST_LEVELS, JsonSchemaError, Rules, read_options, read_property_names
from lakewriter.spec.collection import Kind, Location

JSON, STRING, INTEGER, DATE = Leaf(Kind.JSON), Leaf(Kind.STRING), Leaf(Kind.INTEGER), Leaf(Kind.DATE)
A, B = {"a": {"type": "integer"}}, {"b": {"type": "string"}}
RECORD_A = Record((("a", INTEGER),))

DEFINITIONS = {
    "plain": {"type": "integer"},
    "with/slash": {"type": "integer"},
    "with~tilde": {"type": "integer"},
    "with space": {"type": "integer"},
    "~1": {"type": "integer"},
    "anchored": {"$anchor": "here", "type": "integer"},
    "old_anchor": {"$id": "#there", "type": "integer"},
    "deep": {"properties": {"x": {"items": {"$anchor": "within", "type": "integer"}}}},
    "value": {"const": {"$anchor": "value"}, "type": "string"},
    "named": {"properties": {"default": {"$anchor": "by_name", "type": "integer"}}},
    "listed": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "bundled": {
        "$id": "https://example.com/schemas/other.json",
        "$defs": {"local": {"type": "integer"}},
        "$ref": "#/$defs/local",
    },
    "file:types.json": {"whole": {"type": "integer"}},
    "by_reference": {"$ref": "#/$defs/plain"},
    "object_a": {"type": "object", "properties": A},
    "self": {"$ref": "#/$defs/self"},
    "there": {"$ref": "#/$defs/and_back"},
    "and_back": {"allOf": [{"$ref": "#/$defs/there"}]},
    "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}},
    "forest": {"type": "array", "items": {"$ref": "#/$defs/forest"}},
    "even": {"type": "object", "properties": {"next": {"$ref": "#/$defs/odd"}}},
    "odd": {"type": "object", "properties": {"next": {"$ref": "#/$defs/even"}}},
    "": {"type": "integer"},
}


def refer(to, **beside):
    return {"$ref": to, **beside}


READ = [
    # what, a property's schema, the type of a record's property, the kind of a collection's location
    ("pointer", refer("#/$defs/plain"), INTEGER, Kind.INTEGER),
    ("pointer with ~1", refer("#/$defs/with~1slash"), INTEGER, Kind.INTEGER),
    ("pointer with ~0", refer("#/$defs/with~0tilde"), INTEGER, Kind.INTEGER),
    ("pointer with ~01, which is ~1 and no slash", refer("#/$defs/~01"), INTEGER, Kind.INTEGER),
    ("pointer with percent", refer("#/%24defs/with%20space"), INTEGER, Kind.INTEGER),
    ("pointer into a list", refer("#/$defs/listed/oneOf/1"), INTEGER, Kind.INTEGER),
    ("pointer to the empty name", refer("#/$defs/"), INTEGER, Kind.INTEGER),
    ("pointer to a reference", refer("#/$defs/by_reference"), INTEGER, Kind.INTEGER),
    ("anchor", refer("#here"), INTEGER, Kind.INTEGER),
    ("anchor inside a definition", refer("#within"), INTEGER, Kind.INTEGER),
    ("anchor of a property named as a keyword", refer("#by_name"), INTEGER, Kind.INTEGER),
    ("anchor of draft-07", refer("#there"), INTEGER, Kind.INTEGER),
    ("$id of a bundled schema", refer("https://example.com/schemas/other.json"), INTEGER, Kind.INTEGER),
    ("$id with a pointer", refer("https://example.com/schemas/other.json#/$defs/local"), INTEGER, Kind.INTEGER),
    ("$id relative to the root's", refer("other.json"), INTEGER, Kind.INTEGER),
    ("$id of the root", refer("https://example.com/schemas/root.json#/$defs/plain"), INTEGER, Kind.INTEGER),
    ("key of a bundle", refer("file:types.json#/whole"), INTEGER, Kind.INTEGER),
    ("siblings that say nothing", refer("#/$defs/plain", description="x", title="y"), INTEGER, Kind.INTEGER),
    ("sibling type", refer("#/$defs/listed", type=["integer", "null"]), INTEGER, Kind.INTEGER),
    ("sibling format", refer("#/$defs/listed/oneOf/0", format="date"), DATE, Kind.DATE),
    ("sibling properties", refer("#/$defs/object_a", properties={"a": {}}), RECORD_A, Kind.OBJECT),
    ("sibling that contradicts", refer("#/$defs/plain", type="string"), JSON, Kind.UNTYPED),
    ("allOf that contradicts", {"allOf": [{"type": "string"}, {"type": "integer"}]}, JSON, Kind.UNTYPED),
    ("allOf shares", {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, INTEGER,
     Kind.INTEGER),
    ("allOf of number and integer", {"allOf": [{"type": "number"}, {"type": "integer"}]}, INTEGER, Kind.INTEGER),
    ("allOf with a format", {"allOf": [{"type": ["string", "null"]}, {"format": "date"}]}, DATE, Kind.DATE),
    ("formats that differ", {"type": "string", "format": "date", "allOf": [{"format": "time"}]}, STRING, Kind.STRING),
    ("type, and options that are more", {"type": "string", "anyOf": [{"type": "integer"}, {"format": "date"}]}, DATE,
     Kind.DATE),
    ("a schema that nothing fits", False, JSON, Kind.UNTYPED),
    ("an option that nothing fits", {"anyOf": [{"type": "integer"}, False]}, INTEGER, Kind.INTEGER),
    ("a type without a name", {"type": None}, JSON, Kind.UNTYPED),
    ("no types", {"type": []}, JSON, Kind.UNTYPED),
    ("the same type twice", {"type": ["integer", "integer", "null"]}, INTEGER, Kind.INTEGER),
    ("items without a type", {"items": {"type": "integer"}}, Items(INTEGER), Kind.ARRAY),
    # Properties and items say nothing of values of other types (draft 2020-12, core 10.3): they imply a type, no more.
    ("properties beside other types", {"properties": A, "anyOf": [{"type": "string"}, {"type": "object"}]},
     Union((("string", STRING), ("object", RECORD_A))), Kind.JSON),
    ("properties beside another type", {"properties": A, "anyOf": [{"type": "string"}]}, STRING, Kind.STRING),
    ("properties beside a type that is referred to", refer("#/$defs/plain", properties=A), INTEGER, Kind.INTEGER),
    ("properties beside nothing else", {"properties": A, "anyOf": [{"minProperties": 1}]}, RECORD_A, Kind.OBJECT),
    ("properties of both", {"properties": A, "allOf": [{"properties": {"a": {"minimum": 1}}}]}, RECORD_A, Kind.OBJECT),
    ("properties and items", {"allOf": [{"properties": A}, {"items": {"type": "string"}}]},
     Union((("object", RECORD_A), ("array", Items(STRING)))), Kind.JSON),
    ("properties beside a value", {"properties": A, "const": {"a": 1}}, RECORD_A, Kind.OBJECT),
    ("arrays of both", {"allOf": [{"items": {"type": ["string", "integer"]}}, {"items": {"type": "integer"}}]},
     Items(INTEGER), Kind.ARRAY),
    ("refers to itself", refer("#/$defs/self"), JSON, Kind.UNTYPED),
    ("refers in a circle", refer("#/$defs/there"), JSON, Kind.UNTYPED),
    ("array that holds itself", refer("#/$defs/forest"), Items(JSON), Kind.ARRAY),
    # Airbyte's table of types goes by "type" alone, Flow's inference by const and enum too.
    ("const", {"const": 3}, JSON, Kind.INTEGER),
    ("enum", {"enum": ["a", "b", None]}, JSON, Kind.STRING),
]  # fmt: skip


def with_property(schema):
    return {
        "$id": "https://example.com/schemas/root.json",
        "type": "object",
        "properties": {"p": schema},
        "$defs": DEFINITIONS,
    }


@pytest.mark.parametrize(("schema", "record", "kind"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_schema_is_read_for_records_and_collections(schema, record, kind):
    assert make_record_type(with_property(schema)) == Record((("p", record),))
    assert read_schema(with_property(schema)).locations[0] == Location(("p",), kind)


def test_composed_properties():
    schema = refer("#/$defs/object_a", properties=B)
    assert make_record_type(with_property(schema)) == Record((("p", Record((("b", STRING), ("a", INTEGER)))),))
    places = [each.path for each in read_schema(with_property(schema)).locations]
    assert places == [("p",), ("p", "b"), ("p", "a")]


LOOPS = [
    # a schema that holds itself, its record, its locations
    ("tree", Record((("child", JSON),)), {"child": Kind.MAP}),
    ("even", Record((("next", Record((("next", JSON),))),)), {"next": Kind.OBJECT, "next/next": Kind.MAP}),
]


@pytest.mark.parametrize(("name", "record", "locations"), LOOPS)
def test_what_holds_itself_ends(name, record, locations):
    schema = {"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}
    assert make_record_type(schema) == record
    assert {"/".join(each.path): each.kind for each in read_schema(schema).locations} == locations


NOT_THERE = ["#/$defs/nothing", "#nothing", "#value", "#/$defs/listed/oneOf/2", "#/$defs/listed/oneOf/-1",
             "https://example.com/schemas/third.json", "#/$defs/plain/type/0", "nothing.json#/$defs/plain",
             # Python raises for the brackets of a URL that hold no address, and for numbers of more than 4,300 digits.
             "http://[", f"#/$defs/listed/oneOf/{'9' * 5000}"]  # fmt: skip


@pytest.mark.parametrize("reference", NOT_THERE)
def test_reference_to_what_is_not_there(reference):
    schema = with_property({"type": "object", "properties": {"q": refer(reference)}})
    assert make_record_type(schema) == Record((("p", Record((("q", JSON),))),))
    with pytest.raises(SpecInvalidError, match=r"the collection's schema refers to '.* at p/q, which is not there"):
        read_schema(schema)


@pytest.mark.parametrize("identifier", [5, None, [], {"a": 1}, "http://["])
def test_reference_beside_an_id_that_is_none(identifier):
    schema = {"$id": identifier, "$defs": {"plain": {"$id": identifier, "type": "integer"}}, "$ref": "#/$defs/plain"}
    options, _ = read_options(schema, Rules(()))
    assert [option.type for option in options] == ["integer"]


WRONG = [
    # a property's schema, what is wrong with it
    ({"type": "money"}, "has type 'money'"),
    ({"type": ["string", 5]}, "has type 5"),
    ({"type": {"a": 1}}, "has type a mapping"),
    ({"$ref": 5}, r"has 5 as '\$ref'"),
    ({"properties": {True: {}}}, "has a property"),
]


@pytest.mark.parametrize(("schema", "what"), WRONG)
def test_schema_that_is_wrong(schema, what):
    with pytest.raises(SchemaIncompatibleError, match=f"the schema of p {what}"):
        make_record_type(with_property(schema))
    with pytest.raises(SpecInvalidError, match=f"the collection's schema {what} at p"):
        read_schema(with_property(schema))


def test_items_are_read_where_the_rules_say_so():
    """A collection's arrays are skipped or written whole, so what they hold may say anything."""
    schema = with_property({"type": "array", "items": {"type": "money"}})
    with pytest.raises(SchemaIncompatibleError, match=r"the schema of p\[\] has type 'money'"):
        make_record_type(schema)
    assert read_schema(schema).locations == (Location(("p",), Kind.ARRAY),)


def nest(levels, wrap):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


def double(levels):
    """Each definition refers to the next one twice: 20 levels are a million parts."""
    twice = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(levels)}
    return {"allOf": [{"$ref": "#/$defs/0"}], "$defs": twice | {str(levels): {"type": "object"}}}


def chain(links):
    following = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(links)}
    return {"$ref": "#/$defs/0", "$defs": following | {str(links): {"type": "object"}}}


def multiply(count):
    """Formats that hold at once: two to the power of ``count`` sets of them."""
    both = [{"anyOf": [{"format": f"{n}"}, {"contentEncoding": f"{n}", "airbyte_type": f"{n}"}]} for n in range(count)]
    return {"type": "object", "properties": {"p": {"type": "string", "allOf": both}}}


ENDLESS = [
    # what, a schema, its fault
    ("names", nest(1000, lambda schema: {"properties": {"a": schema}}), "nests too deep"),
    ("allOf", nest(1000, lambda schema: {"allOf": [schema]}), "nests too deep"),
    ("anyOf", nest(1000, lambda schema: {"anyOf": [schema, {}]}), "nests too deep"),
    ("doubled", double(20), "more than 50,000 parts, or 100 references one behind the other"),
    ("chained", chain(1000), "more than 50,000 parts, or 100 references one behind the other"),
    ("multiplied", multiply(20), "more than 50,000 parts"),
]


@pytest.mark.parametrize(("schema", "fault"), [row[1:] for row in ENDLESS], ids=[row[0] for row in ENDLESS])
def test_schema_without_an_end_in_practice_is_refused_soon(schema, fault):
    start = time.process_time()
    with pytest.raises(SchemaIncompatibleError, match=f"the schema of the stream .*{fault}"):
        make_record_type(schema)
    with pytest.raises(SpecInvalidError, match=f"the collection's schema .*{fault}"):
        read_schema(schema)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("wrap", [
    lambda schema: {"properties": {"a": schema}},
    lambda schema: {"allOf": [schema, {"type": ["object", "null"]}]},
    lambda schema: {"anyOf": [schema, {"type": ["object", "null"]}]},
])  # fmt: skip
def test_schema_of_as_many_levels_as_allowed_is_read(wrap):
    """The interpreter's limit is met by none of them, and neither by what is made of them."""
    schema = nest(MOST_LEVELS, wrap)
    make_record_type(schema)
    read_schema(schema)
    both = {"allOf": [nest(MOST_LEVELS - 1, wrap), nest(MOST_LEVELS - 1, wrap)]}
    make_record_type(both)
    read_schema(both)


NAMES = [
    # a stream's schema, the names of its properties: neither types nor what they hold matter
    ({"properties": A}, ("a",)),
    ({"type": "money", "properties": A}, ("a",)),
    ({"properties": A, "allOf": [{"$ref": "#/$defs/nothing"}]}, ("a",)),
    ({"$ref": "#/$defs/object_a", "properties": B}, ("b", "a")),
    ({"anyOf": [{"$ref": "#/$defs/object_a"}, {"properties": B}, {"type": "null"}]}, ("a", "b")),
    ({"$ref": "#/$defs/even"}, ("next",)),
    ({"properties": {"a": {"$ref": "#/$defs/nothing"}}}, ("a",)),
    ({"$ref": "#"}, ()),
]


@pytest.mark.parametrize(("schema", "names"), NAMES)
def test_names_of_properties(schema, names):
    assert find_property_names(schema | {"$defs": DEFINITIONS}) == names


def test_documents_that_come_with_every_schema():
    rules = Rules((), others={"types.json": {"definitions": {"n": {"type": "integer"}}}}, elsewhere=("cloud://s",))
    options, elsewhere = read_options(
        {"properties": {"a": refer("https://example.com/types.json#/definitions/n"), "b": refer("cloud://s")}}, rules
    )
    assert {name: [option.type for option in own] for name, own in options[0].properties.items()} == {
        "a": ["integer"],
        "b": ["any"],
    }
    assert elsewhere == {"cloud://s"}
    with pytest.raises(JsonSchemaError, match="refers to"):
        read_options(refer("cloud://t"), rules)
    assert read_property_names({"properties": A | B}, rules) == ("a", "b")


def test_union_of_types_keeps_its_order():
    schema = with_property({"type": ["string", "integer"]})
    assert make_record_type(schema) == Record((("p", Union((("string", STRING), ("integer", INTEGER)))),))
