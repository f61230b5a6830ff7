"""The specification that Airbyte's platform gets: it takes every configuration that the connector takes."""

import json
from pathlib import Path

import boto3
import jsonschema
import pytest

from lakewriter.dialects.airbyte.connector import make_connector_specification, read_connection
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.stream import TextEncoding
from tests.dialects.airbyte_lakes import BASE, TABLE, lake
from tests.dialects.test_airbyte_formats import FORMATS

EXAMPLE = Path(__file__).parents[2] / "examples/airbyte/destination.json"
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


def test_form_has_labels_in_the_documents_order():
    """The destination's own fields are labelled and ordered as the set-up page lists them."""
    assert list(list_fields(CONNECTION)) == LABELS
    examples = {key: own["examples"][0] for key, own in CONNECTION["properties"].items() if "examples" in own}
    assert examples == {
        "access_key_id": "A012345678910EXAMPLE",
        "secret_access_key": "a012345678910ABCDEFGH/AbCdEfGhEXAMPLEKEY",
        "role_arn": "arn:aws:iam::123456789012:role/LakeWriter",
        "s3_bucket_name": "airbyte_sync",
        "s3_bucket_path": "data_sync/test",
        "s3_bucket_region": "us-east-1",
        "s3_path_format": "${NAMESPACE}/${STREAM_NAME}/${YEAR}_${MONTH}_${DAY}_${EPOCH}_",
        "s3_endpoint": "http://localhost:9000",
        "file_name_pattern": "{date}",
        "format": "CSV",
    }


def test_form_offers_every_region_that_boto3_knows():
    session = boto3.session.Session()
    known = {
        region for partition in ("aws", "aws-cn", "aws-us-gov") for region in session.get_available_regions(
            "s3", partition)
    }  # fmt: skip
    assert known <= set(CONNECTION["properties"]["s3_bucket_region"]["enum"])


GUIDE = Path(__file__).parents[2] / "docs/guide-airbyte.md"


def test_every_declared_difference_says_whether_it_hurts_and_what_to_set():
    table = GUIDE.read_text("utf-8").partition("## Differences")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    head, _, *body = rows
    assert head == ["matter", "the documents or the vendor", "here", "does it hurt?", "set"]
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
