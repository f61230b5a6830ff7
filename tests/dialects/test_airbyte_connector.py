"""The specification that Airbyte's platform gets: it takes every configuration that the connector takes."""

import json
from pathlib import Path

import jsonschema
import pytest

from lakewriter.dialects.airbyte.connector import make_connector_specification, read_connection
from tests.dialects.airbyte_lakes import BASE
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
