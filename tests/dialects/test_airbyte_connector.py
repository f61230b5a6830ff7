"""The specification that Airbyte's platform gets: it takes every configuration that the connector takes."""

import itertools
import json
import re
from fnmatch import fnmatch
from pathlib import Path

import boto3
import jsonschema
import pytest

from lakewriter.dialects.airbyte.connector import make_connector_specification, read_connection, require_standard_input
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.encodings import TextEncoding
from tests.dialects.airbyte_lakes import BASE, TABLE, lake
from tests.dialects.test_airbyte_formats import FORMATS

EXAMPLE = Path(__file__).parents[2] / "examples/airbyte/destination.json"
GUIDE = Path(__file__).parents[2] / "docs/guide-airbyte.md"
SPECIFICATION = Path(__file__).with_name("connector_specification.md")
CONNECTION = make_connector_specification()["connectionSpecification"]

CONFIGURATIONS = [
    json.loads(EXAMPLE.read_text("utf-8")),
    *(BASE | {"format": form} for form, _, _ in FORMATS),
    # blank text counts as absent, and what is unknown is a warning
    BASE | {"access_key_id": "", "secret_access_key": "", "role_arn": "", "s3_endpoint": "", "external_id": ""},
    BASE | {"s3_path_format": "", "file_name_pattern": "", "s3_bucket_path": ""},
    BASE | {"format": {"format_type": "JSONL", "part_size_mb": 5}},
    BASE | {"format": {"format_type": "CSV", "compression": {"compression_type": "GZIP", "level": 9}}},
    BASE | {"format": {"format_type": "CSV", "compression": {}}},
    BASE | {"format": {"format_type": "Avro", "compression_codec": {}}},
    BASE | {"format": {"format_type": "Avro", "compression_codec": {"codec": "xz", "future": 1}}},
    BASE | {"format": {"format_type": "Parquet", "future": 1}, "future": 1},
]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_configuration_is_valid_for_the_platform_and_here(tmp_path, configuration):
    jsonschema.Draft7Validator(CONNECTION).validate(configuration)
    (tmp_path / "config.json").write_text(json.dumps(configuration), "utf-8")
    read_connection(tmp_path / "config.json", None)


COMPRESSIONS = [
    # a format's compression, whether the connector's files and those of a lake.yaml are packed: where it is absent, the
    # connector's code writes none, and both documents say GZIP
    (None, False, True),
    ({}, False, True),
    ({"compression_type": ""}, False, True),
    ({"compression_type": "No Compression"}, False, False),
    ({"compression_type": "GZIP"}, True, True),
]


@pytest.mark.parametrize("kind", ["CSV", "JSONL"])
@pytest.mark.parametrize(("compression", "by_connector", "by_file"), COMPRESSIONS)
def test_compression_that_is_absent(tmp_path, kind, compression, by_connector, by_file):
    given = BASE | {"format": {"format_type": kind} | ({} if compression is None else {"compression": compression})}
    (tmp_path / "config.json").write_text(json.dumps(given), "utf-8")
    of_connector = read_connection(tmp_path / "config.json", None).encoding
    of_file = load_spec(lake(tmp_path, {"format": given["format"]})).encoding
    assert (of_connector, of_file) == (
        TextEncoding(kind=kind.lower(), gzip=by_connector),
        TextEncoding(kind=kind.lower(), gzip=by_file),
    )


EXPORTED = [
    # what the API answers, with the keys of a lake.yaml beside it, what is wrong
    ({"name": "S3", "configuration": BASE | {"destinationType": "s3"}}, {}, None),
    ({"workspaceId": "w", "connectionConfiguration": BASE}, {}, None),
    ({"name": "S3", "configuration": BASE | {"access_key_id": "**********", "secret_access_key": "*****"}},
     {"access_key_id": "${env:KEY}", "secret_access_key": "${env:SECRET}"}, None),
    ({"name": "S3", "configuration": BASE | {"access_key_id": "**********", "secret_access_key": "${env:S}"}}, {},
     "s3.json:1: configuration.access_key_id: (not shown): Airbyte's API shows asterisks in place of a secret; give "
     "the secret itself or a reference such as ${env:NAME}."),
    ({"name": "S3", "configuration": BASE | {"s3_bucket_name": "-"}}, {},
     "s3.json:1: configuration.s3_bucket_name: '-': expected a bucket name: letters, digits, '.' and '-'."),
]  # fmt: skip


@pytest.mark.parametrize(("exported", "beside", "problem"), EXPORTED, ids=range(len(EXPORTED)))
def test_what_the_api_exports_is_a_config_file(tmp_path, exported, beside, problem):
    (tmp_path / "s3.json").write_text(json.dumps(exported), "utf-8")
    destination = {"type": "airbyte-s3", "config_file": "s3.json"} | beside
    lake_file = tmp_path / "lake.yaml"
    lake_file.write_text(json.dumps({"pipeline": "p", "destination": destination, "tables": [TABLE]}), "utf-8")
    if problem is None:
        assert load_spec(lake_file).access.bucket == BASE["s3_bucket_name"]
        return
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake_file)
    assert list(caught.value.problems) == [problem]


LABELS = (Path(__file__).parent / "airbyte_form.txt").read_text("utf-8").splitlines()


def list_fields(schema, path=""):
    """Every field of the form, as it shows them: its path, its title and its order."""
    for key, own in sorted(schema.get("properties", {}).items(), key=lambda item: item[1]["order"]):
        yield f"{path}{key}: {own['title']}"
        assert own["description"].endswith(".")
        for option in own.get("oneOf", ()):
            yield f"{path}{key} = {option['title']}"
            yield from list_fields(option, f"{path}{key}.")


def test_form_has_labels_of_the_set_up_page():
    """The order is that of the vendor's specification; the destination's own fields are labelled as its page does."""
    assert list(list_fields(CONNECTION)) == LABELS


FACTS = ("type", "const", "enum", "default", "examples", "order", "airbyte_secret", "always_show", "minimum", "maximum")
VENDORS = json.loads((Path(__file__).parent / "airbyte_specification.json").read_text("utf-8"))
"""The facts of the vendor's own specification, expected-spec-oss.json of its connector: by field, what it is."""
TAGS = ("format_type", "compression_type", "codec")


def list_facts(schema, path=""):
    """Every field and every option of a choice, by its path, with its facts; words are none."""
    for key, own in schema["properties"].items():
        facts = {name: own[name] for name in FACTS if name in own}
        yield f"{path}{key}", facts | ({"required": True} if key in schema.get("required", ()) else {})
        for option in own.get("oneOf", ()):
            (name,) = next(option["properties"][tag]["enum"] for tag in TAGS if tag in option["properties"])
            yield f"{path}{key}.{name}", {fact: option[fact] for fact in ("type", "additionalProperties")}
            yield from list_facts(option, f"{path}{key}.{name}.")


def read_table(page, heading):
    """The rows of the page's table with these columns."""
    lines = page.read_text("utf-8").partition(f"| {' | '.join(heading)} |\n")[2].splitlines()[1:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


def test_specification_is_the_vendors_but_for_what_is_listed():
    ours = dict(list_facts(CONNECTION))
    different = {
        (path, fact)
        for path in VENDORS.keys() & ours.keys()
        for fact in VENDORS[path].keys() | ours[path].keys()
        if VENDORS[path].get(fact) != ours[path].get(fact)
    } | {(path, "field") for path in VENDORS.keys() ^ ours.keys()}
    rows = read_table(SPECIFICATION, ["field", "fact", "the vendor's", "here", "because"])
    assert [row for row in rows if len(row) != 5 or not all(row)] == []
    told = [
        {each for each in different if fnmatch(each[0], field) and each[1] == fact}
        for fields, facts, *_ in rows
        for field in re.sub("[`]", "", fields).split(", ")
        for fact in re.sub("[`]", "", facts).split(", ")
    ]
    assert different - set().union(*told) == set()
    assert all(told), "a row tells of no difference"
    assert list(VENDORS) == [path for path in ours if path in VENDORS]
    assert (len(VENDORS), sum(map(len, VENDORS.values())), len(different)) == (53, 155, 75)


def test_specification_is_of_a_destination_for_files():
    told = {key: value for key, value in make_connector_specification().items() if key != "connectionSpecification"}
    assert told == {
        "documentationUrl": "https://docs.airbyte.com/integrations/destinations/s3",
        "supportsIncremental": True,
        "supportsNormalization": False,
        "supportsDBT": False,
        "supported_destination_sync_modes": ["overwrite", "append"],
    }
    assert "standard input" in CONNECTION["description"]
    assert "Sockets and Protocol Buffers" in CONNECTION["description"]


CHANNELS = [
    # what the platform sets, the variable that is refused
    ({}, None),
    ({"DATA_CHANNEL_MEDIUM": "STDIO", "DATA_CHANNEL_FORMAT": "JSONL"}, None),
    ({"DATA_CHANNEL_MEDIUM": "stdio", "DATA_CHANNEL_FORMAT": ""}, None),
    ({"DATA_CHANNEL_MEDIUM": "SOCKET", "DATA_CHANNEL_SOCKET_PATHS": "/a.sock"}, "DATA_CHANNEL_MEDIUM is 'SOCKET'"),
    ({"DATA_CHANNEL_MEDIUM": "STDIO", "DATA_CHANNEL_FORMAT": "PROTOBUF"}, "DATA_CHANNEL_FORMAT is 'PROTOBUF'"),
    ({"DATA_CHANNEL_MEDIUM": "GRPC"}, "DATA_CHANNEL_MEDIUM is 'GRPC'"),
]


@pytest.mark.parametrize(("environment", "refused"), CHANNELS)
def test_channels_other_than_lines_on_standard_input_are_refused_by_name(environment, refused):
    if refused is None:
        require_standard_input(environment)
        return
    with pytest.raises(SpecInvalidError, match=refused) as caught:
        require_standard_input(environment)
    assert "connectorIPCOptions" in caught.value.remedy


def test_form_offers_every_region_that_boto3_knows():
    session = boto3.session.Session()
    known = {
        region for partition in ("aws", "aws-cn", "aws-us-gov") for region in session.get_available_regions(
            "s3", partition)
    }  # fmt: skip
    assert known <= set(CONNECTION["properties"]["s3_bucket_region"]["enum"])


def test_every_declared_difference_says_whether_it_hurts_and_what_to_set():
    body = read_table(GUIDE, ["matter", "the documents or the vendor", "here", "does it hurt?", "set"])
    differences = [row for row in body if not row[0].startswith("**")]
    assert len(differences) > 30
    assert [row[0] for row in differences if len(row) != 5 or not all(row)] == []


REFUSED = [
    BASE | {"format": {"format_type": "XML"}},
    BASE | {"format": {"format_type": "CSV", "flattening": "Deep"}},
    BASE | {"format": {"format_type": "Avro", "compression_codec": {"codec": "xz", "compression_level": 10}}},
    {key: value for key, value in BASE.items() if key != "s3_bucket_name"},
]


@pytest.mark.parametrize("configuration", REFUSED)
def test_platform_refuses_what_cannot_be_used(configuration):
    assert not jsonschema.Draft7Validator(CONNECTION).is_valid(configuration)


def test_specification_is_what_the_platform_understands():
    """It follows no references, and its form needs an object with a constant in every option."""
    jsonschema.Draft7Validator.check_schema(CONNECTION)
    text = json.dumps(CONNECTION)
    assert not [word for word in ("$ref", "$defs", "discriminator", "anyOf", '"null"') if word in text]
    form = CONNECTION["properties"]["format"]
    for tag, options in [
        ("format_type", form["oneOf"]),
        ("compression_type", form["oneOf"][0]["properties"]["compression"]["oneOf"]),
        ("codec", form["oneOf"][2]["properties"]["compression_codec"]["oneOf"]),
    ]:
        assert [each["type"] for each in options] == ["object"] * len(options)
        assert all("const" in each["properties"][tag] for each in options)
