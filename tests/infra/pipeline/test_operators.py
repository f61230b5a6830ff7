"""The role of operators: who may take it, and that cdk-nag has nothing to say of it that is not answered."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks

from infra.settings import read_defaults
from tests.infra.pipeline.conftest import SettingsOf, add_stack
from tests.infra.pipeline.deployments import HOURLY
from tests.infra.pipeline.templates import properties

pytestmark = pytest.mark.synth

OPERATORS = ["arn:aws:iam::123456789012:role/OnCall", "arn:aws:iam::123456789012:user/ann"]


def test_role(settings_of: SettingsOf, tmp_path: Path) -> None:
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path))
    stack = add_stack(app, settings_of(operators=OPERATORS, encryption="SSE-KMS", role_path="/lake/", schedule=HOURLY))
    # Synthesis fails when cdk-nag finds something that nobody acknowledged.
    cdk.Validations.of(stack).add_plugins(AwsSolutionsChecks(app))
    template = json.loads((Path(app.synth().directory) / f"{stack.stack_name}.template.json").read_text("utf-8"))
    (role,) = (each for each in properties(template, "IAM::Role") if "operators" in each.get("Description", ""))
    trusted = [each["Principal"]["AWS"] for each in role["AssumeRolePolicyDocument"]["Statement"]]
    assert (role["Path"], trusted) == ("/lake/", [OPERATORS])
    policies = [each for each in properties(template, "IAM::ManagedPolicy") if "operators" in each["Description"]]
    assert [each["Description"].split(": ")[1].split()[0] for each in policies] == ["S3", "Kms", "Loads", "Stage"]
    (loads,) = (each for each in policies if each["Description"].endswith("Loads for operators"))
    following = {each["Sid"]: json.dumps(each["Resource"]) for each in loads["PolicyDocument"]["Statement"]}
    machines = ["LoadsStateMachine", "ReleasesHandover", "SilenceWatch"]
    assert {sid: [name for name in machines if name in text] for sid, text in following.items()} == {
        "StartAndFindLoads": machines, "FollowAndStopLoads": machines,
    }  # fmt: skip
    assert "OperatorRoleArn" in template["Outputs"]


def test_no_operators_no_role(plain: dict[str, object]) -> None:
    assert "operators" not in json.dumps(plain)
