"""A continuous run: each table its own query, until it is asked to stop or none can go on."""

import contextlib
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import LakeError
from lakewriter.lineage.load_follower import open_sender
from lakewriter.run.continuous_metrics import MinuteMetrics, Send, tell_minutes
from lakewriter.run.continuous_status import POLL_SECONDS, RunStatus, StatusObject, beat
from lakewriter.run.continuous_table import OUTAGES, Maintain, TableRun, Watch
from lakewriter.run.outcome_file import choose_error
from lakewriter.run.pace import restart_pause
from lakewriter.source.request import SparkFactory
from lakewriter.source.spark_failures import SPARK_ERRORS
from lakewriter.spec.specification import Spec
from lakewriter.spec.streamable import require_continuous

LAST_WORD_SECONDS: Final = 10.0
"""A run that has ended waits so long for the metrics of its last minute to be sent."""


def run_continuously(
    spec: Spec,
    *,
    clients: Clients,
    spark: SparkFactory,
    watch: Watch,
    stop: threading.Event,
    upkeep: Sequence[Maintain],
    send: Send | None = None,
) -> tuple[RunStatus, LakeError | None]:
    """Run until ``stop`` is set or no table can continue. Return how the run ended, and one error for all tables.

    ``upkeep`` are the parts of a table's upkeep where ``maintenance`` has a run do it. ``send`` takes every minute's
    metrics; its failure is noted once, and does not end the run.
    """
    require_continuous(spec)
    # A table's history has the same batches, and is a part of its run.
    runs = [TableRun(spec, table, clients, spark, watch, stop, upkeep) for table in spec.named_tables]
    pipeline = Pipeline.open(spec, clients)
    status = StatusObject(pipeline.store, pipeline.keys.continuous)
    _wait_for(status.require_understood, stop)
    describe, over = _make_describer(spec, runs), threading.Event()

    def describe_now() -> RunStatus:
        return describe("stopping" if stop.is_set() else "running")

    def tell_each_minute() -> None:
        tell_minutes(lambda: _refresh(runs, describe_now), _make_teller(spec, watch, send), over)

    beating = threading.Thread(target=lambda: beat(status, describe_now, over), name="status")
    # A daemon thread: a CloudWatch that does not answer does not keep the process from ending.
    telling = threading.Thread(target=tell_each_minute, name="minutes", daemon=True)
    for thread in (beating, telling):
        thread.start()
    try:
        _poll_until_stopped(spec, runs, stop)
    finally:
        stop.set()
        try:
            for run in runs:
                run.stop()
            if spec.lineage is not None:
                open_sender(spec.lineage).drain()
        finally:
            over.set()
            beating.join()
            telling.join(LAST_WORD_SECONDS)
    error = choose_error([run.error for run in runs if run.over and run.error is not None])
    final = describe("failed" if error else "stopped")
    status.write(final, time.monotonic())
    return final, error


def _make_teller(spec: Spec, watch: Watch, send: Send | None) -> Send:
    sent: list[str] = []

    def tell(metrics: list[MinuteMetrics]) -> None:
        watch.minute(metrics)
        try:
            if send is not None:
                send(metrics)
        except LakeError as error:
            if error.code not in sent:
                sent.append(error.code)
                watch.step(spec.tables[0], "note", f"metrics were not sent: {error}")

    return tell


def _refresh(runs: list[TableRun], describe: Callable[[], RunStatus]) -> RunStatus:
    for run in runs:
        with contextlib.suppress(*SPARK_ERRORS):
            # The run itself handles a query that ends during the request.
            run.refresh()
    return describe()


def _wait_for(step: Callable[[], None], stop: threading.Event) -> None:
    """Repeat ``step`` while the store does not answer."""
    for restarts in itertools.count():
        try:
            step()
        except OUTAGES:
            if stop.wait(restart_pause(restarts)):
                raise
        else:
            return


def _poll_until_stopped(spec: Spec, runs: list[TableRun], stop: threading.Event) -> None:
    while not stop.is_set():
        for run in runs:
            run.poll()
        failed = [run.over for run in runs]
        if all(failed) or (any(failed) and spec.on_failure == "stop"):
            return
        stop.wait(POLL_SECONDS)


def _make_describer(spec: Spec, runs: list[TableRun]) -> Callable[[Any], RunStatus]:
    started, name = datetime.now(UTC), uuid.uuid4().hex[:12]

    def describe(state: Any) -> RunStatus:
        return RunStatus(
            pipeline=spec.pipeline,
            run=name,
            state=state,
            started_at=started,
            at=datetime.now(UTC),
            interval_seconds=spec.interval_seconds,
            tables={run.table.id: run.describe() for run in runs},
        )

    return describe
