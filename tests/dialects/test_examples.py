"""The examples of Airbyte's and Hero Pixel's layout."""

from pathlib import Path

import pytest

from lakewriter.dialects.lake_yaml import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["airbyte-s3.yaml", "heropixel-s3.yaml"])
def test_example_is_valid(name):
    spec = load_spec(EXAMPLES / name)
    assert (spec.dialect, [table.id for table in spec.tables]) == (name.removesuffix(".yaml"), ["public.users"])
