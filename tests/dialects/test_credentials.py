"""Role, keys, region, endpoint and external id: one rule for every destination, told in its own keys."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.dialects.registry import BY_TYPE
from lakewriter.errors import LakeError, SpecInvalidError
from tests.dialects.test_places import AIRBYTE, BINDING, ESTUARY, ICEBERG, PLAIN, SUPAFLOW

LAKEWRITER = Path(__file__).parents[2] / "job" / "lakewriter"
HERO_PIXEL = AIRBYTE | {"type": "heropixel-s3"}
OF_ESTUARY: dict[str, Any] = {"tables": [BINDING]}
ROLE = "arn:aws:iam::123456789012:role/Lake"

DESTINATIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    # the destination, what else the file has, and what the destination calls its parts
    "supaflow-s3": (SUPAFLOW | {"type": "supaflow-s3"}, PLAIN, {}),
    "supaflow-s3-data-lake": (SUPAFLOW, PLAIN, {}),
    "supaflow-s3-data-lake, ICEBERG": (ICEBERG, PLAIN, {}),
    "airbyte-s3": (AIRBYTE, PLAIN, {"role": "role_arn", "region": "s3_bucket_region", "endpoint": "s3_endpoint"}),
    "heropixel-s3": (HERO_PIXEL, PLAIN, {"role": "role_arn", "region": "s3_bucket_region", "endpoint": "s3_endpoint"}),
    "estuary-s3-parquet": (
        ESTUARY, OF_ESTUARY,
        {"region": "region", "endpoint": "advanced.endpoint", "key": "awsAccessKeyId", "secret": "awsSecretAccessKey"},
    ),
    "lakewriter-s3": (
        {"type": "lakewriter-s3", "location": "s3://my-bucket/data", "region": "us-east-1"}, PLAIN,
        {"role": "role_arn", "region": "region", "endpoint": "endpoint"},
    ),
}  # fmt: skip
SUPAFLOWS = {
    "role": "iam_role_arn", "external_id": "external_id", "region": "bucket_region", "endpoint": "custom_s3_endpoint",
    "key": "access_key_id", "secret": "secret_access_key",
}  # fmt: skip

ID = "2 to 1224 letters, digits and +=,.@:/-_ without spaces around them"
REFUSED: list[tuple[dict[str, str], str]] = [
    # what is given, and what is said after the place of the first of them
    # https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html has the external id's pattern and lengths.
    ({"external_id": "a b!", "role": ROLE}, f"(not shown): expected {ID}."),
    ({"external_id": "x", "role": ROLE}, f"(not shown): expected {ID}."),
    ({"external_id": "x" * 1225, "role": ROLE}, f"(not shown): expected {ID}."),
    ({"external_id": "x1"}, "'{external_id}' needs '{role}' beside it."),
    ({"external_id": "x1", "role": ""}, "'{external_id}' needs '{role}' beside it."),
    ({"role": "arn:aws:iam::12:role/Lake"}, "'arn:aws:iam::12:role/Lake': expected a role's ARN such as "
     "'arn:aws:iam::123456789012:role/LakeWriter'."),
    ({"key": "AKIA"}, "'{key}' and '{secret}' are given both or not at all."),
    ({"secret": "${env:S}"}, "'{key}' and '{secret}' are given both or not at all."),
    ({"region": "Virginia"}, "'Virginia': expected an AWS region such as 'us-east-1'."),
    ({"region": "${env:LAKE_REGION}"}, "'${{env:LAKE_REGION}}': this key takes no reference, since its value is needed "
     "before a job runs; write the value."),
    ({"region": "nyc 3", "endpoint": "https://store.example"}, "'nyc 3': expected the store's name for its region, "
     "such as 'us-east-1' or 'nyc3'."),
    ({"endpoint": "http://store.example"}, "'http://store.example' has no TLS and is not on this machine."),
]  # fmt: skip
TAKEN: list[dict[str, str]] = [
    {"external_id": "x1", "role": ROLE},
    {"external_id": "x" * 1224, "role": ROLE},
    {"external_id": "Az9_+=,.@:/-", "role": ROLE},
    {"external_id": "${ssm:/lake/id}", "role": ROLE},
    {"role": "arn:aws-us-gov:iam::123456789012:role/path/Lake"},
    {"key": "AKIA", "secret": "${env:S}"},
    {"region": "us-gov-west-1"},
    {"region": "nyc3", "endpoint": "https://store.example"},
    {"endpoint": "http://127.0.0.1:9000"},
    {"endpoint": "http://store.example", "allow_insecure": "yes"},
]


def lake(folder: Path, name: str, given: dict[str, str]) -> Path:
    destination, top, keys = copy.deepcopy(DESTINATIONS[name])
    for part, value in given.items():
        *above, last = (SUPAFLOWS | keys).get(part, part).split(".")
        at = destination
        for step in above:
            at = at.setdefault(step, {})
        at[last] = True if part == "allow_insecure" else value
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination, **top}), "utf-8")
    return path


@pytest.mark.parametrize(("given", "said"), REFUSED)
@pytest.mark.parametrize("name", DESTINATIONS)
def test_refused_in_every_destination(tmp_path, name, given, said):
    keys = SUPAFLOWS | DESTINATIONS[name][2]
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, name, given))
    key = keys[next(iter(given))]
    assert f"destination.{key}: {said.format(**keys)}" in str(caught.value)


@pytest.mark.parametrize("given", TAKEN)
@pytest.mark.parametrize("name", DESTINATIONS)
def test_taken_by_every_destination(tmp_path, name, given):
    access = load_spec(lake(tmp_path, name, given)).access
    found = {
        "external_id": access.external_id and access.external_id.text,
        "role": access.role_arn,
        "key": access.access_key_id and access.access_key_id.text,
        "secret": access.secret_access_key and access.secret_access_key.text,
        "region": access.region,
        "endpoint": access.endpoint,
    }
    expected = dict.fromkeys(found) | {"region": "us-east-1"} | given
    expected.pop("allow_insecure", None)
    assert found == expected


@pytest.mark.parametrize("name", DESTINATIONS)
def test_literal_secret_is_told_of_once(tmp_path, name):
    spec = load_spec(lake(tmp_path, name, {"key": "AKIA", "secret": "hush"}))
    secret = (SUPAFLOWS | DESTINATIONS[name][2])["secret"]
    (told,) = (warning for warning in spec.warnings if secret in warning)
    line = next(
        n for n, text in enumerate((tmp_path / "lake.yaml").read_text("utf-8").splitlines(), 1) if "hush" in text
    )
    end = f"{secret} is written out; a reference such as ${{env:NAME}} keeps it out of the file."
    assert told == f"lake.yaml:{line}: destination.{end}"


def test_every_destination_is_in_the_tables():
    assert {name.partition(",")[0] for name in DESTINATIONS} == set(BY_TYPE)


VENDORS = ("airbyte", "estuary", "supaflow", "heropixel", "hero pixel")


@pytest.mark.parametrize(
    "path",
    [LAKEWRITER / "dialects" / "lake_yaml.py", *sorted((LAKEWRITER / "dialects" / "common").glob("*.py"))],
    ids=lambda path: path.name,
)
def test_shared_modules_name_no_vendor(path):
    text = path.read_text("utf-8").lower()
    assert [vendor for vendor in VENDORS if vendor in text] == []


def test_a_destination_file_is_recognised_last(tmp_path):
    (tmp_path / "lake.yaml").write_text("s3_bucket_name: b\nbucket_region: us-east-1\n", "utf-8")
    with pytest.raises(SpecInvalidError, match="this is a destination alone, expected a lake"):
        load_spec(tmp_path / "lake.yaml")
