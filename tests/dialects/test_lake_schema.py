"""The JSON Schema that editors go by takes what a load takes, and shows what a key is for."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.lake_yaml import load_spec
from tests.dialects.files import DESTINATION, TABLE

SCHEMA = make_lake_schema()
EXAMPLES = Path(__file__).parents[2] / "examples"
LAKES = sorted(path for path in EXAMPLES.rglob("*.yaml") if "\npipeline:" in "\n" + path.read_text("utf-8"))


def validate(content):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(content)))


def test_the_command_prints_it():
    printed = subprocess.run([sys.executable, "-m", "lakewriter", "schema"], capture_output=True, check=True).stdout
    schema = json.loads(printed)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json.loads(json.dumps(SCHEMA))


@pytest.mark.parametrize("path", LAKES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_example_is_valid_for_editors(path):
    validate(yaml.safe_load(path.read_text("utf-8")))


def test_there_are_examples_of_every_destination():
    kinds = {yaml.safe_load(path.read_text("utf-8"))["destination"]["type"] for path in LAKES}
    assert kinds == {
        "airbyte-s3", "estuary-s3-parquet", "heropixel-s3", "lakewriter-s3", "supaflow-s3", "supaflow-s3-data-lake",
    }  # fmt: skip


AIRBYTE = {
    "type": "airbyte-s3",
    "s3_bucket_name": "my-bucket",
    "s3_bucket_path": "data",
    "s3_bucket_region": "us-east-1",
    "format": {"format_type": "CSV"},
}
OWN = {"type": "lakewriter-s3", "location": "s3://my-bucket/p", "region": "us-east-1"}
ESTUARY = {"type": "estuary-s3-parquet", "bucket": "my-bucket", "region": "us-east-1", "uploadIntervalInSeconds": 60}
BINDING = {
    "source": "acme/orders",
    "resource": {"pathPrefix": "/a"},
    "read": {"format": "json", "path": "a"},
    "primary_key": ["id"],
}
SCHEMA_FILE = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
KEYS = {"access_key_id": "${env:ID}", "secret_access_key": "${secret:arn:aws:secretsmanager:us-east-1:1:secret:x:key}"}
REST = {"catalog_endpoint": "https://a.example.com/api/catalog", "catalog_name": "c", "client_id": "i"}

TAKEN = [
    # what it is, destination, tables, other keys: a load and an editor take them
    ("secrets by reference", DESTINATION | KEYS, [TABLE], {}),
    ("a secret in an option", DESTINATION, [
        TABLE | {"read": {"format": "jdbc", "options": {"url": "u", "query": "q", "password": "${ssm:p}"}}}
    ], {}),
    ("a secret by reference only", OWN | REST | {"catalog": "open_catalog", "client_secret": "${env:S}"},
     [TABLE | {"schema": "s"}], {}),
    ("an external id by reference", OWN | {"role_arn": "arn:aws:iam::123456789012:role/L", "external_id": "${env:E}"},
     [TABLE], {}),
    ("nulls of optional keys", DESTINATION | {"iam_role_arn": None, "external_id": None}, [TABLE | {"cursor": None}],
     {"source_root": None, "interval": None, "on_bad_row": None,
      "deployment": {"schedule": None, "stages": {"a": None}}}),
    ("empty fields of Supaflow's form", DESTINATION | {"iam_role_arn": "", "external_id": "", "access_key_id": "",
     "secret_access_key": "", "custom_s3_endpoint": ""}, [TABLE], {}),
    ("empty fields of Supaflow's Iceberg", DESTINATION | {"table_format": "ICEBERG", "iceberg_catalog":
     "SNOWFLAKE_OPEN_CATALOG", **REST, "client_secret": "${env:S}", "external_id": ""}, [TABLE | {"schema": "s"}], {}),
    ("nulls and blanks of Airbyte's file", AIRBYTE | {"s3_endpoint": None, "role_arn": "", "access_key_id": "",
     "s3_path_format": None, "upload_parallelism": None, "allow_insecure": ""}, [TABLE], {}),
    ("blanks inside Airbyte's format", AIRBYTE | {"format": {"format_type": "CSV", "flattening": "",
     "compression": None}}, [TABLE], {}),
    ("no region beside Airbyte's endpoint", AIRBYTE | {"s3_bucket_region": None, "s3_endpoint":
     "https://s3.example.com"}, [TABLE], {}),
    ("Airbyte's configuration in a file", {"type": "airbyte-s3", "config_file": "config.json", "single_writer": True},
     [TABLE], {}),
    ("an Estuary binding", ESTUARY, [BINDING], {}),
    ("a schema in a file", ESTUARY, [BINDING | {"collection": {"key": ["/id"], "schema": "schema.json"}}], {}),
    ("a projection in either form", ESTUARY, [BINDING | {"collection": {"key": ["/id"], "schema": SCHEMA_FILE,
     "projections": {"a": "/id", "b": {"location": "/id", "partition": True}}}}], {}),
    ("Estuary's configuration of today", {"type": "estuary-s3-parquet", "bucket": "my-bucket", "region": "us-east-1",
     "uploadInterval": "5m"}, [BINDING | {"resource": {"path": "a/%Y"}}], {}),
    ("either form of on_bad_row", DESTINATION, [TABLE | {"on_bad_row": "fail"}],
     {"on_bad_row": {"action": "quarantine", "at_most": 0.01}}),
    ("tracking columns with names", OWN | {"tracking": {"loaded_at": "at"}}, [TABLE], {"interval": "adaptive"}),
    ("options that are no text", DESTINATION, [TABLE | {"read": {"format": "csv", "path": ["a", "b"],
     "options": {"header": True, "maxColumns": 10, "samplingRatio": 0.5}}}], {}),
    ("a lag that is a number", DESTINATION, [TABLE | {"cursor": "n", "cursor_lag": 5}],
     {"limits": {"parallel_tables": 4}}),
]  # fmt: skip


@pytest.mark.parametrize(("destination", "tables", "more"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_what_a_load_takes_an_editor_takes(tmp_path, destination, tables, more):
    content = {"pipeline": "p", "destination": destination, "tables": tables, **more}
    (tmp_path / "config.json").write_text(json.dumps({**AIRBYTE, "external_id": None}), "utf-8")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA_FILE), "utf-8")
    path = tmp_path / "lake.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    assert load_spec(path).tables
    validate(content)


REFUSED = [
    # what is wrong, the key whose value is laid over, the value
    ("a key of no destination", "destination", DESTINATION | {"bucket": "b"}),
    ("a key of another destination", "destination", OWN | {"s3_bucket_name": "b"}),
    ("a word that is not one of the key's", "destination", DESTINATION | {"partition_strategy": "MINUTE"}),
    ("a number that is too large", "limits", {"parallel_tables": 100}),
    ("an unknown key", "on_error", "stop"),
    ("a table without a name", "tables", [{"read": TABLE["read"]}]),
    ("a text for a number", "keep_loads_days", "30"),
]


@pytest.mark.parametrize(("key", "value"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_a_load_refuses_an_editor_marks(key, value):
    with pytest.raises(jsonschema.ValidationError):
        validate({"pipeline": "p", "destination": DESTINATION, "tables": [TABLE], key: value})


SHOWN = [
    # definition, key, what an editor shows beside the description
    ("LakewriterS3", "format", {"default": "parquet", "enum": ["parquet", "avro", "csv", "jsonl"], "type": "string"}),
    ("LimitsEntry", "target_file_mb", {"default": 200, "minimum": 1, "maximum": 10000, "type": "integer"}),
    ("TableEntry", "mode", {"$ref": "#/$defs/Mode", "default": "append"}),
    ("TableEntry", "read", {"anyOf": [{"$ref": "#/$defs/ReadEntry"}, {"type": "null"}]}),
    ("Deployment", "spark", {"$ref": "#/$defs/Spark"}),
    ("SupaflowDestination", "type", None),
    ("S3Parquet", "type", {"const": "supaflow-s3", "type": "string"}),
]


@pytest.mark.parametrize(("name", "key", "shown"), SHOWN)
def test_what_an_editor_shows(name, key, shown):
    if shown is None:
        assert name not in SCHEMA["$defs"], "a class that no file has"
        return
    own = dict(SCHEMA["$defs"][name]["properties"][key])
    assert own.pop("description").endswith(".")
    assert own == shown


def test_unknown_keys_are_marked_everywhere():
    mappings = [part for part in (SCHEMA, *SCHEMA["$defs"].values()) if "properties" in part]
    assert [part for part in mappings if part["additionalProperties"] is not False] == []


def test_editors_name_the_destinations_by_their_types():
    names = [reference["$ref"].rpartition("/")[2] for reference in SCHEMA["properties"]["destination"]["oneOf"]]
    assert [SCHEMA["$defs"][name]["title"] for name in names] == [
        "supaflow-s3", "supaflow-s3-data-lake", "supaflow-s3-data-lake, ICEBERG", "airbyte-s3", "heropixel-s3",
        "estuary-s3-parquet", "estuary-s3-parquet, present configuration", "lakewriter-s3",
    ]  # fmt: skip
