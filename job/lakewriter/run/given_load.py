"""Load one table whose tasks Spark's own writer runs. Three kinds of processes share only an ``OpenWrite``: the first
registers and checks the load, the tasks stage the files, and the last binds and settles the load, or withdraws it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, NoReturn

from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.lineage.load_follower import follow_load
from lakewriter.receipt import Totals
from lakewriter.records.state import TableState
from lakewriter.report import RunReport, TableResult
from lakewriter.run.kinds import Plain, Sync
from lakewriter.run.load import (
    NOTHING,
    begin_table,
    close_load,
    commit_table,
    guard_table,
    open_load,
    withdraw_on_error,
    withdraw_table,
)
from lakewriter.run.loader import plan_kind
from lakewriter.run.results import make_not_run
from lakewriter.run.staged_table import Load, Planned, Progress
from lakewriter.run.stop import Stop
from lakewriter.run.table_intent import build_intent
from lakewriter.run.table_staging import check_table, conclude_staging, plan_task
from lakewriter.source.feed import FeedOpener
from lakewriter.source.given_rows import MOST_PARTITIONS
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import IndexKind, TableSpec
from lakewriter.staging.returned import Returned
from lakewriter.staging.stage import SparseIndexes
from lakewriter.staging.task import TaskPlan


@dataclass(frozen=True)
class OpenWrite:
    """A load that is registered and can be staged. It can be pickled: every process makes its own connections.

    ``seconds`` are the durations of its steps so far. ``started`` is when it started; the ``attempt`` may have a later
    time, which is after the table's last commit.
    """

    spec: Spec
    attempt: Attempt
    kind: Plain | Sync
    names: ObjectNames
    state: TableState
    planned: Planned
    plan: TaskPlan
    started: datetime
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def begin_write(
    spec: Spec, *, job_id: str, clients: Clients, opener: FeedOpener, progress: Progress, sync_id: int | None = None
) -> OpenWrite | RunReport:
    """Take steps 1 and 2 of the one table. Return the report where nothing is to be staged, since the load is done or
    failed."""
    table = spec.tables[0]
    if (refusal := explain_unwritable(table)) is not None:
        raise refusal
    clock, opened = time.monotonic(), list[OpenWrite]()
    kind = plan_kind(spec, job_id, clients, _refuse_spark, Plain(opener), sync_id)
    load = open_load(Pipeline.open(spec, clients), job_id, _refuse_spark, progress, kind, Stop())
    started = load.attempt.started

    def begin(load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        begun = begin_table(load, table)
        if isinstance(begun, TableResult):
            return begun, NOTHING
        load = begun.load
        with withdraw_on_error(load, table), check_table(load, table, begun.state, begun.sync) as checked:
            plan = plan_task(load, table, checked.planned, MOST_PARTITIONS, SparseIndexes(MOST_PARTITIONS), None)
        # An opener works in this process only.
        plain = replace(kind, opener=None)
        names, planned = load.names[table.id], checked.planned
        opened.append(OpenWrite(spec, load.attempt, plain, names, begun.state, planned, plan, started))
        return make_not_run(table), NOTHING

    outcome = guard_table(load, table, begin)
    if not opened:
        return close_load(load, (outcome,), clock)
    load.follower.flush()
    return opened[0]


def end_write(write: OpenWrite, clients: Clients, outputs: Sequence[str], progress: Progress) -> RunReport:
    """Make the intent, and do steps 4 to 9; ``outputs`` are what the tasks yielded."""
    load, table = _reopen(write, clients, progress)

    def end(load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        with withdraw_on_error(load, table) as uploads:
            # Spark's writer does not say whether a task ran twice.
            staged = conclude_staging(load, table, write.planned, Returned.parse(outputs), uploads, repeats=True)
            intent = build_intent(load, table, write.state, staged)
        return commit_table(load, table, write.state, intent, staged.receipts), staged.receipts.totals

    return close_load(load, (guard_table(load, table, end),), _find_start(write))


def abandon_write(write: OpenWrite, clients: Clients, outputs: Sequence[str], progress: Progress) -> RunReport | None:
    """Withdraw what is staged, after a task that failed for good; what is bound already is left as it is.

    Spark also calls this after ``end_write`` has failed. The load has reported its end by then, so None is returned.
    """
    load, table = _reopen(write, clients, progress)
    first = load.pipeline.first_control
    if first.read_json(first.keys.outcome(load.attempt.job_id, load.attempt.id)) is not None:
        return None

    def abandon(load: Load, table: TableSpec) -> NoReturn:
        error = SourceFailedError(
            f"table {table.id!r}: Spark ended the write before all of its tasks were done.",
            remedy="See the error that Spark raised, and write again under the same job id.",
        )
        withdraw_table(load, table, Returned.parse(outputs).open(load.control(table).read_body), error)
        raise error

    return close_load(load, (guard_table(load, table, abandon),), _find_start(write))


def _find_start(write: OpenWrite) -> float:
    """Return when the load started by this process's clock, whose zero is another than that of the first process."""
    return time.monotonic() - max((datetime.now(UTC) - write.started).total_seconds(), 0.0)


def _reopen(write: OpenWrite, clients: Clients, progress: Progress) -> tuple[Load, TableSpec]:
    (table,) = write.spec.tables
    pipeline, names, attempt = Pipeline.open(write.spec, clients), {table.id: write.names}, write.attempt
    follower = follow_load(write.spec, job_id=attempt.job_id, attempt=attempt.id, started=write.started)
    follower.resume(table, write.planned.shape, write.planned.action)
    return Load(pipeline, attempt, _refuse_spark, progress, names, write.kind, Stop(), follower=follower), table


def _refuse_spark() -> SparkSession:
    raise RuntimeError("the processes of Spark's writer have no session")


def explain_unwritable(table: TableSpec) -> SpecInvalidError | None:
    """Say why Spark's writer cannot write a table: its rows are prepared by jobs of their own, or by Spark's SQL."""
    for key, is_wanted, why in _HINDRANCES:
        if is_wanted(table):
            also = ", or set index: sparse" if key == "index: contiguous" else ""
            return SpecInvalidError(
                f'table {table.source_table!r}: {key} {why}, which df.write.format("lakewriter") cannot do.',
                remedy=f"Use lakewriter.write(df, ...){also}.",
            )
    return None


_HINDRANCES: Final[Sequence[tuple[str, Callable[[TableSpec], bool], str]]] = (
    ("index: contiguous", lambda table: table.index == IndexKind.CONTIGUOUS, "counts the rows before they are written"),
    ("cursor", lambda table: table.cursor is not None, "leaves out rows by a filter of Spark's"),
    ("columns", lambda table: bool(table.columns), "casts values by Spark's rules"),
    ("deleted", lambda table: table.deleted is not None, "is an expression of Spark's SQL"),
    ("envelope", lambda table: table.envelope is not None, "makes rows of events first"),
    ("expect: sql", lambda table: bool(table.conditions), "is an expression of Spark's SQL"),
    ("expect: unique", lambda table: bool(table.unique_checks), "reads the rows a second time"),
    ("history", lambda table: table.group is not None, "writes two tables that are published together"),
    ("partition_by", lambda table: bool(table.partition_by), "brings the rows of a partition together"),
    ("a layout of one file a load", lambda table: table.layout.single_file, "brings all rows into one task"),
    ("a layout that counts files", lambda table: "counter" in table.layout.template.variables, "needs their number"),
    ("a collection of documents", lambda table: table.collection is not None, "looks at them before they are written"),
)
