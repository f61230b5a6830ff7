"""Destinations of Airbyte's form: its labels, a role or a key in it, and what the bucket and the roles allow.

The labels are those of docs.airbyte.com/integrations/destinations/s3, in its order.
"""

from typing import Any

import pytest

from tests.infra.destination.airbyte import file
from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import attached, of_type, statements, trust

pytestmark = pytest.mark.synth

WORKSPACE = "9c1d7f5e-0b5b-4a67-8b11-0d8a2f3c4d5e"
BOTH = {
    "S3 Bucket Name": "acme-lake",
    "S3 Bucket Path": "data/${NAMESPACE}",
    "S3 Bucket Region": "us-east-1",
    "S3 Path Format": "${STREAM_NAME}/${YEAR}_",
    "S3 Filename pattern": "{part_number}{format_extension}",
    "Job Role ARN": {"Fn::GetAtt": ["JobRole", "Arn"]},
}


@pytest.fixture(scope="module", params=["airbyte", "heropixel"])
def trusting(request: pytest.FixtureRequest, synthesise: Synthesise) -> dict[str, Any]:
    """A template of a file that trusts the vendor's cloud."""
    vendor = {"vendor": f"{request.param}-cloud", "external_id": WORKSPACE}
    template = synthesise(file(request.param, trust=[vendor])).template
    return template | {"role": f"{request.param.capitalize()}CloudConsumerRole"}


def _labelled(template: dict[str, Any]) -> dict[str, Any]:
    return {output["Description"]: output["Value"] for output in template["Outputs"].values()}


def test_form_with_a_role(trusting: dict[str, Any]) -> None:
    outputs = _labelled(trusting)
    assert outputs == BOTH | {"Role ARN": {"Fn::GetAtt": [trusting["role"], "Arn"]}}
    assert list(outputs)[:2] == ["Role ARN", "S3 Bucket Name"]


def test_form_with_a_key(synthesise: Synthesise) -> None:
    template = synthesise(file("airbyte", iam_user=True)).template
    secret = template["Outputs"]["AccessKeySecretARN"]["Value"]
    where = {label: value for label, value in _labelled(template).items() if label not in BOTH}
    assert where == {
        "Access Key Id": {"Fn::Join": ["", ["In Secrets Manager: access_key_id of ", secret]]},
        "Secret Access Key": {"Fn::Join": ["", ["In Secrets Manager: secret_access_key of ", secret]]},
        "Access Key Secret ARN": secret,
    }


def test_vendors_user_is_trusted_with_the_workspace(trusting: dict[str, Any]) -> None:
    (statement,) = trust(trusting, trusting["role"])
    assert statement["Principal"] == {"AWS": "arn:aws:iam::094410056844:user/delegated_access_user"}
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": WORKSPACE}}


def test_nothing_is_made_in_a_catalog(trusting: dict[str, Any]) -> None:
    assert of_type(trusting, "Glue::Database") == {}
    assert attached(trusting)["JobRole"] == {
        "S3": ["ListUnderPrefix", "InspectBucket", "WriteObjects"],
        "Sources": ["ListSource1", "ReadSource1"],
    }


def test_bucket_keeps_what_is_appended(trusting: dict[str, Any]) -> None:
    (name,) = [key for key in of_type(trusting, "S3::BucketPolicy") if "Log" not in key]
    kept = statements(trusting, name)["KeepObjectsOfTables"]["Resource"]
    # "plans" is overwritten, and "visits" has no namespace
    assert [each["Fn::Join"][1][1] for each in kept] == ["/data/crm/users/*", "/data/visits/*"]
