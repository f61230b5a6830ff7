"""Decide when a continuous run is unwell, by the metrics that it writes into its log every minute."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.settings import Settings
from lakewriter.spec.deployment import Deployment

SILENT_MINUTES: Final = 15
"""Longer than a start takes: a release's image, the driver, and the first minute of the run."""
_LEAST_MINUTES: Final = 15
_INTERVALS: Final = 3
"""A table may be read that much later than its interval says before anybody is called."""


@dataclass(frozen=True)
class StreamAlarm:
    """An alarm on one metric of the run, each minute of which is a data point."""

    id: str
    metric: str
    statistic: str
    threshold: float
    periods: int
    description: str
    is_below: bool = False
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING


def list_stream_alarms(settings: Settings) -> list[StreamAlarm]:
    """Return the alarms of a streaming job; empty for others."""
    if settings.deployment.spark.mode != "STREAMING":
        return []
    late = compute_late_minutes(
        settings.deployment, settings.spec.most_interval_seconds or settings.spec.interval_seconds
    )
    return [
        StreamAlarm(
            "Stale",
            "FreshnessSeconds",
            "Maximum",
            60.0 * late,
            3,
            f'A table has not had all that its source has for {late} minutes; the log\'s lines with "step": "minute" '
            "say which.",
        ),
        StreamAlarm(
            "Lagging",
            "LagSeconds",
            "Maximum",
            60.0 * late,
            1,
            f"Rows waited more than {late} minutes for their batch: it took too long, or the run was away.",
        ),
        StreamAlarm(
            "TableFailed",
            "FailedTables",
            "Maximum",
            1,
            1,
            "A table of the continuous run has failed for good while others go on; 'lakewriter status' says why.",
        ),
        StreamAlarm(
            "Silent",
            "FreshnessSeconds",
            "SampleCount",
            1,
            SILENT_MINUTES,
            f"The continuous run has not said anything for {SILENT_MINUTES} minutes: it is not running. A new stack is "
            "in alarm until it is started.",
            is_below=True,
            missing=cloudwatch.TreatMissingData.BREACHING,
        ),
    ]


def compute_late_minutes(deployment: Deployment, interval_seconds: int) -> int:
    """Compute after how many minutes a table is late: as given, or by the interval."""
    return deployment.alarms.late_minutes or max(_LEAST_MINUTES, -(-_INTERVALS * interval_seconds // 60))
