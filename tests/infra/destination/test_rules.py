"""cdk-nag's AwsSolutions and cfn-lint have nothing to say that is not answered."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import lint_file

from infra.destination.stack import DestinationStack
from infra.settings import read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.airbyte import file
from tests.infra.destination.lakes import EVERYTHING, REPLICA, SUPAFLOW, lake
from tests.infra.destination.test_table_bucket import lake as in_table_bucket

pytestmark = pytest.mark.synth

VARIANTS: Mapping[str, dict[str, Any]] = {
    "plain": lake({"trust": [SUPAFLOW]}),
    "everything": lake(EVERYTHING),
    "verbatim, without access logs": lake({"trust": [SUPAFLOW], "vendor_verbatim": True, "access_logs": False}),
    "at the bucket's root, without Glue": lake({"snowflake": {}}, s3_path_prefix="", update_aws_glue_catalog=False),
    "path with variables, verbatim": file(
        "airbyte", trust=[{"vendor": "airbyte-cloud", "external_id": "acme-2026"}], vendor_verbatim=True
    ),
    "replicated under keys, with versions of logs": lake(
        {"encryption": "SSE-KMS", "replication": REPLICA, "access_log_versions": True, "role_path": "/lake/"}
    ),
    "LF-tags": lake(
        {
            "lake_formation": {"tags": {"domain": "flights"}, "create_tags": True},
            "trust": [SUPAFLOW | {"lf_tags": {"domain": "flights"}}],
        }
    ),
    "table bucket": in_table_bucket({"encryption": "SSE-KMS"}),
    "odd source": {
        **lake(),
        "tables": [{"table": "t", "schema": "s", "read": {"format": "parquet", "path": "s3://raw/a$b*/c"}}],
    },
}


@pytest.fixture(scope="module")
def assemblies(settings_for: SettingsFor, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Synthesis fails when cdk-nag finds something that nobody acknowledged."""
    found = {}
    for name, variant in VARIANTS.items():
        app = cdk.App(
            context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path_factory.mktemp("cdk.out"))
        )
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
        settings = settings_for(variant)
        DestinationStack(app, settings.stack_names[0], settings=settings)
        found[name] = Path(app.synth().directory)
    return found


def _answered(assembly: Path) -> list[tuple[str, str]]:
    """Rule and place of each acknowledged finding, the stack left out."""
    # CDK's own report of warnings, where there are any, is another.
    report, *_ = json.loads((assembly / "validation-report.json").read_text())["pluginReports"]
    assert report["pluginName"] == "AwsSolutions"
    assert report["violations"] == []
    assert all(finding["reason"] for finding in report["suppressedViolations"])
    return [
        (finding["ruleName"].removeprefix("AwsSolutions-"), finding["acknowledgedAt"].partition("/")[2])
        for finding in report["suppressedViolations"]
    ]


def test_findings_of_cdk_nag_are_acknowledged_at_the_policy(assemblies: dict[str, Path]) -> None:
    glue = "arn:aws:glue:us-east-1:<AWS::AccountId>"
    job, vendor = "Roles/JobRole/Permissions", "Roles/SupaflowConsumerRole/Permissions"
    assert sorted(_answered(assemblies["plain"])) == [
        (f"IAM5[Resource::{glue}:database/supaflow_*]", f"{vendor}/Glue"),
        (f"IAM5[Resource::{glue}:table/supaflow/*]", f"{vendor}/Glue"),
        (f"IAM5[Resource::{glue}:table/supaflow_*/*]", f"{vendor}/Glue"),
        (f"IAM5[Resource::{glue}:table/supaflow_nyc_public/lakewriter_check_*]", f"{job}/Glue"),
        ("IAM5[Resource::arn:aws:s3:::acme-lake/data/production/*]", f"{vendor}/S3"),
        ("IAM5[Resource::arn:aws:s3:::acme-lake/data/production/_lakewriter/_writers/*]", f"{job}/S3"),
        ("IAM5[Resource::arn:aws:s3:::acme-lake/data/production/_lakewriter/flights/*]", f"{job}/S3"),
        ("IAM5[Resource::arn:aws:s3:::acme-lake/data/production/supaflow_nyc_public/flights/*]", f"{job}/S3"),
        ("IAM5[Resource::arn:aws:s3:::raw/flights/*]", f"{job}/Sources"),
    ]


@pytest.mark.parametrize(
    ("variant", "others"),
    [
        ("everything", [("SMG4", "VendorUser/Secret")]),
        ("verbatim, without access logs", [("S1", "Lake/Bucket")]),
        ("at the bucket's root, without Glue", []),
        ("path with variables, verbatim", []),
        ("table bucket", []),
        ("odd source", []),
    ],
)
def test_findings_beside_wildcards(assemblies: dict[str, Path], variant: str, others: list[tuple[str, str]]) -> None:
    assert [found for found in _answered(assemblies[variant]) if not found[0].startswith("IAM5[Resource::")] == others


@pytest.mark.parametrize("variant", ["plain", "everything", "table bucket"])
def test_cfn_lint_finds_nothing(assemblies: dict[str, Path], variant: str) -> None:
    (template,) = assemblies[variant].glob("*.template.json")
    assert [str(match) for match in lint_file(template)] == []
