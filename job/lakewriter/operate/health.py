"""Assess a pipeline's health: its continuous run, loads that wait to be finished, states that cannot be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_RETRY
from lakewriter.records.state import TableState
from lakewriter.report import format_count

STALE_AFTER: Final = timedelta(minutes=3)
"""A running process writes its status every minute; clocks may differ."""
PENDING_AFTER: Final = timedelta(hours=1)
"""A bound load is finished within minutes, by its own process or by the next load."""


class RunHealth(StrEnum):
    """The health of a continuous run. ``STALE``: it has not written its status lately, so its process is gone."""

    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    PARTLY_FAILED = "partly_failed"
    FAILED = "failed"
    STALE = "stale"
    UNKNOWN = "unknown"


_WELL: Final = (RunHealth.RUNNING, RunHealth.STOPPING, RunHealth.STOPPED)


@dataclass(frozen=True)
class Health:
    """The health of a pipeline.

    run            None where no continuous run has left a status
    since          when the run last wrote its status
    failed_tables  the run's failed tables, each with its failure
    waiting        a sentence for each load that has been pending for long
    unreadable     tables whose state cannot be read, each with the error
    """

    run: RunHealth | None = None
    since: datetime | None = None
    failed_tables: Mapping[str, str] | None = None
    waiting: tuple[str, ...] = ()
    unreadable: Mapping[str, LakeError] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 where a person must look at the continuous run or at a table's state, 75 where a load must be run again or
        a state may be readable later, else 0."""
        if self.run is not None and self.run not in _WELL:
            return EXIT_FAILED
        codes = {error.exit_code for error in self.unreadable.values()} | ({EXIT_RETRY} if self.waiting else set())
        return EXIT_FAILED if codes - {EXIT_RETRY} else max(codes, default=EXIT_OK)


def assess(
    states: Mapping[str, TableState],
    continuous: Mapping[str, Any] | None,
    now: datetime,
    unreadable: Mapping[str, LakeError] = MappingProxyType({}),
    *,
    loses_files: bool = False,
) -> Health:
    """Assess the pipeline from its tables' states; ``continuous`` is the content of ``continuous.json``, ``unreadable``
    are the tables whose state cannot be read. With ``loses_files`` the catalog's service clears away what no snapshot
    names."""
    before = ", before the catalog's service clears its files away" if loses_files else ""
    waiting = tuple(
        f"load {state.pending.job_id} of {table_id} is pending since {state.pending.since:%Y-%m-%d %H:%M} UTC "
        f"({_describe_age(now - state.pending.since)}): run it again, or abandon it{before}"
        for table_id, state in states.items()
        if state.pending is not None and now - state.pending.since > PENDING_AFTER
    )
    if continuous is None:
        return Health(waiting=waiting, unreadable=unreadable)
    at, failed = _parse_time(continuous.get("at")), _read_failed_tables(continuous)
    return Health(_assess_run(continuous, at, failed, now), at, failed, waiting, unreadable)


def describe(health: Health, now: datetime) -> str:
    """Describe the run's health, such as ``stale: it last wrote its status 12 hours ago``."""
    age = f"{_describe_age(now - health.since)} ago" if health.since else "at an unknown time"
    words = {
        RunHealth.STALE: f"stale: it last wrote its status {age}, so its process is gone; start it again",
        RunHealth.PARTLY_FAILED: f"partly failed: {format_count(len(health.failed_tables or ()), 'table')} stopped, "
        f"others go on (as of {age})",
        RunHealth.UNKNOWN: "unknown: its status object holds no status",
    }
    return words.get(health.run or RunHealth.UNKNOWN, f"{health.run} (as of {age})")


def _assess_run(
    continuous: Mapping[str, Any], at: datetime | None, failed: Mapping[str, str], now: datetime
) -> RunHealth:
    state = continuous.get("state")
    if state not in ("running", "stopping", "stopped", "failed") or at is None:
        return RunHealth.UNKNOWN
    if state in (RunHealth.STOPPED, RunHealth.FAILED):
        return RunHealth(state)
    if now - at > STALE_AFTER:
        return RunHealth.STALE
    return RunHealth.PARTLY_FAILED if failed else RunHealth(state)


def _read_failed_tables(continuous: Mapping[str, Any]) -> dict[str, str]:
    tables = continuous.get("tables")
    failures = {}
    for table_id, table in (tables if isinstance(tables, Mapping) else {}).items():
        if isinstance(table, Mapping) and table.get("state") == "failed":
            failures[str(table_id)] = f"{table.get('code')}: {table.get('message')}"
    return failures


def _parse_time(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _describe_age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return format_count(seconds // size, unit)
    return format_count(seconds, "second")
