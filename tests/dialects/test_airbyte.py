"""Airbyte's and Hero Pixel's configuration: the vendor's file, access, and what is refused."""

import pytest

from lakewriter.dialects.lake_yaml import load, load_spec
from lakewriter.errors import TlsRequiredError
from tests.dialects.airbyte_lakes import from_vendor, lake, problems
from tests.support.narrow import need

PROBLEMS = [
    # what is laid over the base, its problem
    ({"s3_bucket_region": None}, "destination.s3_bucket_region: is required."),
    ({"format": None}, "destination.format: is required."),
    ({"s3_bucket_nam": "x"}, "destination.s3_bucket_nam: unknown key, with value 'x'; did you mean 's3_bucket_name'?"),
    ({"purge_first": True}, "destination.purge_first: unknown key, with value true; known keys: access_key_id, "
     "allow_insecure, external_id, file_name_pattern, format, record_undeclared, role_arn, role_wait_seconds, "
     "s3_bucket_name, s3_bucket_path, s3_bucket_region, s3_endpoint, s3_path_format, secret_access_key, "
     "single_writer, type, upload_parallelism."),
]  # fmt: skip


@pytest.mark.parametrize(("over", "expected"), PROBLEMS)
def test_problem(tmp_path, over, expected):
    assert problems(lake(tmp_path, over)) == [expected]


def test_vendor_file_unchanged(tmp_path):
    config = {
        "access_key_id": "",
        "role_arn": "",
        "s3_endpoint": "",
        "s3_bucket_region": "eu-north-9",
        "future": 1,
        "format": {"format_type": "JSONL", "schema": "x", "compression": {"compression_type": "GZIP", "level": 9}},
    }
    found = load(from_vendor(tmp_path, config))
    assert (found.spec.access.region, found.spec.access.role_arn) == ("eu-north-9", None)
    unknown = ("future", "format.schema", "format.compression.level")
    assert found.spec.warnings == tuple(f"s3.json:1: {name} is not known here and has no effect." for name in unknown)
    assert "config_file" not in found.data["destination"]


def test_endpoint_without_tls(tmp_path):
    with pytest.raises(TlsRequiredError):
        load_spec(lake(tmp_path, {"s3_endpoint": "http://minio.example.com"}))
    found = load_spec(lake(tmp_path, {"s3_endpoint": "http://localhost:9000", "s3_bucket_region": ""}))
    assert found.access.region == "us-east-1"


def test_external_id_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ASSUME_ROLE_EXTERNAL_ID", "abc")
    spec = load_spec(lake(tmp_path, {"role_arn": "arn:aws:iam::123456789012:role/L"}))
    assert repr(spec.access.external_id) == "SecretText(${env:AWS_ASSUME_ROLE_EXTERNAL_ID})"


ROLE, KEYS = {"role_arn": "arn:aws:iam::123456789012:role/L"}, {"access_key_id": "A", "secret_access_key": "${env:S}"}
CREDENTIALS = [
    # what is given, role, key and external id of the access; the last external id is the environment's
    ({}, (None, None, None), False),
    (KEYS, (None, "A", None), False),
    (ROLE | {"external_id": "id-1"}, (ROLE["role_arn"], None, "id-1"), False),
    (ROLE, (ROLE["role_arn"], None, "${env:AWS_ASSUME_ROLE_EXTERNAL_ID}"), False),
    (ROLE | KEYS, (None, "A", None), True),
    (ROLE | KEYS | {"external_id": "id-1"}, (None, "A", None), True),
]


@pytest.mark.parametrize("kind", ["airbyte-s3", "heropixel-s3"])
@pytest.mark.parametrize(("given", "expected", "warned"), CREDENTIALS)
def test_role_counts_without_keys_only(tmp_path, monkeypatch, kind, given, expected, warned):
    """Both documents: only where no key is provided, the role is assumed, or what the machine has is used."""
    monkeypatch.setenv("AWS_ASSUME_ROLE_EXTERNAL_ID", "workspace-1")
    spec = load_spec(lake(tmp_path, given, kind=kind))
    access = spec.access
    found = tuple(each and each.text for each in (access.access_key_id, access.external_id))
    assert (access.role_arn, *found) == expected
    assert [warning for warning in spec.warnings if "role_arn" in warning] == (
        ["role_arn has no effect beside access_key_id, as the vendor's document has it; leave the keys out to assume "
         "the role with the credentials of the load."] if warned else []
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["airbyte-s3", "heropixel-s3"])
def test_neither_keys_nor_a_role_are_the_jobs_own(tmp_path, monkeypatch, kind):
    """ "If you are using an Instance Profile, you may omit" keys and role: the process' own credentials sign."""
    monkeypatch.delenv("AWS_ASSUME_ROLE_EXTERNAL_ID", raising=False)
    access = load_spec(lake(tmp_path, {}, kind=kind)).access
    assert (access.role_arn, access.access_key_id, access.external_id, access.explicit) == (None, None, None, False)


def test_hero_pixel(tmp_path):
    spec = load_spec(lake(tmp_path, {"purge_first": True}, kind="heropixel-s3"))
    assert need(spec.envelope).names == ("_airbyte_ab_id", "_airbyte_emitted_at", "_airbyte_data")
    assert spec.purge_first
