"""Schedules that would start a load while the one before may still run."""

from collections.abc import Iterator
from datetime import timedelta
from zoneinfo import available_timezones

from infra.cron import periods
from infra.settings import Settings
from infra.text import hours


def schedule(settings: Settings) -> Iterator[str]:
    """An expression that is none, an unknown time zone, or starts closer together than an attempt may take."""
    given, spark = settings.deployment.schedule, settings.deployment.spark
    if given is None:
        return
    known = available_timezones()
    # A machine without a time zone database knows none: then CloudFormation has the last word.
    if known and given.timezone not in known:
        yield f"deployment.schedule.timezone: {given.timezone!r} is unknown; expected a name such as 'Europe/Berlin'."
    try:
        found = periods(given)
    except ValueError as error:
        yield f"deployment.schedule: {given.expression}: {error}."
        return
    if spark.mode == "STREAMING":
        # It goes on until it is stopped: each start but the first finds it running.
        return
    if found is None:
        return
    shortest, longest = found
    timeout = timedelta(minutes=spark.timeout_minutes)
    if shortest - timedelta(minutes=given.flexible_minutes) < timeout:
        flexible = f", less flexible_minutes, {given.flexible_minutes} min" if given.flexible_minutes else ""
        yield (
            f"deployment.schedule: {given.expression} starts loads {hours(shortest)} apart{flexible}, and an attempt "
            f"may take {hours(timeout)}; expected starts at least that far apart, since loads do not overlap. Lower "
            "deployment.spark.timeout_minutes, or start loads less often."
        )
    silence = settings.deployment.alarms.no_success_hours
    if silence is not None and timedelta(hours=silence) <= longest:
        yield (
            f"deployment.alarms.no_success_hours: {silence} hours may pass between two starts, which "
            f"{given.expression} has up to {hours(longest)} apart; expected more than that. Raise it, or leave it out."
        )
