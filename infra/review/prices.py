"""Say what a stage costs, by a file of prices that says where and when they were read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from infra.destination.key import has_customer_key
from infra.review.templates import Templates
from infra.settings import Settings
from lakewriter.deployable.workers import Capacity, compute_capacity
from lakewriter.policy.secrets import list_references
from lakewriter.spec.specification import Limits

FILE: Final = Path(__file__).with_name("prices.json")
MISSING: Final = "us-east-1"
"""The region whose prices are taken where the file has none of a region."""
SMALL: Final = timedelta(minutes=4)
"""The time of a load of a few files: its workers start, and each is billed for a minute at least."""
_MONTH: Final = 730
"""Hours, as AWS's calculator counts them."""


@dataclass(frozen=True)
class Prices:
    """Prices an hour in ``region``, in the ``currency``; ``read`` is the day when ``source`` said so."""

    source: str
    read: date
    evidence: str
    currency: str
    asked: str
    """The region that the prices are for."""
    region: str
    """The region that they are of."""
    architecture: str
    vcpu_hour: float
    gigabyte_hour: float
    disk_gigabyte_hour: float
    disk_free_gigabytes: int
    month: Mapping[str, float]
    """What each resource costs a month that nothing uses, by the names of ``list_idle``:
    https://aws.amazon.com/cloudwatch/pricing/, https://aws.amazon.com/kms/pricing/,
    https://aws.amazon.com/secrets-manager/pricing/."""
    endpoint_hour: float
    """An endpoint of a VPC in one zone: https://aws.amazon.com/privatelink/pricing/."""
    is_endpoint_known: bool

    @classmethod
    def load(cls, region: str = MISSING, architecture: str = "X86_64", path: Path = FILE) -> "Prices":
        """Load the prices of a region, or else those of ``MISSING``; change the file where your prices differ."""
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
        regions, endpoints, arm64 = (values.pop(name) for name in ("regions", "endpoint_hour", "arm64"))
        of = region if region in regions else MISSING
        factor = arm64 if architecture == "ARM64" else 1
        hourly = dict(regions[of])
        for name in ("vcpu_hour", "gigabyte_hour"):
            hourly[name] *= factor
        return cls(
            **{**values, "read": date.fromisoformat(values["read"])},
            **hourly,
            asked=region,
            region=of,
            architecture=architecture,
            endpoint_hour=endpoints.get(region, endpoints[MISSING]),
            is_endpoint_known=region in endpoints,
        )

    def compute_cost(self, most: Capacity, workers: int, span: timedelta) -> float:
        """Compute what all workers together cost for ``span``; each has some gigabytes of disk free."""
        disk = max(most.disk - workers * self.disk_free_gigabytes, 0)
        hourly = most.cores * self.vcpu_hour + most.memory * self.gigabyte_hour + disk * self.disk_gigabyte_hour
        return hourly * (span / timedelta(hours=1))

    def format_cost(self, most: Capacity, workers: int, span: timedelta) -> str:
        """Format the cost with its currency."""
        return self._format(self.compute_cost(most, workers, span))

    def _format(self, amount: float) -> str:
        return f"{amount:,.2f} {self.currency}"

    def describe_idle(self, templates: Templates) -> tuple[str, str]:
        """Say what the stacks cost in a month without a load, and how many of what that is for; logs and data aside."""
        idle = list_idle(templates)
        cost = sum(self.month[name] * count for name, count in idle.items())
        return f"{self._format(cost)} a month", ", ".join(f"{count} {name}" for name, count in idle.items() if count)

    def describe_small_load(self, settings: Settings) -> tuple[str, str]:
        """Say what a load of a few files costs: the driver and one executor, for some minutes."""
        small = settings.deployment.spark.model_copy(update={"max_executors": 1, "mode": "BATCH"})
        capacity = compute_capacity(small, Limits())
        minutes = SMALL // timedelta(minutes=1)
        return (
            f"about {self.format_cost(capacity, 2, SMALL)}",
            f"{capacity.cores} vCPUs and {capacity.memory} GB for {minutes} minutes",
        )

    def describe_endpoints(self, settings: Settings) -> tuple[str, str] | None:
        """Say what the endpoints cost that a VPC may need for this file; None without a network. That of S3 is free."""
        network = settings.deployment.network
        if network is None:
            return None
        services, zones = list_endpoints(settings), len(network.subnet_ids)
        cost = len(services) * zones * self.endpoint_hour * _MONTH
        reason = "" if self.is_endpoint_known else f", by the price of {MISSING}: that of {self.asked} was not read"
        return (
            f"{self._format(cost)} a month, if the VPC has them for this alone",
            f"{len(services)} endpoints ({', '.join(services)}) in {zones} zones{reason}",
        )

    def describe_source(self) -> str:
        """Say whose prices these are, and how sure they are."""
        basis = (
            f"By {self.source} as of {self.read:%d %B %Y}, for {self.architecture} in {self.region}: {self.evidence}"
        )
        if self.region == self.asked:
            return basis
        return f"{basis} {self.asked} may differ: infra/review/prices.json has no prices of it."


def describe_costs(settings: Settings, templates: Templates) -> tuple[tuple[str, tuple[str, str]], ...]:
    """Say what a stage costs by itself, each with what for."""
    prices = Prices.load(templates.region, settings.deployment.spark.architecture)
    rows = (
        ("Without a load", prices.describe_idle(templates)),
        ("A small load", prices.describe_small_load(settings)),
        ("Endpoints of the VPC", prices.describe_endpoints(settings)),
    )
    return tuple((name, row) for name, row in rows if row is not None)


def list_idle(templates: Templates) -> dict[str, int]:
    """Count what costs money while nothing runs. An alarm is paid for by its metrics; three dashboards are free."""
    alarms = [resource.properties for _, resource in templates.list_resources("AWS::CloudWatch::Alarm")]
    metrics = [[query for query in alarm["Metrics"] if "MetricStat" in query] if "Metrics" in alarm else [alarm]
               for alarm in alarms]  # fmt: skip
    return {
        "alarm metrics": sum(map(len, metrics)),
        "KMS keys": len(list(templates.list_resources("AWS::KMS::Key"))),
        "secrets": len(list(templates.list_resources("AWS::SecretsManager::Secret"))),
    }


def list_endpoints(settings: Settings) -> list[str]:
    """List the services that the job calls by an endpoint with a price, if it has no other way to them."""
    spec, deployment = settings.spec, settings.deployment
    secrets = any(kind == "secret" for kind, _ in list_references(spec))
    needed = {
        "STS": True,
        "CloudWatch Logs": True,
        "Glue": spec.in_glue,
        "S3 Tables": spec.table_bucket is not None,
        "KMS": has_customer_key(settings) or bool(deployment.secret_kms_key_arns),
        "Secrets Manager": secrets,
        "Lake Formation": bool(deployment.lake_formation),
    }
    return [service for service, is_needed in needed.items() if is_needed]
