"""Regions, partitions and principals: what the stacks take for granted is what botocore's endpoints have."""

import json
import re
from pathlib import Path
from typing import Any

import botocore
import cfnlint
import pytest

from infra.checks.names import PATTERNS, WITHOUT_BUDGETS, WITHOUT_EMR_SERVERLESS, check_partitions, check_region
from infra.review.templates import Templates
from lakewriter.policy.arns import Arns, find_partition
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
