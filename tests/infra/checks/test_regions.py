"""Regions, partitions and principals: what the stacks take for granted is what botocore's endpoints have."""

import json
import re
from pathlib import Path
from typing import Any

import botocore
import pytest

from infra.checks.names import PATTERNS, WITHOUT_EMR_SERVERLESS, check_region
from infra.review.templates import Templates
from lakewriter.policy.arns import find_partition
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
