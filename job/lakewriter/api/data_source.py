"""``df.write.format("lakewriter")``: Spark's own writer, whose tasks stage the files of a load."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakewriter.api.pipeline_file import LOCAL, LakeFile, Opened, narrow, require_done
from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.operate.job_ids import choose_job_id
from lakewriter.operate.load_ending import PhaseClock, leave_ending
from lakewriter.report import RunReport
from lakewriter.run.given_load import OpenWrite, abandon_write, begin_write, end_write
from lakewriter.source.arrow_types import check_batch
from lakewriter.source.given_rows import GivenRows
from lakewriter.source.session import keep_active_session
from lakewriter.source.time_zone import is_started
from lakewriter.spec.specification import Spec
from lakewriter.staging.stage import run_task

NAME: Final = "lakewriter"
OPTIONS: Final = ("lake", "table", "job_id", "stage", "sync_id", "local")

LOG: Final = logging.getLogger(__name__)


def register(spark: SparkSession) -> None:
    """Make ``df.write.format("lakewriter")`` known to a session.

    Args:
        spark: The session; one of ``open_spark`` knows the format already. Options of the format are the arguments of
            ``write``: ``lake`` and ``table``, and optionally ``job_id``, ``stage``, ``sync_id`` and ``local``.
    """
    if not isinstance(spark, SparkSession):
        spark.dataSource.register(LakewriterSource)
        return
    # Spark looks a format up in the session that is active in the thread, which need not be this one.
    active = SparkSession._get_j_spark_session_class(spark._jvm).getActiveSession()
    _register_once(spark)
    if active.isDefined() and not active.get().equals(spark._jsparkSession):
        _register_once(SparkSession(spark.sparkContext, active.get()))


def _register_once(spark: SparkSession) -> None:
    """Register the format, unless the session has it: a copy of a session that has it refuses a second time."""
    session = spark._jsparkSession
    if session.sessionState().dataSourceManager().dataSourceExists(NAME):
        return
    with keep_active_session():
        # It is also refused if the thread's active session is another one that has it.
        SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(session)
        spark.dataSource.register(LakewriterSource)


@contextmanager
def local(lake: LakeFile, *, stage: str | None = None) -> Iterator[dict[str, str]]:
    """Let all functions in the block use the S3 server on this machine, as ``--local`` does.

    Spark's writer knows the format ``lakewriter`` then, in a Spark that runs already.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        stage: The stage of the file whose settings are taken; none by default.

    Yields:
        The options of Spark's writer that do the same: ``df.write.format("lakewriter").options(**options, table=...)``.

    Raises:
        LakeError: ``SPEC_INVALID`` for the file.
    """
    Opened(lake, stage, local=True)
    if is_started():
        register(SparkSession.getActiveSession() or SparkSession.builder.getOrCreate())
    before = LOCAL.set(True)
    try:
        yield {"lake": str(lake), "local": "true", **({"stage": stage} if stage else {})}
    finally:
        LOCAL.reset(before)


class LakewriterSource(DataSource):
    """The data source; Spark makes one for each write, in a process of the driver's machine that has no session."""

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format`` takes."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> "Writer":
        """Register the load and check its table: all that can fail before a task starts."""
        options = {key.lower(): str(value) for key, value in self.options.items()}
        _require_options(options, overwrite=overwrite)
        opened = Opened(options["lake"], options.get("stage"), local=options.get("local", "").lower() == "true")
        opened.spec = narrow(opened.spec, options["table"])
        rows = GivenRows(schema)
        seconds: dict[str, dict[str, float]] = {}
        begun = begin_write(
            opened.spec,
            job_id=choose_job_id(opened.spec.pipeline, options.get("job_id")),
            clients=opened.clients,
            opener=lambda _: rows,
            progress=PhaseClock(lambda *_: None, seconds),
            sync_id=_read_sync_id(options.get("sync_id")),
        )
        if isinstance(begun, OpenWrite):
            return Writer(replace(begun, seconds=seconds), rows.schema)
        _leave(begun, opened.spec, opened.clients, seconds)
        require_done(begun)
        return Writer(None, rows.schema)


@dataclass(frozen=True)
class TaskOutputs(WriterCommitMessage):
    """What one task yielded, as ``staging.returned`` reads it."""

    outputs: tuple[str, ...] = ()


class Writer(DataSourceArrowWriter):
    """One load; without an ``OpenWrite`` it is done already, and nothing is written.

    Spark pickles it: ``write`` runs in tasks, ``commit`` and ``abort`` in another process of the driver's machine.
    """

    def __init__(self, begun: OpenWrite | None, schema: pa.Schema) -> None:
        self._begun, self._schema = begun, schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutputs:
        """Stage the rows of one partition."""
        context = TaskContext.get()
        if self._begun is None or context is None:
            return TaskOutputs()
        number = context.partitionId()
        batches = (check_batch(batch, self._schema, number) for batch in iterator)
        return TaskOutputs(tuple(run_task(self._begun.plan, None, number, batches)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Bind and settle; what keeps the load from being committed is raised."""
        if self._begun is None:
            return
        seconds = {name: dict(steps) for name, steps in self._begun.seconds.items()}
        clients = Clients(self._begun.spec.access)
        clock = PhaseClock(lambda *_: None, seconds)
        report = end_write(self._begun, clients, _list_outputs(messages), clock)
        _leave(report, self._begun.spec, clients, seconds)
        require_done(report)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Withdraw what the tasks have staged. Spark raises what ended the write; what fails here is logged."""
        if self._begun is None:
            return
        clients = Clients(self._begun.spec.access)
        try:
            report = abandon_write(self._begun, clients, _list_outputs(messages), lambda *_: None)
        except LakeError as error:
            LOG.warning("Load %s was not withdrawn: %s", self._begun.attempt.job_id, error)
            return
        if report is not None:
            _leave(report, self._begun.spec, clients, {})


def _list_outputs(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    """List what the tasks yielded; Spark has None for a task that failed."""
    return [output for message in messages if isinstance(message, TaskOutputs) for output in message.outputs]


def _leave(report: RunReport, spec: Spec, clients: Clients, seconds: Mapping[str, Mapping[str, float]]) -> None:
    leave_ending(report, seconds, Pipeline.open(spec, clients).controls, LOG.warning)


def _require_options(options: Mapping[str, str], *, overwrite: bool) -> None:
    if overwrite:
        raise SpecInvalidError(
            "mode('overwrite') is not for a table of a lake.yaml: its own mode there says what is replaced.",
            remedy="Use mode('append').",
        )
    unknown = sorted(options.keys() - set(OPTIONS))
    if unknown:
        raise SpecInvalidError(f"option {unknown[0]!r} is not known.", remedy=f"Expected {', '.join(OPTIONS)}.")
    missing = next((key for key in ("lake", "table") if key not in options), None)
    if missing:
        raise SpecInvalidError(f"option {missing!r} is missing.", remedy=f"Add .option({missing!r}, ...).")


def _read_sync_id(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise SpecInvalidError(f"option 'sync_id': {text!r}: expected a whole number.")
    return int(text)
