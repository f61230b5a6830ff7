"""cdk-nag's AwsSolutions and cfn-lint have nothing to say of the pipeline's stack that is not answered."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import lint_file

from infra.settings import read_defaults
from tests.infra.pipeline.conftest import SettingsOf, add_stack
from tests.infra.pipeline.deployments import ALL, HOURLY

pytestmark = pytest.mark.synth

VARIANTS: Mapping[str, dict[str, Any]] = {
    "plain": {"schedule": HOURLY},
    "all": ALL,
    "budget": {"alarms": {"email": "lake@example.org", "monthly_budget_usd": 200}},
    "brought": {
        "existing": {"job_role_arn": "arn:aws:iam::123456789012:role/Spark"},
        "alarms": {"topic_arn": "arn:aws:sns:us-east-1:123456789012:lake"},
        "spark": {"mode": "STREAMING", "architecture": "ARM64"},
    },
}


@pytest.fixture(scope="module")
def assemblies(settings_of: SettingsOf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Synthesis fails when cdk-nag finds something that nobody acknowledged."""
    found = {}
    for name, deployment in VARIANTS.items():
        app = cdk.App(
            context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path_factory.mktemp("cdk.out"))
        )
        stack = add_stack(app, settings_of(**deployment))
        cdk.Validations.of(stack).add_plugins(AwsSolutionsChecks(app))
        found[name] = Path(app.synth().directory)
    return found


def named(rule: str) -> str:
    """Without the digest of the application, and the hash of the state machine."""
    return re.sub(r"<Application[0-9A-F]{10}\.", "<Application.", rule).replace("LoadsStateMachine40117ABB", "Loads")


def answered(assembly: Path) -> list[tuple[str, str]]:
    """Rule and place of each acknowledged finding, the stack left out."""
    reports = json.loads((assembly / "validation-report.json").read_text())["pluginReports"]
    # The other report is of CDK's warnings, such as that nobody is called.
    (report,) = (each for each in reports if each["pluginName"] == "AwsSolutions")
    assert report["violations"] == []
    return sorted(
        (named(finding["ruleName"].removeprefix("AwsSolutions-")), finding["acknowledgedAt"].partition("/")[2])
        for finding in report["suppressedViolations"]
    )


ASSETS = "arn:aws:s3:::cdk-{}-assets-<AWS::AccountId>-us-east-1/lakewriter-flights-prod"
EXECUTIONS = "IAM5[Resource::arn:aws:states:us-east-1:<AWS::AccountId>:execution:<Loads.Name>:*]"
ANYWHERE = [
    ("IAM5[Resource::*]", "Job/Policy"),
    ("IAM5[Resource::*]", "LoadPermissions/Telling"),
    ("IAM5[Resource::arn:aws:emr-serverless:us-east-1:<AWS::AccountId>:/applications/*]", "LoadPermissions/JobRuns"),
    (
        "IAM5[Resource::arn:aws:emr-serverless:us-east-1:<AWS::AccountId>:/applications/*/jobruns/*]",
        "LoadPermissions/JobRuns",
    ),
    ("IAM5[Resource::*]", "Releases/OfApplications"),
    ("IAM5[Resource::*]", "Releases/Telling"),
    (
        "IAM5[Resource::arn:aws:emr-serverless:us-east-1:<AWS::AccountId>:/applications/*]",
        "Releases/OfApplications",
    ),
    (EXECUTIONS, "Releases/OfLoads"),
    (
        "IAM5[Resource::arn:aws:s3:::acme-lake/data/production/_lakewriter/flights/runs/*]",
        "LoadPermissions/Outcomes",
    ),
]


OTHERS = {
    **{key: [("SQS3", "Starts/DeadLetters"), ("IAM5[Resource::*]", "Silence/Telling")] for key in ("plain", "all")},
    # A stream is told from its canary by the input of its execution.
    "brought": [(EXECUTIONS, "Loads/OverlapGuard")],
}


@pytest.mark.parametrize(("variant", "others"), OTHERS.items(), ids=OTHERS)
def test_findings_of_cdk_nag_are_answered(assemblies, variant, others):
    assets = ASSETS.format("acme" if variant == "all" else "hnb659fds")
    readable = [(f"IAM5[Resource::{assets}/*.{ending}]", "Job/Policy") for ending in ("py", "zip")]
    assert answered(assemblies[variant]) == sorted(ANYWHERE + readable + others)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("variant", VARIANTS)
def test_cfn_lint_finds_nothing(assemblies, variant):
    (template,) = assemblies[variant].glob("*-pipeline.template.json")
    assert [str(match) for match in lint_file(template)] == []
