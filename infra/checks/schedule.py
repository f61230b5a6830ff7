"""Check that a schedule does not start a load while the one before may still run."""

from collections.abc import Iterator
from datetime import timedelta

from infra.settings import Settings
from infra.text import format_hours


def check_schedule(settings: Settings) -> Iterator[str]:
    """Refuse starts less apart than an attempt may take."""
    given, spark = settings.deployment.schedule, settings.deployment.spark
    if given is None:
        return
    periods = given.measure_periods()
    if spark.mode == "STREAMING":
        # A continuous run does not end, so every start after the first is skipped.
        return
    if periods is None:
        return
    shortest, longest = periods
    timeout = timedelta(minutes=spark.timeout_minutes)
    if shortest - timedelta(minutes=given.flexible_minutes) < timeout:
        flexible = f", less flexible_minutes, {given.flexible_minutes} min" if given.flexible_minutes else ""
        yield (
            f"deployment.schedule: {given.expression} starts loads {format_hours(shortest)} apart{flexible}, and an "
            f"attempt may take {format_hours(timeout)}; expected starts at least that far apart, since loads do not "
            "overlap. Lower deployment.spark.timeout_minutes, or start loads less often."
        )
    silence = settings.deployment.alarms.no_success_hours
    if silence is not None and timedelta(hours=silence) <= longest:
        yield (
            f"deployment.alarms.no_success_hours: {silence} hours may pass between two starts, which "
            f"{given.expression} has up to {format_hours(longest)} apart; expected more than that. Raise it, or leave "
            "it out."
        )
