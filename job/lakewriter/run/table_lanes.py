"""Run several tables of a load at a time: many small ones, and beside them a few of the others."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import Final, TypeVar

from pyspark.sql import SparkSession

from lakewriter.errors import LakeError
from lakewriter.run.kinds import Sync
from lakewriter.run.shared_jobs import SMALL_BYTES, SharedJobs
from lakewriter.run.staged_table import Load
from lakewriter.source.file_look import read_plain_options
from lakewriter.source.files.folder_listing import list_stored
from lakewriter.source.request import Shareable, SparkFactory
from lakewriter.source.session import use_scheduler_pool
from lakewriter.spec.table_spec import TableSpec

SMALL_AT_ONCE: Final = 32
"""Small tables at a time: half as many as the connections that a client keeps, since they wait for requests nearly all
the time."""

Outcome = TypeVar("Outcome")


def run_tables(
    load: Load, tables: Sequence[TableSpec], work: Callable[[Load, TableSpec], Outcome]
) -> tuple[Outcome, ...]:
    """Do ``work`` on every table, as many at a time as ``parallel_tables`` says, or as their sizes allow."""
    limits = load.pipeline.spec.limits
    if len(tables) == 1:
        return (work(load, tables[0]),)
    load = replace(load, spark=_open_in_turn(load.spark))
    if limits.parallel_tables is not None or len(tables) <= limits.tables_at_once:
        shared_load = replace(load, shared=SharedJobs(len(tables), limits.tables_at_once))
        return _run_lane(limits.tables_at_once, partial(work, shared_load), tables)
    small = _find_small(load, tables)
    lanes = [
        _Lane("small", SMALL_AT_ONCE, [table for table in tables if table.id in small]),
        _Lane("large", limits.tables_at_once, [table for table in tables if table.id not in small]),
    ]

    def run(lane: _Lane) -> tuple[Outcome, ...]:
        shared = SharedJobs(len(lane.tables), lane.at_once)
        shared_load = replace(load, spark=partial(_open_in_pool, load.spark, lane.name), shared=shared)
        return _run_lane(lane.at_once, partial(work, shared_load), lane.tables)

    with ThreadPoolExecutor(len(lanes), thread_name_prefix="lane") as threads:
        outcomes = chain.from_iterable(threads.map(run, lanes))
        by_id = dict(zip((table.id for lane in lanes for table in lane.tables), outcomes, strict=True))
    return tuple(by_id[table.id] for table in tables)


@dataclass(frozen=True)
class _Lane:
    """Tables that run beside those of other lanes, ``at_once`` of them at a time."""

    name: str
    at_once: int
    tables: Sequence[TableSpec]


def _run_lane(at_once: int, work: Callable[[TableSpec], Outcome], tables: Sequence[TableSpec]) -> tuple[Outcome, ...]:
    with ThreadPoolExecutor(at_once, thread_name_prefix="table") as pool:
        return tuple(pool.map(work, tables))


def _open_in_turn(spark: SparkFactory) -> SparkFactory:
    """Return the session, opened by one thread alone: the settings of its start are those of the whole process."""
    lock = Lock()

    def open_session() -> SparkSession:
        with lock:
            return spark()

    return open_session


def _open_in_pool(spark: SparkFactory, pool: str) -> SparkSession:
    """Return the session, with this thread's jobs in a pool: small tables and others do not wait for all of each
    other."""
    session = spark()
    use_scheduler_pool(session, pool)
    return session


def _find_small(load: Load, tables: Sequence[TableSpec]) -> set[str]:
    """Return the tables whose input is known to be small without Spark; an input that cannot be listed may have any
    size."""
    with ThreadPoolExecutor(SMALL_AT_ONCE, thread_name_prefix="size") as threads:
        sizes = list(threads.map(partial(_measure, load), tables))
    return {table.id for table, size in zip(tables, sizes, strict=True) if size is not None and size <= SMALL_BYTES}


def _measure(load: Load, table: TableSpec) -> int | None:
    if isinstance(load.kind, Sync) and (part := load.kind.tables.get(table.id)) is not None and part.feed is not None:
        return part.feed.input_bytes if isinstance(part.feed, Shareable) else None
    if table.read.sql is not None or load.kind.opener is not None:
        return None
    try:
        return sum(file.size for file in list_stored(table.read.paths, read_plain_options(table.read), table.id).files)
    except LakeError:
        # The table's own read reports what is wrong with the source.
        return None
