"""Name the metrics that the state machine publishes of each load, for alarms and dashboard."""

from enum import StrEnum
from typing import Final

from infra.settings import Settings
from lakewriter.spec.specification import METRICS_NAMESPACE

NAMESPACE: Final = METRICS_NAMESPACE


class LoadMetric(StrEnum):
    """The metrics of loads; a skipped start counts in none of them, nor does a canary."""

    LOADS_DONE = "LoadsDone"
    CANARIES_DONE = "CanariesDone"
    HOURS_WITHOUT_SUCCESS = "HoursWithoutSuccess"
    ATTEMPTS_FAILED = "AttemptsFailed"
    EXPECTATIONS_FAILED = "ExpectationsFailed"
    PENDING_HOURS = "PendingHours"
    ROWS = "Rows"
    ROWS_SET_ASIDE = "RowsSetAside"
    FILES = "Files"
    BYTES = "Bytes"
    SECONDS = "Seconds"


UNITS: Final = {LoadMetric.BYTES: "Bytes", LoadMetric.SECONDS: "Seconds", LoadMetric.PENDING_HOURS: "None"}
"""The units of metrics that are not counts."""

FIELDS: Final = {
    LoadMetric.PENDING_HOURS: "pending_hours",
    LoadMetric.ROWS: "rows",
    LoadMetric.ROWS_SET_ASIDE: "rows_set_aside",
    LoadMetric.FILES: "files",
    LoadMetric.BYTES: "bytes",
    LoadMetric.SECONDS: "seconds",
}
"""The field of an attempt's outcome file that holds each metric."""


def make_dimensions(settings: Settings) -> dict[str, str]:
    """Make the dimensions that all metrics of a stage share."""
    return {"Pipeline": settings.spec.pipeline, "Stage": settings.stage}
