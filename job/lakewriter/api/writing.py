"""Write a DataFrame to a table of a lake.yaml: once, or for every batch of a stream."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from pyspark.sql import DataFrame

from lakewriter.api.pipeline_file import LakeFile, Opened, accept_checks, narrow, require_done
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.job_ids import choose_job_id
from lakewriter.receipt import Batch
from lakewriter.report import RunReport
from lakewriter.run.kinds import MicroBatch, Plain
from lakewriter.run.loader import load
from lakewriter.source.session import keep_active_session
from lakewriter.source.spark_rows import open_frame
from lakewriter.source.stream_checkpoint import Checkpoint
from lakewriter.spec.table_spec import Mode

_QUERY_ID: Final = "sql.streaming.queryId"
"""The local property that Spark sets in the jobs of a streaming query."""


@keep_active_session()
def write(  # noqa: PLR0913 - of keywords
    df: DataFrame,
    *,
    lake: LakeFile,
    table: str,
    job_id: str | None = None,
    stage: str | None = None,
    sync_id: int | None = None,
    accept: Mapping[str, str] = MappingProxyType({}),
    local: bool = False,
) -> RunReport:
    """Write a DataFrame to a table, exactly once under ``job_id``.

    Args:
        df: The rows. Spark may evaluate it more than once, and does not at all under a job id that is done.
        lake: The path of lake.yaml, or of a vendor's own file.
        table: The table's name in the file: ``table``, or ``schema.table`` where several schemas have the name.
        job_id: The load's name; a name that is done writes nothing again. A new one by default.
        stage: The stage of the file whose settings are taken; none by default.
        sync_id: The number of the sync, where the destination numbers them; the next free one by default.
        accept: Names of expectations that the rows need not meet, each with the reason; none by default.
        local: Write to the S3 server on this machine, as ``--local`` does. False by default.

    Returns:
        The report of the load, which is done.

    Raises:
        LakeError: What keeps the rows from being written. ``transient`` says whether the same job id again can succeed.
    """
    opened = Opened(lake, stage, local=local)
    opened.spec = accept_checks(narrow(opened.spec, table), accept)
    _require_frame(df)
    return require_done(
        opened.load(
            choose_job_id(opened.spec.pipeline, job_id),
            spark=lambda: df.sparkSession,
            kind=Plain(partial(open_frame, df)),
            sync_id=sync_id,
        )
    )


def sink(
    lake: LakeFile, table: str, *, stage: str | None = None, local: bool = False
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch``: each batch is written once, by the query's id and its number.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        table: The table's name in the file, as in ``write``; its mode is ``append``.
        stage: The stage of the file whose settings are taken; none by default.
        local: Write to the S3 server on this machine, as ``--local`` does. False by default.

    Returns:
        The function. Spark calls it with the rows of a batch and its number; a batch that Spark gives again is not
        written again. It raises what keeps a batch from being written, ``CHECKPOINT_LOST`` for one that does not follow
        the table's last batch.

    Raises:
        LakeError: ``SPEC_INVALID`` for the file, an unknown table, or one of another mode.
    """
    opened = Opened(lake, stage, local=local)
    spec = narrow(opened.spec, table)
    (written,) = spec.tables
    if written.mode is not Mode.APPEND:
        raise SpecInvalidError(
            f"table {written.source_table!r} has mode {written.mode.value!r}: each batch would replace the one before.",
            remedy="Set mode: append; or write whole tables with lakewriter.write.",
        )
    control = Pipeline.open(spec, opened.clients).first_control
    since = control.state.read().batch

    @keep_active_session()
    def write_batch(df: DataFrame, batch_id: int) -> None:
        _require_frame(df)
        query = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if not query:
            raise SpecInvalidError(
                "no streaming query runs here: a sink is called by foreachBatch.",
                remedy="Use df.writeStream.foreachBatch(lakewriter.sink(...)), or lakewriter.write.",
            )
        # A checkpoint that was put back plans other rows under the number of a batch that is done.
        plan = Checkpoint.find(df.sparkSession, query, table).read_plan(batch_id)
        batch = Batch(query, batch_id, plan.digest)
        report = load(
            spec,
            job_id=batch.job_id,
            clients=opened.clients,
            spark=lambda: df.sparkSession,
            kind=MicroBatch(batch, since, partial(open_frame, df)),
        )
        require_done(report)

    return write_batch


def _require_frame(df: object) -> None:
    if not isinstance(df, DataFrame):
        raise SpecInvalidError(
            f"df is a {type(df).__module__}.{type(df).__qualname__}, expected a DataFrame of Spark.",
            remedy="Make one with spark.createDataFrame(df).",
        )
    if df.isStreaming:
        raise SpecInvalidError(
            "df is a stream, expected rows that have an end.",
            remedy="Use df.writeStream.foreachBatch(lakewriter.sink(...)).",
        )
