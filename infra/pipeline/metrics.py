"""What the state machine tells CloudWatch of each load: what alarms and dashboard look at."""

from enum import StrEnum
from typing import Final

from infra.settings import Settings

NAMESPACE: Final = "Lakewriter"


class Told(StrEnum):
    """The metrics. An overlapping start that is skipped counts in none of them."""

    LOADS_DONE = "LoadsDone"
    ATTEMPTS_FAILED = "AttemptsFailed"
    PENDING_HOURS = "PendingHours"
    ROWS = "Rows"
    ROWS_SET_ASIDE = "RowsSetAside"
    FILES = "Files"
    BYTES = "Bytes"
    SECONDS = "Seconds"


UNITS: Final = {Told.BYTES: "Bytes", Told.SECONDS: "Seconds", Told.PENDING_HOURS: "None"}
"""All others are counts."""

FIELDS: Final = {
    Told.PENDING_HOURS: "pending_hours",
    Told.ROWS: "rows",
    Told.ROWS_SET_ASIDE: "rows_set_aside",
    Told.FILES: "files",
    Told.BYTES: "bytes",
    Told.SECONDS: "seconds",
}
"""Where the outcome that an attempt leaves has the value."""


def dimensions(settings: Settings) -> dict[str, str]:
    """One set for all metrics of a stage of a pipeline."""
    return {"Pipeline": settings.spec.pipeline, "Stage": settings.stage}
