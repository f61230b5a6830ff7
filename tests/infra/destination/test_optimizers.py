"""The role of Glue's optimizers: made under the name that the file gives it, where the stack makes roles at all."""

from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import DESTINATION, attached, lake, of_type, statements

pytestmark = pytest.mark.synth


def make_maintained(role: str, deployment: dict[str, Any] | None = None, **destination: Any) -> dict[str, Any]:
    kept = {key: value for key, value in DESTINATION.items() if key != "update_aws_glue_catalog"}
    content = lake(deployment) | {"maintenance": {"compact": True, "optimizer_role": role}}
    return content | {"destination": kept | {"table_format": "ICEBERG"} | destination}


NAMES = [
    # optimizer_role, the role's name and path
    ("nyc-optimizers", "nyc-optimizers", "/"),
    ("data/lake/nyc", "nyc", "/data/lake/"),
]


@pytest.mark.parametrize(("role", "name", "path"), NAMES)
def test_the_role_has_the_name_of_the_file(synthesise: Synthesise, role: str, name: str, path: str) -> None:
    template = synthesise(make_maintained(role, {"role_path": "/lake/"})).template
    made = of_type(template, "IAM::Role")["OptimizerRole"]
    assert (made["RoleName"], made["Path"]) == (name, path)
    assert made["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "glue.amazonaws.com"}
    assert attached(template)["OptimizerRole"] == {
        "S3": ["ListUnderPrefix", "InspectBucket", "WriteObjects", "KeepOutOfControlObjects"],
        "Glue": ["MaintainTables", "WriteOptimizerLogs"],
    }
    assert template["Outputs"]["OptimizerRoleARN"]["Value"] == {"Fn::GetAtt": ["OptimizerRole", "Arn"]}
    kept_out = statements(template, "BucketPolicy")["KeepOutOfControlObjects"]["Condition"]
    assert kept_out == {"ArnEquals": {"aws:PrincipalArn": [{"Fn::GetAtt": ["OptimizerRole", "Arn"]}]}}


def test_the_job_passes_it_and_no_other(synthesise: Synthesise) -> None:
    template = synthesise(make_maintained("data/nyc")).template
    (passed,) = (
        statement
        for policy in of_type(template, "IAM::ManagedPolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Sid"] == "PassOptimizerRole"
    )
    role = ["arn:aws:iam::", {"Ref": "AWS::AccountId"}, ":role/data/nyc"]
    assert passed["Resource"] == {"Fn::Join": ["", role]}


def test_lake_formation_grants_it_the_tables(synthesise: Synthesise) -> None:
    template = synthesise(make_maintained("nyc", {"lake_formation": True})).template
    grants = [
        grant["Permissions"]
        for grant in of_type(template, "LakeFormation::PrincipalPermissions").values()
        if grant["Principal"]["DataLakePrincipalIdentifier"] == {"Fn::GetAtt": ["OptimizerRole", "Arn"]}
    ]
    assert grants == [["DESCRIBE"], ["DESCRIBE", "SELECT", "INSERT", "DELETE", "ALTER"]]


ELSEWHERE = [
    # optimizer_role, what the destination has besides, a word of the warnings
    ("arn:aws:iam::123456789012:role/Own", {}, ""),
    ("nyc", {"iam_role_arn": "arn:aws:iam::111122223333:role/LakeWriter", "external_id": "acme"}, "--who optimizer"),
]


@pytest.mark.parametrize(("role", "destination", "told"), ELSEWHERE)
def test_a_role_of_others_is_not_made(
    synthesise: Synthesise, role: str, destination: dict[str, Any], told: str
) -> None:
    found = synthesise(make_maintained(role, **destination))
    assert "OptimizerRole" not in of_type(found.template, "IAM::Role")
    assert "OptimizerRoleARN" not in found.template["Outputs"]
    assert [told in warning for warning in found.warnings if "optimizer" in warning] == ([True] if told else [])
