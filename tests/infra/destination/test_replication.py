"""A replica of the bucket: what S3 is told to copy, and the role that it copies with."""

from typing import Any

import pytest

from lakewriter.deployable.aws_names import check_budget, check_replica
from tests.infra.conftest import SettingsFor
from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import REPLICA, lake, of_type, trust

pytestmark = pytest.mark.synth

EARLIER = "arn:aws:kms:us-east-1:123456789012:key/99999999-2222-3333-4444-555555555555"


def permissions(template: dict[str, Any]) -> dict[str, Any]:
    """The statements of the role's one policy, by their ids."""
    [policy] = [
        each["PolicyDocument"]
        for each in of_type(template, "IAM::ManagedPolicy").values()
        if {"Ref": "ReplicationRole"} in each.get("Roles", [])
    ]
    return {each["Sid"]: each for each in policy["Statement"]}


def test_everything_is_copied_deletions_included(synthesise: Synthesise) -> None:
    bucket = of_type(synthesise(lake({"replication": {"bucket": "acme-lake-west"}})).template, "S3::Bucket")["Bucket"]
    assert bucket["ReplicationConfiguration"] == {
        "Role": {"Fn::GetAtt": ["ReplicationRole", "Arn"]},
        "Rules": [
            {
                "DeleteMarkerReplication": {"Status": "Enabled"},
                "Destination": {"Bucket": "arn:aws:s3:::acme-lake-west"},
                "Filter": {"Prefix": ""},
                "Id": "replicate",
                "Status": "Enabled",
            }
        ],
    }


def test_the_role_reads_the_bucket_and_writes_copies_alone(synthesise: Synthesise) -> None:
    """As https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html lists it."""
    template = synthesise(lake({"replication": {"bucket": "acme-lake-west"}})).template
    assert [(each["Principal"], each["Action"]) for each in trust(template, "ReplicationRole")] == [
        ({"Service": "s3.amazonaws.com"}, "sts:AssumeRole")
    ]
    found = permissions(template)
    assert {sid: each["Action"] for sid, each in found.items()} == {
        "FindReplicated": ["s3:GetReplicationConfiguration", "s3:ListBucket"],
        "ReadReplicated": ["s3:GetObjectVersionAcl", "s3:GetObjectVersionForReplication", "s3:GetObjectVersionTagging"],
        "WriteCopies": ["s3:ReplicateDelete", "s3:ReplicateObject", "s3:ReplicateTags"],
    }
    assert {sid: each["Resource"] for sid, each in found.items()} == {
        "FindReplicated": "arn:aws:s3:::acme-lake",
        "ReadReplicated": "arn:aws:s3:::acme-lake/*",
        "WriteCopies": "arn:aws:s3:::acme-lake-west/*",
    }


def test_a_replica_of_another_account_under_keys(synthesise: Synthesise) -> None:
    given = {"encryption": "SSE-KMS", "replication": REPLICA, "earlier_kms_key_arns": [EARLIER]}
    made = synthesise(lake(given))
    [rule] = of_type(made.template, "S3::Bucket")["Bucket"]["ReplicationConfiguration"]["Rules"]
    in_time = {"Status": "Enabled", "Time": {"Minutes": 15}}
    assert rule["SourceSelectionCriteria"] == {"SseKmsEncryptedObjects": {"Status": "Enabled"}}
    assert {key: value for key, value in rule["Destination"].items() if key != "Bucket"} == {
        "AccessControlTranslation": {"Owner": "Destination"},
        "Account": "999999999999",
        "EncryptionConfiguration": {"ReplicaKmsKeyID": REPLICA["kms_key_arn"]},
        "Metrics": {"EventThreshold": {"Minutes": 15}, "Status": "Enabled"},
        "ReplicationTime": in_time,
    }
    found = permissions(made.template)
    assert "s3:ObjectOwnerOverrideToBucketOwner" in found["WriteCopies"]["Action"]
    assert found["DecryptReplicated"]["Resource"] == [EARLIER, {"Fn::GetAtt": ["Key", "Arn"]}]
    via = {"StringEquals": {"kms:ViaService": "s3.eu-west-1.amazonaws.com"}}
    assert (found["EncryptCopies"]["Resource"], found["EncryptCopies"]["Condition"]) == (REPLICA["kms_key_arn"], via)
    [warning] = [each for each in made.warnings if "acme-lake-west" in each]
    assert "Have its owner add to its policy" in warning
    assert '"Principal": {"AWS": "<ReplicationRole.Arn>"}' in warning


def test_tables_that_keep_versions_of_their_own_get_those_of_s3(synthesise: Synthesise) -> None:
    """S3 copies buckets with versions alone."""
    replicated = {"replication": {"bucket": "acme-lake-west"}}
    for deployment, versions in (({}, None), (replicated, {"Status": "Enabled"})):
        file = lake(deployment, table_format="ICEBERG")
        del file["destination"]["update_aws_glue_catalog"]
        template = synthesise(file).template
        assert of_type(template, "S3::Bucket")["Bucket"].get("VersioningConfiguration") == versions


HERE = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"replication": {"bucket": "acme-lake"}},
        {},
        "deployment.replication.bucket: 'acme-lake' is the destination's bucket itself; expected one in another "
        "region.",
    ),
    (
        {"replication": {"bucket": "acme-lake-west", "kms_key_arn": HERE}, "encryption": "SSE-KMS"},
        {},
        f"deployment.replication.kms_key_arn: {HERE!r} is a key of 'us-east-1', where the bucket is; expected one of "
        "the replica's region, which works when this one does not.",
    ),
    (
        {"replication": {"bucket": "acme-lake-west"}},
        {"custom_s3_endpoint": "https://s3.example.com", "access_key_id": "a", "secret_access_key": "b"},
        "deployment.replication: the store at https://s3.example.com has no S3 Replication of AWS; leave it out.",
    ),
]


@pytest.mark.parametrize(("deployment", "destination", "problem"), REFUSED)
def test_a_replica_that_is_none(
    settings_for: SettingsFor, deployment: dict[str, Any], destination: dict[str, Any], problem: str
) -> None:
    assert list(check_replica(settings_for(lake(deployment, **destination)))) == [problem]


def test_a_budget_where_cloudformation_makes_none(settings_for: SettingsFor) -> None:
    given = {"alarms": {"email": "data@example.com", "monthly_budget_usd": 200}}
    assert list(check_budget(settings_for(lake(given)))) == []
    assert list(check_budget(settings_for(lake(given, bucket_region="eu-north-1")))) == [
        "deployment.alarms.monthly_budget_usd: CloudFormation makes no budgets in 'eu-north-1'. Leave it out, and make "
        "one by 'aws budgets create-budget'."
    ]
