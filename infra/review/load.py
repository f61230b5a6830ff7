"""Describe what a load writes, when it starts, and the most that it may take."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from infra.review.page import Cell, Code, Line, Section, Table
from infra.review.prices import Prices, describe_costs
from infra.review.templates import Templates
from infra.settings import Settings
from lakewriter.deployable.workers import Capacity, compute_capacity
from lakewriter.naming import ControlKeys, join_key
from lakewriter.report import format_count, format_hours
from lakewriter.spec.cron import Cron
from lakewriter.spec.deployment import Deployment, Schedule, Spark, Worker
from lakewriter.spec.lineage import LOG
from lakewriter.spec.specification import Limits, Spec
from lakewriter.spec.stream import MessageSource
from lakewriter.spec.table_spec import TableSpec

JOB_ID: Final = "5f0e4c1a-8f0b-5d57-9a53-3f1c2d4b6e70"
STARTED: Final = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)
"""A Monday; examples are made with it, so that a review is the same whenever it is made."""
EXAMPLES: Final = 3


def describe_names(spec: Spec) -> Section:
    """Describe each table's name in the catalog and the key of an example file."""
    control = f"s3://{join_key(spec.access.bucket, ControlKeys(spec.access.prefix, spec.pipeline).root)}/"
    columns = ("From", _name_kind(spec), "A file of a load that starts on 4 January 2027 at 6:00")
    widths = (28, 24, 48)
    return Section(
        "Names and example keys",
        f"The objects of a load's tables, all of them in s3://{spec.access.bucket}. What the job records of its loads "
        f"is under {control}{_describe_lineage(spec)}",
        (Table(columns, tuple(_describe_table(table, spec.source) for table in spec.tables), widths=widths),),
    )


def _describe_lineage(spec: Spec) -> str:
    if spec.lineage is None:
        return ""
    where = "the job's log" if spec.lineage.to == LOG else spec.lineage.to
    return f" Each load sends OpenLineage events, with the names of tables, columns and sources, to {where}"


def _name_kind(spec: Spec) -> str:
    table = "Iceberg table" if spec.iceberg else "table"
    if spec.in_glue:
        return f"Glue {table}"
    rest = spec.rest_service
    return f"{table} in {rest.warehouse or rest.uri}" if rest else table.capitalize()


def _describe_table(table: TableSpec, messages: MessageSource | None) -> tuple[Cell, ...]:
    names = table.layout.bind(job_id=JOB_ID, attempt="review", start=STARTED, sync_id=1).number(0, 0, 1)
    source = ".".join(part for part in (table.source_schema, table.source_table) if part)
    paths = messages.paths if messages else table.read.paths
    reads: list[Line] = [Code(path) for path in paths]
    return (source, *(reads or [_name_source(table)])), Code(table.id), Code(names.object_key(1))


def _name_source(table: TableSpec) -> str:
    return "a program's DataFrame" if table.is_given else table.read.format or "SQL"


def describe_schedule(settings: Settings) -> Section:
    """Describe when loads start."""
    given = settings.deployment.schedule
    if given is None:
        return Section("Schedule", "None: loads start by hand, or from another system that starts the state machine.")
    facts: tuple[tuple[Cell, ...], ...] = (
        ("Expression", Code(given.expression)),
        ("Time zone", given.timezone),
        ("For example", _list_examples(given)),
        ("Flexible window", f"{given.flexible_minutes} min" if given.flexible_minutes else "none"),
        ("Enabled", "yes" if given.enabled else "no"),
    )
    text = "A start that falls due while a load runs is skipped, not queued."
    return Section("Schedule", text, (Table((), facts),))


def _list_examples(given: Schedule) -> Cell:
    if given.cron is None:
        return f"every {given.rate}, counted from the deployment"
    starts = Cron.parse(given.cron).find_next(STARTED.replace(hour=0, tzinfo=None), EXAMPLES)
    return tuple(f"{start:%a %d %b %Y, %H:%M}" for start in starts) or "no start from 2027 on"


def describe_limits(settings: Settings, templates: Templates) -> Section:
    """Describe the limits of a load, and the most that it can therefore cost."""
    prices = Prices.load(templates.region, settings.deployment.spark.architecture)
    text = (
        "EMR Serverless bills the vCPU and GB hours of workers that run; an attempt that waits costs nothing. "
        f"{prices.describe_source()}"
    )
    facts = (
        *_describe_attempts(settings.deployment.spark),
        *_describe_application(templates),
        *_describe_maximum(settings.deployment, settings.spec.limits, prices),
        *describe_costs(settings, templates),
    )
    return Section("Limits and the most a load can cost", text, (Table((), facts),))


def _describe_attempts(spark: Spark) -> Iterator[tuple[Cell, ...]]:
    yield "Driver", _describe_worker(spark.driver)
    yield "Executors", f"at most {spark.max_executors}, each of {_describe_worker(spark.executor)}"
    if spark.mode == "STREAMING":
        yield "A load", "goes on until it is stopped"
        return
    yield "An attempt takes", f"at most {format_hours(timedelta(minutes=spark.timeout_minutes))}"
    yield (
        "An attempt waits",
        f"at most {format_hours(timedelta(minutes=spark.queue_timeout_minutes))} for a free application",
    )
    yield "Attempts of a load", f"at most {spark.attempts}, a further one only where it can help"


def _describe_worker(worker: Worker) -> str:
    return f"{format_count(worker.cores, 'vCPU')} and {worker.memory.removesuffix('G')} GB for Spark"


def _describe_application(templates: Templates) -> Iterator[tuple[Cell, ...]]:
    for template, application in templates.list_resources("AWS::EMRServerless::Application"):
        properties = application.properties
        yield "Application", f"{properties['ReleaseLabel']}, {properties['Architecture']}"
        most = {key: templates.resolve(value, template) for key, value in properties["MaximumCapacity"].items()}
        yield "The most at a time", f"{most['Cpu']}, {most['Memory']}, {most['Disk']} of disk"


def _describe_maximum(deployment: Deployment, limits: Limits, prices: Prices) -> Iterator[tuple[Cell, ...]]:
    spark, schedule = deployment.spark, deployment.schedule
    most = compute_capacity(spark, limits)
    workers = 1 + spark.max_executors
    if spark.mode == "STREAMING":
        day = timedelta(days=1)
        # The canary's driver and executor.
        yield "The most in a day", (*_multiply(most, day), prices.format_cost(most, workers + 2, day))
        return
    longest = spark.attempts * timedelta(minutes=spark.timeout_minutes)
    yield "The most a load can take", (*_multiply(most, longest), prices.format_cost(most, workers, longest))
    starts = _count_starts(schedule) if schedule else 0
    if starts:
        # Loads do not overlap, so no more than a day of them fits into a day.
        span = min(starts * longest, timedelta(days=1))
        counted = f"{format_count(starts, 'start')}, {most.cores * (span / timedelta(hours=1)):,.0f} vCPU hours"
        yield "The most in a day", (f"{counted} if each took all it may", prices.format_cost(most, workers, span))


def _count_starts(schedule: Schedule) -> int:
    """Count the starts in a day; at least one, though a rate may be of several days."""
    if schedule.cron is not None:
        return len(Cron.parse(schedule.cron).times)
    periods = schedule.measure_periods()
    return max(timedelta(days=1) // periods[0], 1) if periods else 0


def _multiply(most: Capacity, span: timedelta) -> tuple[str, str]:
    worked = span / timedelta(hours=1)
    return (
        f"{most.cores} vCPUs x {format_hours(span)} = {most.cores * worked:,.0f} vCPU hours",
        f"{most.memory} GB x {format_hours(span)} = {most.memory * worked:,.0f} GB hours",
    )
