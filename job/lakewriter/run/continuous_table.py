"""One table of a continuous run, and its history: their streaming query, each micro-batch of which is a load."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakewriter.aws import Clients
from lakewriter.commit.batches import RECENT_BATCHES, clear_batches, require_stream
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.resets import settle_backfill
from lakewriter.errors import (
    CODES,
    CatalogFailedError,
    CommitUnknownError,
    EndpointUnreachableError,
    LakeError,
    NoAnswerError,
    SourceFailedError,
    SourceUnreachableError,
)
from lakewriter.lineage.stream_follower import StreamFollower
from lakewriter.receipt import Batch
from lakewriter.report import TableReport, TableResult, format_count
from lakewriter.run.continuous_metrics import MinuteMetrics
from lakewriter.run.continuous_status import BatchMetrics, Lag, TableStatus
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load
from lakewriter.run.pace import Pace, restart_pause
from lakewriter.run.prepare import add_nameless
from lakewriter.run.stop import Stopped
from lakewriter.source.request import Feed, RowsRequest, SparkFactory
from lakewriter.source.spark_failures import SPARK_ERRORS
from lakewriter.source.streams import TableStream
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

RESTARTS: Final = 6
"""Times in a row that a table's query is started again after a failure that may pass and is no outage."""
OUTAGES: Final = (
    CatalogFailedError,
    CommitUnknownError,
    EndpointUnreachableError,
    NoAnswerError,
    SourceUnreachableError,
)
"""Failures of services that do not answer. A continuous run waits for them, however long they take; a single load gives
up an endpoint that has never answered."""
MOST_NOTED: Final = 100
"""Properties without a column that a run reports one by one; every batch counts them."""
_BACKLOGS: Final = ("maxOffsetsBehindLatest", "numFilesOutstanding", "numBytesOutstanding")
"""The metrics in which Spark's sources report what they have not read yet."""


Maintain = Callable[[Pipeline, TableSpec], TableReport | None]
"""Does a part of a table's upkeep; None where there is nothing to do."""


class Watch(Protocol):
    """A listener to the progress of a continuous run."""

    def step(self, table: TableSpec, step: str, detail: str) -> None:
        """Take the step a table is in, with a detail for people; ``note`` is no step, and is said once a run."""

    def batch(self, table: TableSpec, metrics: BatchMetrics) -> None:
        """Take a batch that is done."""

    def minute(self, metrics: list[MinuteMetrics]) -> None:
        """Take the metrics of a minute, of all tables."""


class _Stopping(Exception):  # noqa: N818 - not a failure: the run is ending
    """A batch came while the run was ending; it is the first one of the next run."""


class Upkeep:
    """The upkeep of one table by its continuous run: after its first batch, so that a run which is started again and
    again does it as well, and then at the first batch after each ``every``."""

    def __init__(self, pipeline: Pipeline, table: TableSpec, watch: Watch, parts: Sequence[Maintain]) -> None:
        self._pipeline, self._table, self._watch, self._parts = pipeline, table, watch, parts
        self._due_at = 0.0

    def run_if_due(self) -> None:
        """Keep the table up between two batches if it is time. The batch is done: a part that fails is noted, and tried
        again at its next time."""
        rules = self._pipeline.spec.maintenance
        if rules is None or rules.by != "run" or time.monotonic() < self._due_at:
            return
        self._due_at = time.monotonic() + rules.every_seconds
        for part in self._parts:
            try:
                report = part(self._pipeline, self._table)
            except LakeError as error:
                what = f"its upkeep failed; tried again in {rules.every_seconds} s: {error}"
                self._watch.step(self._table, "note", what)
                continue
            if report is not None and report.counts is not None:
                self._watch.step(self._table, report.counts.field, report.counts.describe())


class TableRun:
    """One table's query, started again where that can help."""

    def __init__(
        self,
        spec: Spec,
        table: TableSpec,
        clients: Clients,
        spark: SparkFactory,
        watch: Watch,
        stop: threading.Event,
        upkeep: Sequence[Maintain],
    ) -> None:
        self.spec = spec.keep_tables({table.id})
        self.table = table
        self.status = TableStatus()
        self.error: LakeError | None = None
        self._clients = clients
        self._spark = spark
        self._watch = watch
        self._stop = stop
        self._pipeline = Pipeline.open(self.spec, clients)
        self._upkeep = [Upkeep(self._pipeline, one, watch, upkeep) for one in self.spec.tables]
        self._lag = Lag(spec.interval_seconds)
        self._pace = Pace(spec.interval_seconds, spec.most_interval_seconds)
        self._noted: set[str] = set()
        self._is_noted = False
        self._noted_texts: set[str] = set()
        self._idle_at: datetime | None = None
        """The source had nothing new at this time; only the thread that reports the minutes uses it."""
        self._gate = threading.Lock()
        self._started = threading.Event()
        self._checkpoint = ""
        self._since: Batch | None = None
        self._query: StreamingQuery | None = None
        self._stream: TableStream | None = None
        self._raised: BaseException | None = None
        self._bytes = 0
        self._retry_at = 0.0
        self._failures = 0
        """Failures in a row that were no outages."""
        self._follower = StreamFollower(spec, spec.lineage, table) if spec.lineage is not None else None

    @property
    def over(self) -> bool:
        """True if this table has failed for good."""
        return self.status.state == "failed"

    def describe(self) -> TableStatus:
        """Return the status, as fresh as the table is known to be."""
        times = [at for at in (self.status.fresh_at, self._idle_at) if at is not None]
        return self.status.model_copy(update={"fresh_at": max(times, default=None)})

    def poll(self) -> None:
        """Start the query when it is time, and see whether it still runs."""
        if self.over or self._stop.is_set():
            return
        try:
            if self._query is None:
                if time.monotonic() >= self._retry_at:
                    self._start()
            elif not self._query.isActive:
                raise self._explain_end(self._query)
        except Stopped:
            # By a signal while Spark starts, whose call ends no other way: no query runs yet.
            self._stop.set()
        except LakeError as error:
            self._plan_restart(error)

    def stop(self) -> None:
        """Wait for the batch in hand, then end the query."""
        with self._gate:
            if self._query is not None:
                self._query.stop()
                self._query = None
        if not self.over:
            self.status = self.status.model_copy(update={"state": "stopped"})
        if self._follower is not None:
            self._follower.finish(self.error if self.over else None)

    def _start(self) -> None:
        self._started.clear()
        self._raised = None
        # Each backfill has its own checkpoint, so no batch may change the number.
        settle_backfill(self._pipeline.first_control, self.table.backfill, self._pipeline.open_clients)
        state = self._pipeline.first_control.state.read()
        if state.pending is None:
            # Before Spark plans a batch, which would stay in the checkpoint.
            require_stream(state, self.table.id)
        for name in self._beside:
            beside = self._pipeline.controls[name].state.read()
            if beside.pending is None:
                require_stream(beside, name)
        folder = f"{self.spec.pipeline}/{self.table.id}/v{state.backfill:010d}"
        self._checkpoint = f"{str(self.spec.checkpoint).rstrip('/')}/{folder}"
        # Read before Spark reads the checkpoint, which is then never older than this batch.
        self._since = state.batch
        self._stream = TableStream(self._spark(), add_nameless(self.table, state.names), self._checkpoint)
        self._stream.require_topics()
        self._tell_once(self._stream.take_notes())
        writer = self._stream.frame.writeStream.foreachBatch(self._run_batch).option(
            "checkpointLocation", self._checkpoint
        )
        try:
            self._query = writer.trigger(processingTime=f"{self.spec.interval_seconds} seconds").start()
        except SPARK_ERRORS as error:
            raise self._stream.origin.make_error(error) from error
        self.status = self.status.model_copy(update={"state": "running", "query": str(self._query.id)})
        self._watch.step(self.table, "running", f"a batch every {self.spec.interval_seconds} s")
        self._started.set()

    def _run_batch(self, frame: DataFrame, number: int) -> None:
        """Load a micro-batch. Spark calls this for every one, in a thread of its own; an exception ends the query."""
        self._started.wait()
        if not self._gate.acquire(blocking=False):
            raise _Stopping
        try:
            if self._stop.is_set():
                raise _Stopping
            pause = self._load(frame, number)
            if not self._stop.is_set():
                for upkeep in self._upkeep:
                    upkeep.run_if_due()
            self._pause(pause)
        except BaseException as error:
            self._raised = error
            raise
        finally:
            self._gate.release()

    def _pause(self, seconds: float) -> None:
        """Let more arrive for the next batch, which Spark plans when this one's call returns."""
        if seconds and not self._stop.wait(seconds):
            self._lag.extend(time.time())

    def _load(self, frame: DataFrame, number: int) -> float:
        """Load a batch; return how long to wait before the next one."""
        began = time.time()
        stream = self._stream
        assert stream is not None
        planned = stream.read_plan(number)
        batch = Batch(str(self.status.query), number, planned.digest)
        # At least as many partitions as the files that the batch before filled: rows may grow on their way, and batches
        # are alike.
        filled = math.ceil(self._bytes / self.spec.limits.target_file_bytes)

        def opener(request: RowsRequest) -> Feed:
            # A batch has the rows that came since the one before, whatever the cursor.
            return stream.open_feed(frame, planned, replace(request, condition=None), least=filled)

        report = load(
            self.spec,
            job_id=batch.job_id,
            clients=self._clients,
            spark=self._spark,
            progress=lambda table, step, detail: self._tell_step(table, step, f"batch {batch.number}: {detail}"),
            kind=MicroBatch(batch, self._since, opener, follower=self._follower, beside=self._beside),
        )
        for failed in report.tables:
            if failed.code is not None:
                raise CODES[failed.code](failed.message or "")
        result = report.tables[0]
        # An acceptance is only for the batch that could not be loaded before, which is the first one.
        self.spec = self.spec.model_copy(update={"acceptance": None})
        self._bytes = result.bytes
        self._note_once(report.notes)
        self._tell_once(stream.take_notes())
        return self._note_batch(batch, result, began)

    @property
    def _beside(self) -> frozenset[str]:
        """The id of the table's history; none without one."""
        return frozenset(self._pipeline.controls.keys() - {self.table.id})

    def _tell_step(self, table: TableSpec, step: str, detail: str) -> None:
        # A failure is reported once, when it is known what follows from it.
        if step != "failed":
            self._watch.step(table, step, detail)

    def _note_batch(self, batch: Batch, result: TableResult, began: float) -> float:
        ended, behind = time.time(), self._read_backlog()
        seconds = round(ended - began, 3)
        is_behind = any(_is_positive(behind.get(name)) for name in _BACKLOGS)
        pause = self._pace.note(ended, size=result.bytes, files=result.files, seconds=seconds, is_behind=is_behind)
        metrics = BatchMetrics(
            time=datetime.now(UTC),
            pipeline=self.spec.pipeline,
            table=self.table.id,
            batch=batch.number,
            job_id=batch.job_id,
            status=result.status,
            rows=result.rows,
            files=result.files,
            small_files=result.small_files,
            bytes=result.bytes,
            changes=result.changes,
            rows_set_aside=result.rows_set_aside,
            lag_seconds=self._lag.of(began, ended),
            seconds=seconds,
            behind=behind,
            undeclared=result.undeclared,
            merged=result.merged,
        )
        self._note_undeclared(result)
        first = self.status.last is None
        self._failures = 0
        update = {
            "restarts": 0,
            # What came before the batch was planned is in it, or in what the source says it still has.
            "fresh_at": None if is_behind else datetime.fromtimestamp(began, UTC),
            "interval_seconds": self._pace.interval,
            "files_a_day": self._pace.files_a_day,
        }
        self.status = self.status.after(metrics).model_copy(update={k: v for k, v in update.items() if v is not None})
        self._watch.batch(self.table, metrics)
        if first or batch.number % RECENT_BATCHES == 0:
            self._clear(batch)
        return pause

    def _note_once(self, notes: tuple[str, ...]) -> None:
        """Log what went wrong beside the loads, once a run: its numbers grow with every batch."""
        if notes and not self._is_noted:
            self._is_noted = True
            for note in notes:
                self._watch.step(self.table, "note", note)

    def _tell_once(self, notes: Iterable[str]) -> None:
        """Log notes on the source that the run has not logged: a query that is started again has the same ones."""
        for note in notes:
            if note not in self._noted_texts:
                self._noted_texts.add(note)
                self._watch.step(self.table, "note", note)

    def _note_undeclared(self, result: TableResult) -> None:
        """Log every property that has no column, once; only the first ones, where documents have ever new names."""
        for name in sorted(result.undeclared.keys() - self._noted)[: MOST_NOTED - len(self._noted)]:
            self._noted.add(name)
            self._watch.step(self.table, "note", f"values of {name!r} are left out: the table has no column for them")

    def refresh(self) -> None:
        """Note the time if the last trigger found nothing new in the source."""
        query = self._query
        if query is None or self._gate.locked() or not query.isActive or query.status["isDataAvailable"]:
            return
        if self._started.is_set() and query.status["message"].startswith("Waiting"):
            # The last trigger that found nothing was no longer ago than this.
            self._idle_at = datetime.now(UTC) - timedelta(seconds=self.spec.interval_seconds)

    def _clear(self, batch: Batch) -> None:
        try:
            clear_batches(self._pipeline.first_control, batch)
        except LakeError as error:
            # The batch is done; objects that could not be deleted only take storage.
            self._tell_step(self.table, "done", f"old control objects were not cleared away: {error}")

    def _read_backlog(self) -> dict[str, str]:
        progress = self._query.lastProgress if self._query is not None else None
        sources = progress.sources if progress is not None else []
        return {name: str(value) for source in sources for name, value in (source.metrics or {}).items()}

    def _explain_end(self, query: StreamingQuery) -> LakeError:
        """Return the error by which the query ended."""
        raised = self._raised
        if isinstance(raised, LakeError):
            return raised
        if raised is not None and not isinstance(raised, SPARK_ERRORS):
            raise raised
        assert self._stream is not None
        return self._stream.origin.make_error(raised) if raised is not None else self._stream.explain_end(query)

    def _plan_restart(self, error: LakeError) -> None:
        self._query = None
        outage = isinstance(error, OUTAGES)
        self._failures += not outage
        # The error of a source that worked until now does not say whether it may pass, so it may.
        may_pass = error.transient or (isinstance(error, SourceFailedError) and self.status.query is not None)
        again = outage or (may_pass and self._failures <= RESTARTS)
        pause = restart_pause(self.status.restarts)
        self._retry_at = time.monotonic() + pause
        restarts = self.status.restarts + again
        state = "restarting" if again else "failed"
        failures = self.status.failures + 1
        update = {
            "state": state,
            "restarts": restarts,
            "failures": failures,
            "code": error.code,
            "message": str(error),
        }
        self.status = self.status.model_copy(update=update)
        self.error = error
        if self.over and self._follower is not None:
            self._follower.finish(error)
        self._watch.step(self.table, state, f"in {pause:.0f} s: {error}" if again else str(error))


def _is_positive(value: str | None) -> bool:
    return value is not None and value.replace(".", "", 1).isdigit() and float(value) > 0


def describe_batch(metrics: BatchMetrics) -> str:
    """Return a batch in words."""
    files = f"{format_count(metrics.rows, 'row')} in {format_count(metrics.files, 'file')}"
    aside = f", {format_count(metrics.rows_set_aside, 'bad row')} set aside" if metrics.rows_set_aside else ""
    return f"batch {metrics.batch}: {files}{aside}, {metrics.seconds:.1f} s"
