"""The stack of Estuary's destination: the vendor takes a key, and its form asks for it under these labels."""

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.policy.estuary import content

pytestmark = pytest.mark.synth

KEYED = {"deployment": {"iam_user": {"paths": ["recentchanges"]}}}


def test_form_with_a_key(synthesise: Synthesise) -> None:
    template = synthesise(content(top=KEYED)).template
    secret = template["Outputs"]["AccessKeySecretARN"]["Value"]
    assert {output["Description"]: output["Value"] for output in template["Outputs"].values()} == {
        "Access Key ID": {"Fn::Join": ["", ["In Secrets Manager: access_key_id of ", secret]]},
        "Secret Access Key": {"Fn::Join": ["", ["In Secrets Manager: secret_access_key of ", secret]]},
        "Bucket": "acme-lake",
        "Region": "us-east-1",
        "Upload Interval in Seconds": "300",
        "Access Key Secret ARN": secret,
        "Job Role ARN": {"Fn::GetAtt": ["JobRole", "Arn"]},
    }


def test_user_writes_its_own_bindings(synthesise: Synthesise) -> None:
    template = synthesise(content(top=KEYED)).template
    policies = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::IAM::ManagedPolicy"
    ]
    (own,) = [each["PolicyDocument"]["Statement"] for each in policies if each.get("Users")]
    by_sid = {each["Sid"]: each for each in own}
    assert by_sid["WriteObjects"]["Resource"] == "arn:aws:s3:::acme-lake/recentchanges/*"
    assert by_sid["KeepOutOfTables"]["Resource"] == [
        "arn:aws:s3:::acme-lake/changes/*",
        "arn:aws:s3:::acme-lake/shop/orders/*",
    ]
