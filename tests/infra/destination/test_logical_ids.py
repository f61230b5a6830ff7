"""Logical ids of what holds data, identities or their names: another id would replace or orphan it."""

from typing import Any

import pytest

from infra.destination.logical_ids import make_logical_id
from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import SUPAFLOW, lake

pytestmark = pytest.mark.synth

STATEFUL = {
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::KMS::Key",
    "AWS::IAM::Role",
    "AWS::IAM::User",
    "AWS::IAM::AccessKey",
    "AWS::SecretsManager::Secret",
    "AWS::Glue::Database",
    "AWS::S3Tables::Namespace",
    "AWS::S3Tables::TableBucket",
}


def _stateful(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in template["Resources"].items() if each["Type"] in STATEFUL}


def test_logical_ids_never_change(full: dict[str, Any]) -> None:
    assert {name: each["Type"].split("::", 1)[1] for name, each in _stateful(full).items()} == {
        "Key": "KMS::Key",
        "AccessLogs": "S3::Bucket",
        "AccessLogsPolicy": "S3::BucketPolicy",
        "Bucket": "S3::Bucket",
        "BucketPolicy": "S3::BucketPolicy",
        "CustomS3AutoDeleteObjectsCustomResourceProviderRole3B1BD092": "IAM::Role",
        "JobRole": "IAM::Role",
        "SupaflowConsumerRole": "IAM::Role",
        "Second131b00396ConsumerRole": "IAM::Role",
        "LaptopConsumerRole": "IAM::Role",
        "SnowflakeCatalogConsumerRole": "IAM::Role",
        "SnowflakeComputeConsumerRole": "IAM::Role",
        "VendorUser": "IAM::User",
        "VendorUserAccessKey": "IAM::AccessKey",
        "VendorUserKey": "SecretsManager::Secret",
        "DatabaseSupaflowNycPublic": "Glue::Database",
    }


ACCESS = ("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::AccessKey", "AWS::SecretsManager::Secret")


@pytest.mark.parametrize(
    ("name", "separator", "expected"),
    [
        ("supaflow_nyc_public", "_", "XSupaflowNycPublic"),
        ("supaflow", "-", "XSupaflow"),
        # Capitals alone would make one id of each of these pairs; the ends are what sha256sum says of the name.
        ("a_1", "_", "XA11426674c"),
        ("a1", "_", "XA1"),
        ("a__b", "_", "XAB63e5c1c4"),
        ("a_b", "_", "XAB"),
        ("_a", "_", "XA34fb7160"),
        ("a", "_", "XA"),
    ],
)
def test_logical_id_keeps_names_apart(name: str, separator: str, expected: str) -> None:
    assert make_logical_id("X", name, separator=separator) == expected


def test_logical_id_of_a_long_name_is_short_enough() -> None:
    assert len(make_logical_id("Database", "a" * 255, separator="_")) <= 255


def test_everything_stateful_outlives_a_protected_stack(synthesise: Synthesise) -> None:
    found = synthesise(lake({"trust": [SUPAFLOW], "iam_user": True, "encryption": "SSE-KMS"}), stage="prod")
    resources = [each for each in _stateful(found.template).values() if each["Type"] not in ACCESS]
    kept = {(each["DeletionPolicy"], each["UpdateReplacePolicy"]) for each in resources}
    assert kept == {("RetainExceptOnCreate", "Retain")}
    assert found.stack.termination_protection is True


def test_access_goes_with_its_policies(synthesise: Synthesise) -> None:
    """A role or user is kept neither without its policies nor with those that a change has taken from it."""
    found = synthesise(lake({"trust": [SUPAFLOW], "iam_user": True, "encryption": "SSE-KMS"}), stage="prod")
    policies = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
    each_type = {
        (each["Type"], each.get("DeletionPolicy", "Delete"), each.get("UpdateReplacePolicy", "Delete"))
        for each in found.template["Resources"].values()
        if each["Type"] in (*ACCESS, *policies)
    }
    assert each_type == {(kind, "Delete", "Delete") for kind in (*ACCESS, "AWS::IAM::ManagedPolicy")}


def test_a_dev_stack_goes_and_leaves_only_data(synthesise: Synthesise) -> None:
    found = synthesise(lake({"trust": [SUPAFLOW], "iam_user": True, "encryption": "SSE-KMS"}), stage="dev")
    kept = {each.get("DeletionPolicy", "Delete") for each in _stateful(found.template).values()}
    assert kept == {"Delete"}
    assert found.stack.termination_protection is False
    assert not any(each["Type"].startswith("Custom::") for each in found.template["Resources"].values())


def test_destroy_data_empties_both_buckets(full: dict[str, Any]) -> None:
    emptied = [each for each in full["Resources"].values() if each["Type"] == "Custom::S3AutoDeleteObjects"]
    assert [each["Properties"]["BucketName"] for each in emptied] == [{"Ref": "AccessLogs"}, {"Ref": "Bucket"}]
