"""Check a load against the limits of EMR Serverless, the account and the bucket's lifecycle rule."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from infra.pipeline.capacity import compute_tasks_memory, find_disk, find_memory
from infra.settings import Settings
from infra.text import format_hours
from lakewriter.errors import SpecInvalidError
from lakewriter.report import format_count
from lakewriter.spec.deployment import CANARY

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


def check_workers(settings: Settings) -> Iterator[str]:
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


def check_quota(settings: Settings) -> Iterator[str]:
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


def check_orphans(settings: Settings) -> Iterator[str]:
    """Refuse to have files deleted as orphans that an upload may still complete.

    A completed upload has the time at which it began: S3 may show a file of that age which its load is about to commit.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
    """
    deployment, maintenance = settings.deployment, settings.spec.maintenance
    if maintenance is None or maintenance.delete_orphans_days is None:
        return
    days, most = maintenance.delete_orphans_days, deployment.abort_incomplete_uploads_days
    if days <= most:
        yield (
            f"maintenance.delete_orphans_days: {days} is too few: an upload of a load may be completed for {most} days "
            f"(deployment.abort_incomplete_uploads_days), and is as old as its beginning; expected {most + 1} or more."
        )


def check_uploads(settings: Settings) -> Iterator[str]:
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
