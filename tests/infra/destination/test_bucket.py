"""The bucket and the one for its access logs; the emulated S3 knows neither lifecycle nor policies."""

from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import SUPAFLOW, lake, of_type, statements

pytestmark = pytest.mark.synth

CLOSED = {
    "BlockPublicAcls": True,
    "BlockPublicPolicy": True,
    "IgnorePublicAcls": True,
    "RestrictPublicBuckets": True,
}
OWNED = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
ABORT = {
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 30},
    "Id": "abort-incomplete-uploads",
    "Status": "Enabled",
}


def _sse(**given: Any) -> dict[str, Any]:
    return {"ServerSideEncryptionConfiguration": [given]}


def test_bucket_is_private_versioned_and_keeps_staged_uploads_for_a_month(plain: dict[str, Any]) -> None:
    assert of_type(plain, "S3::Bucket")["Bucket"] == {
        "BucketName": "acme-lake",
        "BucketEncryption": _sse(ServerSideEncryptionByDefault={"SSEAlgorithm": "AES256"}),
        "LifecycleConfiguration": {
            "Rules": [
                ABORT,
                {
                    "ExpiredObjectDeleteMarker": True,
                    "Id": "expire-noncurrent-versions",
                    "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
                    "Status": "Enabled",
                },
            ]
        },
        "LoggingConfiguration": {"DestinationBucketName": {"Ref": "AccessLogs"}, "LogFilePrefix": "acme-lake/"},
        "OwnershipControls": OWNED,
        "PublicAccessBlockConfiguration": CLOSED,
        "VersioningConfiguration": {"Status": "Enabled"},
    }


def test_access_logs_are_private_and_expire(plain: dict[str, Any]) -> None:
    assert of_type(plain, "S3::Bucket")["AccessLogs"] == {
        "BucketEncryption": _sse(ServerSideEncryptionByDefault={"SSEAlgorithm": "AES256"}),
        "LifecycleConfiguration": {
            "Rules": [{"ExpirationInDays": 30, "Id": "expire-logs", "Status": "Enabled"}],
        },
        "OwnershipControls": OWNED,
        "PublicAccessBlockConfiguration": CLOSED,
    }


def test_bucket_policy_binds_everybody(plain: dict[str, Any]) -> None:
    arn = {"Fn::GetAtt": ["Bucket", "Arn"]}

    def below(path: str) -> dict[str, Any]:
        return {"Fn::Join": ["", [arn, path]]}

    assert list(statements(plain, "BucketPolicy").values()) == [
        {
            "Sid": "RequireTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [arn, below("/*")],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
        {
            "Sid": "KeepObjectsOfTables",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": below("/data/production/supaflow_nyc_public/flights/*"),
            "Condition": {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
        },
        {
            "Sid": "KeepOutOfControlObjects",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [below("/*/_lakewriter/*"), below("/data/production/_lakewriter/*")],
            "Condition": {"ArnEquals": {"aws:PrincipalArn": [{"Fn::GetAtt": ["SupaflowConsumerRole", "Arn"]}]}},
        },
    ]


def test_everybody_but_loaders_is_kept_out_of_control_objects(full: dict[str, Any]) -> None:
    denied = statements(full, "BucketPolicy")["KeepOutOfControlObjects"]
    assert [arn["Fn::GetAtt"][0] for arn in denied["Condition"]["ArnEquals"]["aws:PrincipalArn"]] == [
        "SupaflowConsumerRole",
        "Second131b00396ConsumerRole",
        "SnowflakeCatalogConsumerRole",
        "SnowflakeComputeConsumerRole",
        "VendorUser",
    ]


def test_only_this_buckets_logs_are_delivered(plain: dict[str, Any]) -> None:
    document = of_type(plain, "S3::BucketPolicy")["AccessLogsPolicy"]["PolicyDocument"]
    tls, delivery = document["Statement"]
    assert tls["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert delivery["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert delivery["Condition"] == {
        "ArnLike": {"aws:SourceArn": {"Fn::GetAtt": ["Bucket", "Arn"]}},
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
    }


def test_versions_are_not_kept_where_the_file_says_so(synthesise: Synthesise) -> None:
    given = {"versioning": False, "abort_incomplete_uploads_days": 45, "log_retention_days": 90}
    found = of_type(synthesise(lake(given)).template, "S3::Bucket")
    longer = {**ABORT, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 45}}
    assert "VersioningConfiguration" not in found["Bucket"]
    assert found["Bucket"]["LifecycleConfiguration"] == {"Rules": [longer]}
    assert found["AccessLogs"]["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 90


def test_versions_of_access_logs_live_as_long_again(synthesise: Synthesise) -> None:
    found = of_type(synthesise(lake({"access_log_versions": True, "log_retention_days": 90})).template, "S3::Bucket")
    assert found["AccessLogs"]["VersioningConfiguration"] == {"Status": "Enabled"}
    assert found["AccessLogs"]["LifecycleConfiguration"]["Rules"] == [
        {
            "ExpirationInDays": 90,
            "Id": "expire-logs",
            "NoncurrentVersionExpiration": {"NoncurrentDays": 90},
            "Status": "Enabled",
        },
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html: in no rule with days.
        {"ExpiredObjectDeleteMarker": True, "Id": "expire-markers", "Status": "Enabled"},
    ]


def test_access_logs_can_be_left_out(synthesise: Synthesise) -> None:
    template = synthesise(lake({"access_logs": False})).template
    assert list(of_type(template, "S3::Bucket")) == ["Bucket"]
    assert "LoggingConfiguration" not in of_type(template, "S3::Bucket")["Bucket"]


def test_bucket_under_a_key_uses_a_bucket_key(full: dict[str, Any]) -> None:
    assert of_type(full, "S3::Bucket")["Bucket"]["BucketEncryption"] == _sse(
        BucketKeyEnabled=True,
        ServerSideEncryptionByDefault={
            "KMSMasterKeyID": {"Fn::GetAtt": ["Key", "Arn"]},
            "SSEAlgorithm": "aws:kms",
        },
    )
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html: no SSE-KMS there.
    assert of_type(full, "S3::Bucket")["AccessLogs"]["BucketEncryption"] == _sse(
        ServerSideEncryptionByDefault={"SSEAlgorithm": "AES256"}
    )


def test_a_writer_without_conditions_is_not_refused(synthesise: Synthesise) -> None:
    template = synthesise(lake(single_writer=True)).template
    assert list(statements(template, "BucketPolicy")) == ["RequireTls"]


TABLES_4 = [{"table": f"t{number}", "read": {"format": "parquet", "path": "s3://raw/t"}} for number in range(4)]
SHARED = (
    "{} may write everywhere at s3://acme-lake/data/production/* but in this file's tables ({}) and the job's records, "
    "and may list that folder with the delimiter '/' only. A pipeline of the vendor's that writes one of these tables "
    "fails with AccessDenied. Give the entry 'tables' or 'paths' of its own, or access: read."
)
FLIGHTS = "data/production/supaflow_nyc_public/flights/*"
NYC = "data/production/supaflow_nyc"
LOADS = {"principal": "arn:aws:iam::111122223333:role/Laptop", "name": "laptop", "external_id": "l-1", "access": "load"}
ICEBERG = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}
WARNED = [
    # the file; the warnings: who has no contract shares the job's prefix
    (lake({"trust": [SUPAFLOW]}), [SHARED.format("'supaflow'", FLIGHTS)]),
    (lake({"trust": [SUPAFLOW], "iam_user": True}), [SHARED.format("'supaflow', 'iam_user'", FLIGHTS)]),
    (
        {**lake({"trust": [SUPAFLOW]}), "tables": TABLES_4},
        [SHARED.format("'supaflow'", f"{NYC}/t0/*, {NYC}/t1/*, {NYC}/t2/* and 1 more")],
    ),
    (lake({"trust": [SUPAFLOW]}, single_writer=True), [SHARED.format("'supaflow'", FLIGHTS)]),
    (lake({"trust": [SUPAFLOW]}, **ICEBERG), [SHARED.format("'supaflow'", FLIGHTS)]),
    # who has one, does not write, or writes as the job does
    (lake({"trust": [{**SUPAFLOW, "paths": ["crm"]}], "iam_user": {"tables": ["supaflow_crm.*"]}}), []),
    (lake({"trust": [{**SUPAFLOW, "access": "read"}, LOADS], "iam_user": {"access": "read"}}), []),
    (lake({"trust": [SUPAFLOW]}, custom_s3_endpoint="https://s3.example.com", bucket_region="nyc3"), []),
]


@pytest.mark.parametrize(("content", "warnings"), WARNED)
def test_parties_without_a_contract_are_told(
    synthesise: Synthesise, content: dict[str, Any], warnings: list[str]
) -> None:
    content["destination"] = {key: value for key, value in content["destination"].items() if value is not None}
    assert [each.partition(" [ack:")[0] for each in synthesise(content).warnings] == warnings


def test_parties_of_an_existing_bucket_are_told_too(synthesise: Synthesise) -> None:
    found = synthesise(lake({"trust": [SUPAFLOW], "existing": {"bucket": True}}))
    assert [SHARED.format("'supaflow'", FLIGHTS) in each for each in found.warnings] == [False, True]
