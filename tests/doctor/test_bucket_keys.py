"""The keys of the buckets that a deployed job reads: its artifacts' and its sources'."""

from typing import Any

import pytest

from lakewriter.spec.deployment import Deployment
from lakewriter.spec.table_spec import Read
from tests.doctor.pipeline import checked, spec
from tests.support.server import StrictAws

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
OTHER = KEY.replace("1111-2222", "9999-2222")
ARTIFACTS = {"artifact_bucket": "acme-artifacts"}
SOURCE = {"reads": ["s3://acme-landing/orders"]}
BOOTSTRAP = {"account": "123456789012"}
JAR = "s3://acme-jars/drivers/postgresql.jar"
CASES: list[tuple[str, dict[str, Any], str | None, str, str]] = [
    # bucket, deployment, the key of its default encryption, status, a part of message and remedy
    ("acme-artifacts", ARTIFACTS, None, "ok", "a key of AWS"),
    ("acme-artifacts", ARTIFACTS, "alias/aws/s3", "ok", "a key of AWS"),
    ("acme-artifacts", ARTIFACTS, f"{KEY.rpartition(':')[0]}:alias/aws/s3", "ok", "a key of AWS"),
    ("acme-artifacts", ARTIFACTS | {"artifact_kms_key_arn": KEY}, KEY, "ok", KEY),
    ("acme-artifacts", ARTIFACTS | {"artifact_kms_key_arn": KEY}, KEY.rpartition("/")[2], "ok", "the job may use"),
    ("acme-artifacts", ARTIFACTS, KEY, "warning", "deployment.artifact_kms_key_arn has no key of it"),
    (
        "acme-artifacts",
        ARTIFACTS | {"artifact_kms_key_arn": OTHER},
        KEY,
        "warning",
        f"artifact_kms_key_arn has {OTHER}",
    ),
    (
        "cdk-hnb659fds-assets-123456789012-us-east-1",
        BOOTSTRAP,
        KEY,
        "warning",
        "Set deployment.artifact_kms_key_arn to",
    ),
    ("acme-jars", {"jars": [JAR]}, KEY, "warning", "kms_key_arn of deployment.source_buckets has no key of it"),
    ("acme-landing", SOURCE, KEY, "warning", "kms_key_arn of deployment.source_buckets has no key of it"),
    ("acme-landing", SOURCE | {"source_buckets": [{"bucket": "acme-landing", "kms_key_arn": KEY}]}, KEY, "ok", KEY),
]


@pytest.mark.parametrize(("name", "given", "key", "status", "said"), CASES)
def test_key_of_a_bucket_that_is_read(
    aws: StrictAws, bucket: str, name: str, given: dict[str, Any], key: str | None, status: str, said: str
) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=name)
    if key:
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        rules = [{"ApplyServerSideEncryptionByDefault": default}]
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})
    found = checked(spec(), deployment=Deployment.model_validate(given))[f"key of {name}"]
    assert (found.status, said in f"{found.message} {found.remedy}") == (status, True), found


def test_key_that_may_not_be_read(aws: StrictAws, bucket: str) -> None:
    aws.client("s3").create_bucket(Bucket="acme-artifacts")
    aws.deny("s3:GetEncryptionConfiguration")
    found = checked(spec(), deployment=Deployment.model_validate(ARTIFACTS))["key of acme-artifacts"]
    assert (found.status, "s3:GetEncryptionConfiguration" in found.message) == ("skipped", True)


JARS = [
    # the object that is there, what is denied; status and code
    ("drivers/postgresql.jar", None, "ok", None),
    ("drivers/mysql.jar", None, "failed", "SPEC_INVALID"),
    ("drivers/postgresql.jar.old", None, "failed", "SPEC_INVALID"),
    ("drivers/postgresql.jar", "s3:ListBucket", "skipped", None),
]


@pytest.mark.parametrize(("key", "denied", "status", "code"), JARS)
@pytest.mark.parametrize("given", [{"jars": [JAR]}, {"spark": {"conf": {"spark.jars": f"{JAR} , local:///a.jar"}}}])
def test_jar_that_spark_is_given(
    aws: StrictAws, bucket: str, key: str, denied: str | None, status: str, code: str | None, given: dict[str, Any]
) -> None:
    """Without its jar Spark does not start."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="acme-jars")
    s3.put_object(Bucket="acme-jars", Key=key, Body=b"PK")
    if denied:
        aws.deny(denied)
    found = checked(spec(), deployment=Deployment.model_validate(given))[f"jar {JAR}"]
    assert (found.status, found.code) == (status, code), found


def test_files_that_are_not_deployed_have_no_such_probe(aws: StrictAws, bucket: str) -> None:
    wanted = spec(read=Read(format="csv", path="s3://acme-landing/a.csv"))
    assert [name for name in checked(wanted, deployment=Deployment()) if name.startswith("key of")] == []


ALIAS = "arn:aws:kms:us-east-1:123456789012:alias/aws/glue"
SERVICE_ROLE = {"CatalogEncryptionServiceRole": "arn:aws:iam::123456789012:role/Glue"}
CATALOGS: list[tuple[dict[str, str] | None, str | None, str, str]] = [
    # how metadata is encrypted, the key that the file gives; status, a part of message and remedy
    (None, None, "ok", "no key of yours"),
    ({"CatalogEncryptionMode": "DISABLED"}, KEY, "ok", "no key of yours"),
    ({"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": "alias/aws/glue"}, None, "ok", "alias/aws/glue"),
    ({"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": ALIAS}, None, "ok", "alias/aws/glue"),
    ({"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": KEY}, KEY, "ok", KEY),
    ({"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": KEY.rpartition("/")[2]}, KEY, "ok", "may use"),
    (
        {"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": KEY},
        None,
        "warning",
        "Set deployment.catalog_kms_key_arn",
    ),
    ({"CatalogEncryptionMode": "SSE-KMS", "SseAwsKmsKeyId": KEY}, OTHER, "warning", f"has {OTHER}"),
    (
        {"CatalogEncryptionMode": "SSE-KMS-WITH-SERVICE-ROLE", "SseAwsKmsKeyId": KEY, **SERVICE_ROLE},
        None,
        "ok",
        "no key",
    ),
]


@pytest.mark.parametrize(("at_rest", "given", "status", "said"), CATALOGS)
def test_key_of_the_data_catalog(
    aws: StrictAws, bucket: str, at_rest: dict[str, str] | None, given: str | None, status: str, said: str
) -> None:
    if at_rest:
        settings = {"EncryptionAtRest": at_rest}
        aws.client("glue").put_data_catalog_encryption_settings(DataCatalogEncryptionSettings=settings)
    deployment = Deployment.model_validate({"account": "123456789012", "catalog_kms_key_arn": given})
    found = checked(spec(glue=True), deployment=deployment)["key of the Data Catalog"]
    assert (found.status, said in f"{found.message} {found.remedy}") == (status, True), found


def test_key_of_a_catalog_that_may_not_be_looked_at(aws: StrictAws, bucket: str) -> None:
    aws.deny("glue:GetDataCatalogEncryptionSettings")
    deployment = Deployment.model_validate({"account": "123456789012"})
    found = checked(spec(glue=True), deployment=deployment)["key of the Data Catalog"]
    assert (found.status, "glue:GetDataCatalogEncryptionSettings" in found.message) == ("skipped", True)
    assert "key of the Data Catalog" not in checked(spec(), deployment=deployment)
