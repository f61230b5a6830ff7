"""The stack of Estuary's destination: the vendor takes a key, and its form asks for it under these labels."""

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.policy.estuary import content

pytestmark = pytest.mark.synth


def test_form_with_a_key(synthesise: Synthesise) -> None:
    template = synthesise(content(top={"deployment": {"iam_user": True}})).template
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


def test_user_writes_under_the_bindings_paths(synthesise: Synthesise) -> None:
    template = synthesise(content(top={"deployment": {"iam_user": True}})).template
    policies = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::IAM::ManagedPolicy"
    ]
    (own,) = [each["PolicyDocument"]["Statement"] for each in policies if each.get("Users")]
    written = next(each["Resource"] for each in own if each["Sid"] == "WriteObjects")
    assert written == ["arn:aws:s3:::acme-lake/changes/*", "arn:aws:s3:::acme-lake/shop/orders/*"]
