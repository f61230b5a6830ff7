"""Put a sum of money beside the most that a load takes, by a file of prices that says where and when they were read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from infra.pipeline.capacity import Capacity
from infra.review.templates import Templates

FILE: Final = Path(__file__).with_name("prices.json")


@dataclass(frozen=True)
class Prices:
    """Prices an hour in one region, in the ``currency``; ``read`` is the day when ``source`` said so."""

    source: str
    read: date
    region: str
    architecture: str
    currency: str
    vcpu_hour: float
    gigabyte_hour: float
    disk_gigabyte_hour: float
    disk_free_gigabytes: int
    month: Mapping[str, float]
    """What each resource costs a month that nothing uses, by the names of ``list_idle``:
    https://aws.amazon.com/cloudwatch/pricing/, https://aws.amazon.com/kms/pricing/,
    https://aws.amazon.com/secrets-manager/pricing/."""

    @classmethod
    def load(cls, path: Path = FILE) -> "Prices":
        """Load the file; change it where your prices differ."""
        values = json.loads(path.read_text("utf-8"))
        return cls(**{**values, "read": date.fromisoformat(values["read"])})

    def compute_cost(self, most: Capacity, workers: int, span: timedelta) -> float:
        """Compute what all workers together cost for ``span``; each has some gigabytes of disk free."""
        disk = max(most.disk - workers * self.disk_free_gigabytes, 0)
        hourly = most.cores * self.vcpu_hour + most.memory * self.gigabyte_hour + disk * self.disk_gigabyte_hour
        return hourly * (span / timedelta(hours=1))

    def format_cost(self, most: Capacity, workers: int, span: timedelta) -> str:
        """Format the cost with its currency."""
        return f"{self.compute_cost(most, workers, span):,.2f} {self.currency}"

    def describe_idle(self, templates: Templates) -> tuple[str, str]:
        """Say what the stacks cost in a month without a load, and how many of what that is for; logs and data aside."""
        idle = list_idle(templates)
        cost = sum(self.month[name] * count for name, count in idle.items())
        return f"{cost:,.2f} {self.currency} a month", ", ".join(
            f"{count} {name}" for name, count in idle.items() if count
        )

    def describe_source(self, region: str, architecture: str) -> str:
        """Say whose prices these are, and how they may differ from this deployment's."""
        said = f"By {self.source} as read on {self.read:%d %B %Y}, for {self.architecture} in {self.region}."
        if architecture != self.architecture:
            said += f" {architecture} costs less."
        return (
            said if region == self.region else f"{said} {region} may differ: infra/review/prices.json has the prices."
        )


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
