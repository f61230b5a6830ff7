"""The review in money: by hand from the prices in the file, and where they come from."""

import json
import runpy
from datetime import timedelta
from typing import Any

import pytest

from infra.review.load import _count_starts
from infra.review.prices import FILE, Prices, describe_costs
from infra.review.templates import Template, Templates
from infra.settings import ROOT
from lakewriter.deployable.workers import Capacity
from lakewriter.spec.deployment import Schedule
from tests.infra.conftest import SettingsFor
from tests.infra.pipeline.conftest import LAKE

PRICES = Prices.load()
DAY = timedelta(days=1)
COSTS = [
    # capacity, workers, time; by hand: vCPUs x 0.052624 + GB x 0.0057785 + GB of disk over 20 a worker x 0.000111
    (Capacity(cores=14, memory=56, disk=80), 4, timedelta(hours=9), "9.54 USD"),
    (Capacity(cores=14, memory=56, disk=80), 4, DAY, "25.45 USD"),
    (Capacity(cores=1, memory=2, disk=120), 1, timedelta(hours=100), "7.53 USD"),
]


@pytest.mark.parametrize(("most", "workers", "span", "cost"), COSTS)
def test_cost(most: Capacity, workers: int, span: timedelta, cost: str) -> None:
    assert PRICES.format_cost(most, workers, span) == cost


def test_where_prices_come_from() -> None:
    begins = "By https://aws.amazon.com/emr/pricing/ as of 12 August 2026, for {} in {}: ap-southeast-1 is as AWS's"
    ends = "{} may differ: infra/review/prices.json has no prices of it."
    read = [
        Prices.load(*asked).describe_source()
        for asked in (("us-east-1", "X86_64"), ("eu-central-1", "ARM64"), ("af-south-1", "X86_64"))
    ]
    assert [
        text.startswith(begins.format(*of))
        for text, of in zip(
            read, [("X86_64", "us-east-1"), ("ARM64", "eu-central-1"), ("X86_64", "us-east-1")], strict=True
        )
    ] == [True, True, True]
    assert [text.endswith(ends.format("af-south-1")) for text in read] == [False, False, True]


def test_prices_are_those_of_the_region() -> None:
    """From the price list of Singapore: an hour of 10 vCPUs and 100 GB, and of ARM64 a fifth less."""
    capacity = Capacity(cores=10, memory=100, disk=20)
    hour = timedelta(hours=1)
    costs = [Prices.load("ap-southeast-1", of).compute_cost(capacity, 1, hour) for of in ("X86_64", "ARM64")]
    assert costs == [pytest.approx(10 * 0.065728 + 100 * 0.007189), pytest.approx(10 * 0.052585 + 100 * 0.005746, 1e-3)]


NETWORK = {"subnet_ids": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"], "security_group_ids": ["sg-0a1b2c3d"]}


def test_what_the_parts_of_a_stage_cost(settings_for: SettingsFor) -> None:
    """By hand: 6 vCPUs and 24 GB for 4 minutes; 4 endpoints in 2 zones for 730 hours."""
    destination = LAKE["destination"] | {"update_aws_glue_catalog": True}
    content = LAKE | {"destination": destination, "deployment": {"network": NETWORK, "encryption": "SSE-KMS"}}
    costs = dict(describe_costs(settings_for(content), Templates((), "123456789012", "us-east-1")))
    assert costs["A small load"][0] == "about 0.03 USD"
    assert costs["Endpoints of the VPC"] == (
        "58.40 USD a month, if the VPC has them for this alone",
        "4 endpoints (STS, CloudWatch Logs, Glue, KMS) in 2 zones",
    )
    elsewhere = dict(describe_costs(settings_for(content), Templates((), "123456789012", "sa-east-1")))
    assert elsewhere["A small load"][0] == "about 0.05 USD"
    assert "by the price of us-east-1: that of sa-east-1 was not read" in elsewhere["Endpoints of the VPC"][1]
    plain = settings_for(LAKE | {"deployment": {"encryption": "SSE-S3"}})
    assert [name for name, _ in describe_costs(plain, Templates((), "1", "us-east-1"))] == [
        "Without a load", "A small load",
    ]  # fmt: skip


def test_the_page_of_costs_has_every_region(settings_for: SettingsFor) -> None:
    page = (ROOT / "docs" / "costs.md").read_text("utf-8")
    settings = settings_for(LAKE)
    rows = [
        f"| {region} | {Prices.load(region).describe_small_load(settings)[0].removeprefix('about ')} | "
        f"{Prices.load(region, 'ARM64').describe_small_load(settings)[0].removeprefix('about ')} |"
        for region in json.loads(FILE.read_text("utf-8"))["regions"]
    ]
    assert [row for row in rows if row not in page] == []
    assert len(rows) == 16


def test_what_an_idle_stage_costs() -> None:
    """An alarm is paid for by each of its metrics: here one and two, and a sum of them is none."""
    metric = {"MetricStat": {"Metric": {"MetricName": "a"}}}
    resources = {
        "One": ("CloudWatch::Alarm", {"MetricName": "a"}),
        "Two": ("CloudWatch::Alarm", {"Metrics": [{"Expression": "SUM(METRICS())"}, metric, metric]}),
        "Key": ("KMS::Key", {}),
        "Secret": ("SecretsManager::Secret", {}),
        "Queue": ("SQS::Queue", {}),
    }
    body = {"Resources": {name: {"Type": f"AWS::{kind}", "Properties": of} for name, (kind, of) in resources.items()}}
    templates = Templates((Template("lake", protected=False, body=body),), "123456789012", "us-east-1")
    assert PRICES.describe_idle(templates) == ("1.70 USD a month", "3 alarm metrics, 1 KMS keys, 1 secrets")
    assert PRICES.describe_idle(Templates((), "123456789012", "us-east-1")) == ("0.00 USD a month", "")


def offer(**usages: str) -> dict[str, Any]:
    """An offer of AWS's price list, abridged: prices by usage type."""
    tier = {"beginRange": "0"}
    terms = {
        usage: {"t": {"priceDimensions": {"d": tier | {"pricePerUnit": {"USD": price}}}}}
        for usage, price in usages.items()
    }
    products = {usage: {"attributes": {"usagetype": usage}} for usage in usages}
    return {"products": products, "terms": {"OnDemand": terms}}


def test_prices_are_read_from_the_price_list_by_region() -> None:
    """The figures of ap-southeast-1, with a processor of the other kind beside; the script writes what is loaded."""
    script = runpy.run_path(str(ROOT / "scripts" / "prices"))
    offers = {
        "ElasticMapReduce": offer(**{
            "APS1-EMR-SERVERLESS-vCPUHours": "0.0657280", "APS1-EMR-SERVERLESS-ARM-vCPUHours": "0.0525850",
            "APS1-EMR-SERVERLESS-MemoryGBHours": "0.0071890", "APS1-EMR-SERVERLESS-StorageGBHours": "0.0001330",
        }),
        "AmazonVPC": offer(**{"APS1-VpcEndpoint-Hours": "0.0130", "APS1-VpcEndpoint-GWLBE-Hours": "0.0130"}),
    }  # fmt: skip
    content = json.loads(FILE.read_text("utf-8"))
    region = "ap-southeast-1"
    before = content | {"regions": {region: {}}, "endpoint_hour": {}}
    made = script["make_review"](before, lambda service, _region: offers[service], "2027-01-31")
    assert made["regions"] == {region: content["regions"][region]}
    assert made["endpoint_hour"] == {region: content["endpoint_hour"][region]}
    assert made["read"] == "2027-01-31"


STARTS = [
    ({"rate": "6 hours"}, 4),
    ({"rate": "15 minutes"}, 96),
    ({"rate": "1 day"}, 1),
    ({"rate": "3 days"}, 1),
    ({"cron": "30 6,18 * * ? *"}, 2),
]


@pytest.mark.parametrize(("schedule", "count"), STARTS)
def test_starts_in_a_day(schedule: dict[str, str], count: int) -> None:
    assert _count_starts(Schedule.model_validate(schedule)) == count
