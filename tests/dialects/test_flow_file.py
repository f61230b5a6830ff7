"""Flow files taken as they are: the document's second example, what of a file has no effect, and what is refused."""

import json
import re

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load, load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.collection import Kind, Location
from tests.dialects.files import lake
from tests.dialects.flows import DOCUMENTED, READ, TABLE, bindings, flow
from tests.support.narrow import need

CHANGES = "estuary/public/wikipedia/recentchange"
RECENTCHANGES = """
"bindings": [
  {
    "resource": {
      "pathPrefix": "recentchanges"
    },
    "source": "estuary/public/wikipedia/recentchange",
    "fields": {
      "include": {
        "length": {},
        "revision": {}
      },
      "recommended": true
    }
  }
]
"""
"""The document's second example, with the brackets that its text lost."""


def edited(**over):
    """The documented file with its one binding, its configuration or the file itself laid over."""
    data = yaml.safe_load(DOCUMENTED)
    own = data["materializations"]["PREFIX/mat_name"]
    own["endpoint"]["connector"]["config"] |= over.pop("config", {})
    own["bindings"][0] |= over.pop("binding", {})
    own["bindings"] += over.pop("more", [])
    return yaml.safe_dump(data | over)


def test_documented_fields_unchanged(tmp_path):
    data = yaml.safe_load(DOCUMENTED)
    data["materializations"]["PREFIX/mat_name"] |= yaml.safe_load(RECENTCHANGES)
    table = {"source": CHANGES, "read": READ, "primary_key": ["/meta/id"]}
    (found,) = load_spec(flow(tmp_path, yaml.safe_dump(data), table)).tables
    assert (found.path, found.source_table) == ("recentchanges", "recentchange")
    selection = need(found.collection).selection
    assert (selection.include, selection.depth) == (("length", "revision"), None)


NO_EFFECT = [
    # laid over the file, the places of which a warning tells
    ({"binding": {"source": {"name": "PREFIX/source_collection", "x": 1}}}, ["bindings.0.source.x"]),
    ({"config": {"advanced": {"feature_flags": "x", "endpoint": ""}, "credentials": {}}},
     ["endpoint.connector.config.advanced.feature_flags"]),
    ({"collections": {"PREFIX/source_collection": {"projections": {"n": {"location": "/id", "x": 1}}, "derive": {}}}},
     ["collections.PREFIX/source_collection.projections.n.x"]),
]  # fmt: skip


@pytest.mark.parametrize(("over", "places"), NO_EFFECT)
def test_unknown_keys_are_warnings_wherever_they_are(tmp_path, over, places):
    warnings = load_spec(flow(tmp_path, edited(**over))).warnings
    said = [each for each in warnings if each.startswith("flow.yaml") and "is written out" not in each]
    assert [re.sub(r"flow\.yaml:\d+: (materializations\.PREFIX/mat_name\.)?", "", each) for each in said] == [
        f"{place} is not known here and has no effect." for place in places
    ]


OF_THE_PLATFORM = [
    # laid over the binding; what is said, blank for nothing
    ({"priority": 3}, ""),
    ({"onIncompatibleSchemaChange": "abort"}, ""),
    ({"onIncompatibleSchemaChange": "disableBinding"}, ""),
    (
        {"onIncompatibleSchemaChange": "backfill"},
        "bindings.0.onIncompatibleSchemaChange is 'backfill', and here a",
    ),
    ({"resource": {"pathPrefix": "a", "delta_updates": True}}, ""),
    ({"resource": {"pathPrefix": "a", "deltaUpdates": True}}, ""),
    ({"resource": {"pathPrefix": "a", "delta_updates": False}}, "bindings.0.resource.delta_updates is false; this"),
    ({"fields": {"groupBy": ["id"], "recommended": True}}, ""),
    ({"fields": {"groupBy": ["a"]}}, "bindings.0.fields.groupBy combines documents by a, and here each document is"),
]


@pytest.mark.parametrize(("binding", "said"), OF_THE_PLATFORM)
def test_keys_of_the_platform_are_taken_or_refused(tmp_path, binding, said):
    """Flow's own keys: refused where they decide what is written, taken where what they ask for is so in any case."""
    file = flow(tmp_path, edited(binding=binding))
    if not said:
        warnings = load_spec(file).warnings
        assert [each for each in warnings if each.startswith("flow.yaml") and "is written out" not in each] == []
        return
    with pytest.raises(SpecInvalidError, match=re.escape(said)):
        load_spec(file)


def test_blanks_count_as_absent(tmp_path):
    blank = {
        "config": {"region": "", "compressionType": None, "advanced": None},
        "binding": {
            "resource": {"pathPrefix": "a", "compressionType": ""},
            "fields": {"include": {"length": None}, "exclude": None, "recommended": None},
            "source": {"name": "PREFIX/source_collection", "partitions": {"include": {}}, "notBefore": None},
            "backfill": 0,
        },
    }
    spec = load_spec(flow(tmp_path, edited(**blank)))
    assert need(spec.tables[0].encoding).codec == "snappy"
    assert need(spec.tables[0].collection).selection.include == ("length",)
    assert len(spec.warnings) == 2


DEPTHS = [(True, None), (False, 0), (0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(("recommended", "depth"), DEPTHS)
def test_recommended_is_a_switch_or_a_depth(tmp_path, recommended, depth):
    fields = {"fields": {"recommended": recommended}}
    for path in (
        flow(tmp_path, edited(binding=fields)),
        bindings(tmp_path, TABLE | fields | {"resource": {"pathPrefix": "a"}}),
    ):
        assert need(load_spec(path).tables[0].collection).selection.depth == depth


CHOOSING = [
    {"partitions": {"include": {"country": ["US"]}}},
    {"notBefore": "2024-01-01T00:00:00Z"},
    {"notAfter": "2024-01-01T00:00:00Z"},
]


@pytest.mark.parametrize("selector", CHOOSING)
def test_what_chooses_documents_is_refused(tmp_path, selector):
    (key,) = selector
    text = edited(binding={"source": {"name": "PREFIX/source_collection"} | selector})
    with pytest.raises(
        SpecInvalidError, match=rf"flow.yaml:\d+: .*\.bindings.0.source.{key} chooses among the documents"
    ):
        load_spec(flow(tmp_path, text))


BACKFILLS = [
    # the binding's, the one in lake.yaml's table, the table's
    (None, None, None),
    (0, None, None),
    (2, None, 2),
    (2, 3, 3),
    (None, 3, 3),
]


@pytest.mark.parametrize(("bindings_own", "tables_own", "expected"), BACKFILLS)
def test_backfill_of_a_binding(tmp_path, bindings_own, tables_own, expected):
    given = {} if tables_own is None else {"backfill": tables_own}
    edit = {} if bindings_own is None else {"backfill": bindings_own}
    assert load_spec(flow(tmp_path, edited(binding=edit), TABLE | given)).tables[0].backfill == expected


def test_backfill_that_is_no_number(tmp_path):
    with pytest.raises(SpecInvalidError, match=r"flow.yaml:\d+: materializations.*bindings.0.backfill"):
        load_spec(flow(tmp_path, edited(binding={"backfill": "twice"})))


def test_a_field_may_be_text(tmp_path):
    text = edited(binding={"fields": {"include": {"length": {"castToString": True}, "id": {"castToString": False}}}})
    assert need(load_spec(flow(tmp_path, text)).tables[0].collection).selection.as_text == ("length",)


def test_a_disabled_binding_may_keep_its_table(tmp_path):
    off = {"resource": {"pathPrefix": "off"}, "source": "PREFIX/off", "disable": True}
    spec = load_spec(flow(tmp_path, edited(more=[off]), TABLE | {"source": "PREFIX/off"}, TABLE))
    assert [table.path for table in spec.tables] == ["my-prefix"]
    assert spec.warnings[0] == "tables has 'PREFIX/off', whose binding is disabled: it is left out."


def test_schemas_in_files_beside_the_flow_file(tmp_path):
    (tmp_path / "types").mkdir()
    files = {
        "s.schema.yaml": {"properties": {"id": {"$ref": "types/ids.yaml#/$defs/id"}, "at": {"$ref": "#/$defs/at"},
                                         "default": {"$ref": "types/more.yaml"}},
                          "$defs": {"at": {"type": "string", "format": "date"}}},
        "types/ids.yaml": {"$defs": {"id": {"$ref": "more.yaml"}}},
        "types/more.yaml": {"type": "integer", "examples": [{"$ref": "none.yaml"}]},
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    read = {"allOf": [{"$ref": "flow://relaxed-write-schema"}, {"$ref": "flow://inferred-schema"}]}
    collection = {"key": ["/id"], "writeSchema": "s.schema.yaml", "readSchema": read}
    read_here = load(flow(tmp_path, edited(collections={"PREFIX/source_collection": collection})))
    spec = read_here.spec
    locations = need(spec.tables[0].collection).locations
    assert locations == (
        Location(("id",), Kind.INTEGER),
        Location(("at",), Kind.DATE),
        Location(("default",), Kind.INTEGER),
    )
    assert spec.warnings[-1].startswith("collection 'PREFIX/source_collection': its schema refers to 'flow://inferred")
    (tmp_path / "elsewhere").mkdir()
    shipped = tmp_path / "elsewhere" / "lake.yaml"
    shipped.write_text(yaml.safe_dump(dict(read_here.data), sort_keys=False), "utf-8")
    assert load_spec(shipped).tables[0].collection == spec.tables[0].collection


SECRET = 98765432109876
SECRETS = [
    # the Flow file, more files, what is said
    (edited(config={"awsSecretAccessKey": SECRET}), {},
     "mat_name.endpoint.connector.config.awsSecretAccessKey: (not shown): expected text, in quotes."),
    (edited(config={"awsSecretAccessKey": [SECRET]}), {},
     "mat_name.endpoint.connector.config.awsSecretAccessKey: (not shown): expected text."),
    (edited(config={"bucket": 5}), {}, "mat_name.endpoint.connector.config.bucket: 5: expected text, in quotes."),
    (edited(binding={"resource": {"pathPrefix": "/"}}), {}, "mat_name.bindings.0.resource.pathPrefix: '/': expected"),
    (edited(collections={"PREFIX/source_collection": {"schema": {"type": "x"}}}), {},
     "flow.yaml:2: collections.PREFIX/source_collection: the collection's schema has type 'x'"),
    (edited().replace("config:", "config: c.yaml\n        was:"), {"c.yaml": {"awsSecretAccessKey": SECRET}},
     "c.yaml:1: awsSecretAccessKey: (not shown): expected text, in quotes."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "files", "message"), SECRETS)
def test_problems_name_the_place_and_show_no_secret(tmp_path, text, files, message):
    for name, content in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(SpecInvalidError) as raised:
        load_spec(flow(tmp_path, text))
    assert message in str(raised.value)
    assert str(SECRET) not in str(raised.value)


def test_secrets_of_an_airbyte_file_and_of_the_lake_are_not_shown(tmp_path):
    config = {
        "s3_bucket_name": "b",
        "s3_bucket_path": "p",
        "s3_bucket_region": "us-east-1",
        "secret_access_key": SECRET,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    airbyte = {"pipeline": "p", "destination": {"type": "airbyte-s3", "config_file": "config.json"},
               "tables": [{"table": "t", "read": READ}]}  # fmt: skip
    (tmp_path / "airbyte.yaml").write_text(yaml.safe_dump(airbyte), "utf-8")
    inline = bindings(tmp_path, awsSecretAccessKey=SECRET)
    for path, place in (
        (tmp_path / "airbyte.yaml", "config.json:1: secret_access_key"),
        (inline, "awsSecretAccessKey"),
    ):
        with pytest.raises(SpecInvalidError) as raised:
            load_spec(path)
        assert f"{place}: (not shown): expected text, in quotes." in str(raised.value)
        assert str(SECRET) not in str(raised.value)


def test_problems_of_a_table_name_its_own_line(tmp_path):
    """The file's bindings may have another order."""
    more = [{"resource": {"pathPrefix": "b"}, "source": "PREFIX/b"}]
    path = flow(tmp_path, edited(more=more), {"source": "PREFIX/b", "read": READ}, TABLE)
    line = 1 + path.read_text("utf-8").splitlines().index("- source: PREFIX/b")
    with pytest.raises(SpecInvalidError, match=f"lake.yaml:{line}: tables.0: the collection has no key"):
        load_spec(path)


ODD_BINDINGS = [
    # the binding's source, what is said; before, such a source was taken for a collection of the name 'None'
    (None, "bindings.0.source: nothing, expected a collection's name."),
    ({"name": 5}, "bindings.0.source: a mapping, expected a collection's name."),
    (["a"], "bindings.0.source: a list, expected a collection's name."),
]


@pytest.mark.parametrize(("source", "said"), ODD_BINDINGS)
def test_a_source_that_is_no_name_is_refused(tmp_path, source, said):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(flow(tmp_path, edited(binding={"source": source})))
    assert caught.value.message.endswith(said)


def test_a_catalog_file_is_named(tmp_path):
    (tmp_path / "catalog.json").write_text('{"streams": [{"stream": 1}]}', "utf-8")
    path = lake(tmp_path, top={"source": {"messages": "m.jsonl", "catalog": "catalog.json"}})
    with pytest.raises(SpecInvalidError, match=r"catalog.json:1: streams.0.stream: 1: expected a mapping"):
        load_spec(path)
