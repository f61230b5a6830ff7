"""The review in money: by hand from the prices in the file, and where they come from."""

from datetime import timedelta

import pytest

from infra.pipeline.capacity import Capacity
from infra.review.load import _count_starts
from infra.review.prices import Prices
from infra.review.templates import Template, Templates
from lakewriter.spec.deployment import Schedule

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
    said = "By https://aws.amazon.com/emr/pricing/ as read on 13 August 2026, for X86_64 in us-east-1."
    assert PRICES.describe_source("us-east-1", "X86_64") == said
    assert PRICES.describe_source("eu-central-1", "ARM64") == (
        f"{said} ARM64 costs less. eu-central-1 may differ: infra/review/prices.json has the prices."
    )


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
