"""Check a load against EMR Serverless, the account, the bucket's lifecycle rule, its schedule and its mode."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from lakewriter.deployable.staged_lake import StagedLake
from lakewriter.deployable.workers import compute_tasks_memory, find_disk, find_memory
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy.checkpoint import locate_checkpoints
from lakewriter.policy.prefixes import list_key_prefixes
from lakewriter.report import format_count, format_hours
from lakewriter.spec.deployment import CANARY
from lakewriter.spec.streamable import unfit

SIZES: Final = {
    "spark.driver.cores": "deployment.spark.driver.cores",
    "spark.driver.memory": "deployment.spark.driver.memory",
    "spark.driver.memoryOverhead": "deployment.spark.driver.memory",
    "spark.executor.cores": "deployment.spark.executor.cores",
    "spark.executor.memory": "deployment.spark.executor.memory",
    "spark.executor.memoryOverhead": "deployment.spark.executor.memory",
    "spark.executor.pyspark.memory": "limits.row_group_mb",
}
"""Spark's settings of a worker's size, by the key that sets them: given otherwise, a worker may not fit its tasks."""


def check_workers(settings: StagedLake) -> Iterator[str]:
    """Refuse a driver or executors of a size that EMR Serverless does not have, or that its tasks do not fit."""
    spark = settings.deployment.spark
    tasks = compute_tasks_memory(spark.executor, settings.spec.limits)
    for name, worker, beside in (("driver", spark.driver, 0), ("executor", spark.executor, tasks)):
        for find_size in (partial(find_memory, tasks=beside), find_disk):
            try:
                find_size(worker, name)
            except SpecInvalidError as error:
                yield f"{error.message} {error.remedy}".strip()
    for setting, key in SIZES.items():
        if setting in spark.conf:
            yield (
                f"deployment.spark.conf: {setting!r} is given; expected the size of workers under {key}, from which "
                "the memory of their tasks follows."
            )


def check_quota(settings: StagedLake) -> Iterator[str]:
    """Refuse more vCPUs than the account may run at a time."""
    spark, allowed = settings.deployment.spark, settings.deployment.account_vcpu_quota
    if spark.vcpus <= allowed:
        return
    canary = 2 * CANARY.cores if spark.mode == "STREAMING" else 0
    beside = f", and the canary's {canary} beside them," if canary else ""
    room = (allowed - spark.driver.cores - canary) // spark.executor.cores
    executors = format_count(spark.max_executors, "executor")
    lower = f"Lower it to {room}" if room >= 1 else "Take smaller workers"
    yield (
        f"deployment.spark.max_executors: {executors} of {spark.executor.cores} vCPUs and a driver of "
        f"{spark.driver.cores}{beside} make {spark.vcpus} vCPUs; expected at most account_vcpu_quota, {allowed}. "
        f"{lower}, or have EMR Serverless's quota 'Max concurrent vCPUs per account' raised and account_vcpu_quota say "
        "so."
    )


def check_uploads(settings: StagedLake) -> Iterator[str]:
    """Refuse a lifecycle rule that would abort the staged uploads of a running load."""
    deployment = settings.deployment
    days, longest = deployment.abort_incomplete_uploads_days, deployment.spark.longest_load
    if deployment.existing.bucket or timedelta(days=days) > longest:
        return
    yield (
        f"deployment.abort_incomplete_uploads_days: {days} is too few: a load may take {format_hours(longest)} with "
        f"all its {deployment.spark.attempts} attempts, and until it commits, its files are incomplete uploads; "
        f"expected {longest.days + 1} or more. Raise it, or lower timeout_minutes, queue_timeout_minutes or attempts "
        "of spark."
    )


def check_schedule(settings: StagedLake) -> Iterator[str]:
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


def check_continuous(settings: StagedLake) -> Iterator[str]:
    """Refuse a file that cannot be run continuously, and checkpoints on this machine or in a table's folder."""
    spec = settings.spec
    if settings.deployment.spark.mode != "STREAMING":
        return
    for problem in unfit(spec):
        yield f"deployment.spark.mode is STREAMING: {problem.message} {problem.remedy}".strip()
    if spec.checkpoint is None:
        return
    location = locate_checkpoints(spec)
    if location is None:
        yield (
            f"checkpoint: {spec.checkpoint!r} is on this machine; expected s3://..., in a folder of the pipeline's own."
        )
        return
    taken = {start: f"table {table.id!r}" for table in spec.tables for start in list_key_prefixes(table)}
    taken[f"{join_key(spec.access.prefix, CONTROL_DIRECTORY)}/"] = "the job's own records"
    bucket, path = location
    owner = next((name for start, name in taken.items() if f"{path}/".startswith(start)), None)
    if bucket == spec.access.bucket and owner:
        yield (
            f"checkpoint: {spec.checkpoint!r} is in the folder of {owner}; expected a folder of its own, such as "
            f"s3://{join_key(spec.access.bucket, spec.access.prefix, '_checkpoints')}."
        )
