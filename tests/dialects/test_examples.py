"""The examples of Airbyte's and Hero Pixel's layout."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from lakewriter.dialects.lake_yaml import LakeFile, load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["airbyte-s3.yaml", "heropixel-s3.yaml"])
def test_example_is_valid(name):
    spec = load_spec(EXAMPLES / name)
    assert (spec.dialect, [table.id for table in spec.tables]) == (name.removesuffix(".yaml"), ["public.users"])


@pytest.mark.parametrize("name", ["airbyte-s3.yaml", "heropixel-s3.yaml"])
def test_example_is_valid_for_editors(name):
    content = yaml.safe_load((EXAMPLES / name).read_text("utf-8"))
    jsonschema.validate(content, LakeFile.model_json_schema())
