"""What is said of mistakes: the whole message of each, and a vendor's file that is given as another."""

import json

import pytest

from lakewriter.dialects.common import problems
from lakewriter.dialects.common.problems import suggest_nearest
from lakewriter.dialects.lake_yaml import LakeFile, load_spec
from lakewriter.errors import LakeError, SpecInvalidError
from tests.dialects.mistakes import MISTAKES, A, E, S


@pytest.mark.parametrize(("text", "old", "new", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistake(tmp_path, text, old, new, said):
    assert old in text
    (tmp_path / "lake.yaml").write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(LakeError) as caught:
        load_spec(tmp_path / "lake.yaml")
    assert list(getattr(caught.value, "problems", ()) or [str(caught.value).removeprefix("SPEC_INVALID: ")]) == said


def test_right_files_are_read(tmp_path):
    for text in (S, A, E):
        (tmp_path / "lake.yaml").write_text(text, "utf-8")
        assert load_spec(tmp_path / "lake.yaml").tables


def test_every_pattern_is_told_in_words():
    """A regular expression is no message."""

    def patterned(schema):
        for name, own in schema.get("properties", {}).items():
            if '"pattern":' in json.dumps(own):
                yield name

    schema = LakeFile.model_json_schema()
    names = {name for part in (schema, *schema["$defs"].values()) for name in patterned(part)}
    assert names == set(problems.FORMS)


NEAREST = [
    # a word, the known ones, what is offered
    ("s3_bucket", ["s3_bucket_name", "s3_bucket_path", "type"], "; did you mean 's3_bucket_name' or 's3_bucket_path'?"),
    ("TYPE", ["type"], "; did you mean 'type'?"),
    ("xyz", ["type"], ""),
    ("type" * 1000, ["type"], ""),
    ("", ["type"], ""),
    ("x", [], ""),
]


def test_keys_that_are_equally_near_are_all_offered():
    assert [suggest_nearest(word, known) for word, known, _ in NEAREST] == [offered for _, _, offered in NEAREST]


CONFIG = {"s3_bucket_name": "b", "s3_bucket_path": "p", "s3_bucket_region": "us-east-1"}
FOREIGN = [
    # a vendor's file that is given as the lake.yaml, what is said
    (CONFIG, "config.json: this is a configuration of Airbyte's S3 destination, expected a lake.yaml. Name it in a "
     "lake.yaml: destination: {type: airbyte-s3, config_file: config.json}."),
    ({"name": "S3", "destinationType": "s3", "configuration": CONFIG}, "config.json: this is what Airbyte's API "
     "answers about a destination, expected a lake.yaml. Name it in a lake.yaml, with the secrets that the API masks "
     "beside it: destination: {type: airbyte-s3, config_file: config.json, access_key_id: ..., secret_access_key: "
     "...}."),
    ({"workspaceId": "w", "connectionConfiguration": CONFIG}, "config.json: this is what Airbyte's API answers about a "
     "destination, expected a lake.yaml. Name it in a lake.yaml, with the secrets that the API masks beside it: "
     "destination: {type: airbyte-s3, config_file: config.json, access_key_id: ..., secret_access_key: ...}."),
    ({"streams": [{"stream": {"name": "a"}}]}, "config.json: this is a configured catalog of Airbyte's, expected a "
     "lake.yaml. Name it in a lake.yaml: source: {messages: ..., catalog: config.json}."),
    ({"streams": [{"name": "a", "json_schema": {}}]}, "config.json: this is the catalog that an Airbyte source "
     "discovers, in which no stream is configured, expected a lake.yaml. Give the configured catalog of the "
     "connection, whose streams have 'stream' and 'sync_mode'."),
    ({"materializations": {"m": {}}}, "config.json: this is a Flow specification of Estuary's, expected a lake.yaml. "
     "Name it in a lake.yaml: destination: {type: estuary-s3-parquet, config_file: config.json}."),
    ({"bucket": "b", "uploadIntervalInSeconds": 5}, "config.json: this is the configuration of an Estuary endpoint, "
     "expected a lake.yaml. Put its keys under 'destination' of a lake.yaml, beside type: estuary-s3-parquet."),
    ({"s3_bucket_name": "b", "bucket_region": "us-east-1"}, "config.json: this is a destination alone, "
     "expected a lake.yaml. Put them under 'destination' of a lake.yaml, with 'type', beside 'pipeline' and 'tables'."),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), FOREIGN, ids=range(len(FOREIGN)))
def test_a_vendors_file_given_as_the_lake_yaml(tmp_path, content, expected):
    (tmp_path / "config.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(tmp_path / "config.json")
    assert str(caught.value) == f"SPEC_INVALID: {expected}"


NAMED = [
    # what lies in the file that a destination names, what is said
    ("airbyte-s3", {"materializations": {}}, "lake.yaml:1: destination.config_file: c.json is a Flow specification of "
     "Estuary's, expected a configuration of Airbyte's S3 destination."),
    ("estuary-s3-parquet", CONFIG, "lake.yaml:1: destination.config_file: c.json is a configuration of Airbyte's S3 "
     "destination, expected a Flow specification of Estuary's."),
    ("estuary-s3-parquet", {"bucket": "b", "awsAccessKeyId": "x"}, "lake.yaml:1: destination.config_file: c.json is "
     "the configuration of an Estuary endpoint, expected a Flow specification of Estuary's."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content", "expected"), NAMED, ids=range(len(NAMED)))
def test_another_file_than_the_destination_takes(tmp_path, kind, content, expected):
    (tmp_path / "c.json").write_text(json.dumps(content), "utf-8")
    lake = {"pipeline": "p", "destination": {"type": kind, "config_file": "c.json"}, "tables": []}
    (tmp_path / "lake.yaml").write_text(json.dumps(lake), "utf-8")
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(tmp_path / "lake.yaml")
    assert caught.value.message == expected
