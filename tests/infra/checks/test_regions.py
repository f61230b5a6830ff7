"""Regions, partitions and principals: what the stacks take for granted is what botocore's endpoints have."""

import json
import re
from pathlib import Path
from typing import Any

import botocore
import cfnlint
import pytest
from aws_cdk import region_info

from infra.bundle.release import WITH_SPARK_4
from infra.review.templates import Templates
from infra.settings import ROOT
from lakewriter.deployable.aws_names import (
    PATTERNS,
    WITHOUT_BUDGETS,
    WITHOUT_EMR_SERVERLESS,
    check_partitions,
    check_region,
)
from lakewriter.policy.arns import Arns, find_partition, is_service, name_principal
from lakewriter.policy.role_documents import Who, make_documents
from tests.infra.conftest import SettingsFor
from tests.infra.destination.lakes import lake

ENDPOINTS: dict[str, Any] = json.loads((Path(botocore.__file__).parent / "data" / "endpoints.json").read_text("utf-8"))
REGIONS = {region: each["partition"] for each in ENDPOINTS["partitions"] for region in each["regions"]}


def test_patterns_are_botocores() -> None:
    found = {each["partition"]: each["regionRegex"].strip("^$").replace("\\-", "-") for each in ENDPOINTS["partitions"]}
    assert found == PATTERNS


def test_regions_without_emr_serverless_are_botocores() -> None:
    offered = {
        region
        for each in ENDPOINTS["partitions"]
        for region in each["services"].get("emr-serverless", {}).get("endpoints", {})
    }
    assert set(REGIONS) - offered == WITHOUT_EMR_SERVERLESS


def test_regions_with_spark_4_are_botocores() -> None:
    """But for those that the page excepts, and the partitions that it is not for."""
    offered = {
        region
        for each in ENDPOINTS["partitions"]
        if each["partition"] in {"aws", "aws-cn", "aws-us-gov"}
        for region in each["services"]["emr-serverless"]["endpoints"]
        if region in REGIONS
    }
    assert offered - {"me-south-1", "me-central-1"} == WITH_SPARK_4


SOURCES = [path for folder in ("infra", "job/lakewriter") for path in (ROOT / folder).rglob("*.py")]
STANDARD = {"states"}
"""Services that region-info still names by region, and that have one name everywhere, as in CDK's own roles."""


def test_principals_of_services_are_cdks() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCES)
    named = set(re.findall(r'name_principal\("([\w.-]+)"', text))
    # Of lists that the function is mapped over.
    named |= {"states", "scheduler", "events", "emr-serverless", "lambda", "s3", "cloudwatch", "budgets"}
    assert {"logs", "glue", "logging.s3", "ops.emr-serverless", "cloudformation"} <= named
    regions = [info for info in region_info.RegionInfo.regions if info.name in REGIONS]
    assert len(regions) >= 40
    differing = {
        (service, info.name): name_principal(service, info.name)
        for info in regions
        for service in sorted(named - STANDARD)
        if name_principal(service, info.name)
        != region_info.Default.service_principal(f"{service}.amazonaws.com", info.name, str(info.domain_suffix))
    }
    assert differing == {}
    assert all(is_service(name_principal(service, info.name)) for info in regions for service in named)


def test_no_principal_is_named_by_hand() -> None:
    """But for KMS's ViaService and URLs, which are no principals."""
    by_hand = {
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in SOURCES
        for found in re.finditer(r'"[\w.-]+\.amazonaws\.com(\.cn)?"', path.read_text("utf-8"))
        if path.name != "arns.py"
    }
    assert by_hand == set()


def test_regions_without_budgets_are_cfn_lints() -> None:
    folder = Path(str(cfnlint.__file__)).parent / "data" / "schemas" / "providers"
    named = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json") if path.stem != "sam"}
    assert {region for region, types in named.items() if "AWS::Budgets::Budget" not in types} == WITHOUT_BUDGETS


def test_each_region_is_of_its_partition() -> None:
    """In policies, and in the review."""
    assert {region: find_partition(region) for region in REGIONS} == REGIONS
    assert {region: Templates((), "1", region).partition for region in REGIONS} == REGIONS
    assert [region for region in REGIONS if not re.fullmatch(PATTERNS[REGIONS[region]], region)] == []


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        ("us-east-1", None),
        ("us-gov-west-1", None),
        ("cn-north-1", None),
        # one that botocore does not know yet
        ("eu-north-9", None),
        ("xx-east-1", "is of no partition of AWS"),
        ("us-isob-west-1", "EMR Serverless is not offered in 'us-isob-west-1'"),
    ],
)
def test_region(settings_for: SettingsFor, region: str, problem: str | None) -> None:
    found = list(check_region(settings_for(lake({}, bucket_region=region))))
    assert [problem in each for each in found] == [True] if problem else found == []


VENDOR = {"vendor": "supaflow", "external_id": "acme-2026"}
KEY = "arn:aws-cn:kms:cn-north-1:123456789012:key/0f1e2d3c"
PARTITIONS = [
    # region, deployment; what is refused
    ("us-east-1", {"trust": [VENDOR]}, []),
    ("cn-north-1", {"trust": [VENDOR]}, ["deployment.trust.0.vendor: 'arn:aws:iam::805595753828:root'"]),
    ("us-gov-west-1", {"trust": [VENDOR]}, ["deployment.trust.0.vendor: 'arn:aws:iam::805595753828:root'"]),
    ("cn-north-1", {"existing": {"kms_key_arn": KEY}, "operators": ["arn:aws-cn:iam::123456789012:role/OnCall"]}, []),
    ("us-east-1", {"existing": {"kms_key_arn": KEY}}, [f"deployment.existing.kms_key_arn: '{KEY}'"]),
    (
        "us-gov-east-1",
        {"alarms": {"topic_arn": "arn:aws:sns:us-east-1:123456789012:lake"}},
        ["deployment.alarms.topic_arn: 'arn:aws:sns:us-east-1:123456789012:lake'"],
    ),
]


@pytest.mark.parametrize(("region", "deployment", "refused"), PARTITIONS)
def test_nobody_is_known_in_another_partition(
    settings_for: SettingsFor, region: str, deployment: dict[str, Any], refused: list[str]
) -> None:
    found = list(check_partitions(settings_for(lake(deployment, bucket_region=region))))
    assert [each.partition(" is of the partition")[0] for each in found] == refused


@pytest.mark.parametrize(
    ("region", "partition", "services"),
    [
        ("us-gov-west-1", "aws-us-gov", "s3.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "aws-cn", ["s3.cn-north-1.amazonaws.com", "s3.cn-north-1.amazonaws.com.cn"]),
    ],
)
def test_documents_of_another_partition(
    settings_for: SettingsFor, region: str, partition: str, services: str | list[str]
) -> None:
    key = f"arn:{partition}:kms:{region}:123456789012:key/a"
    settings = settings_for(lake({"existing": {"kms_key_arn": key}}, bucket_region=region))
    found = make_documents(settings.spec, settings.deployment, Who.JOB, Arns(partition, "123456789012", region, key))
    assert "arn:aws:" not in json.dumps(found)
    (statement,) = found["Kms"]["Statement"]
    assert statement["Condition"] == {"StringEquals": {"kms:ViaService": services}}
