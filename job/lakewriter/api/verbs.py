"""The verbs of the command line as functions, which return what its ``--json`` prints."""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

from lakewriter.api.data_source import register
from lakewriter.api.pipeline_file import LakeFile, Opened, accept_checks
from lakewriter.doctor import CheckReport, run_checks
from lakewriter.operate.job_ids import choose_job_id, require_job_id
from lakewriter.operate.planning import PlanReport
from lakewriter.operate.planning import plan as plan_tables
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.verification import Verified
from lakewriter.operate.verification import verify as verify_load
from lakewriter.report import RunReport
from lakewriter.source.session import keep_active_session, open_spark_session


def open_spark(app_name: str = "lakewriter") -> SparkSession:
    """Open a session of Spark as the commands do: the one that runs, or a new one in UTC on any Java that is found.

    Its writer knows the format ``lakewriter``. Spark's own builder asks for the module jdk.incubator.vector, which the
    Java of ``lakewriter[java]`` has not.

    Args:
        app_name: The application's name in Spark's pages, where a session is opened.

    Returns:
        The session. The caller stops it.

    Raises:
        LakeError: ``SOURCE_FAILED`` where there is no Java that Spark can run on.
    """
    session = open_spark_session(app_name)
    register(session)
    return session


@keep_active_session()
def load(
    lake: LakeFile,
    *,
    job_id: str | None = None,
    stage: str | None = None,
    sync_id: int | None = None,
    accept: Mapping[str, str] = MappingProxyType({}),
) -> RunReport:
    """Load every table once, as ``lakewriter run`` does.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        job_id: The load's name; a name that is done loads nothing again. A new one by default.
        stage: The stage of the file whose settings are taken; none by default.
        sync_id: The number of the sync, where the destination numbers them; the next free one by default.
        accept: Names of expectations that this load need not meet, each with the reason; none by default.

    Returns:
        The report of the load. Which tables failed, and why, is in it: a failed table raises nothing.

    Raises:
        LakeError: Before a table is begun, such as ``SPEC_INVALID`` for the file or an argument.
    """
    opened = Opened(lake, stage)
    opened.spec = accept_checks(opened.spec, accept)
    return opened.load(choose_job_id(opened.spec.pipeline, job_id), sync_id=sync_id)


@keep_active_session()
def plan(lake: LakeFile, *, job_id: str | None = None, stage: str | None = None) -> PlanReport:
    """Return the keys, columns and catalog changes of a load, as ``lakewriter plan`` shows them; write nothing.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        job_id: The job id that keys are shown for; a new one by default.
        stage: The stage of the file whose settings are taken; none by default.

    Returns:
        The plan of each table. Where a load of a table would fail, ``error`` says why.

    Raises:
        LakeError: ``SPEC_INVALID`` for the file or an argument.
    """
    opened = Opened(lake, stage)
    tables = plan_tables(
        opened.spec,
        job_id=None if job_id is None else require_job_id(job_id),
        clients=opened.clients,
        spark=opened.spark,
        controls=opened.controls(),
    )
    return PlanReport(pipeline=opened.spec.pipeline, tables=tables)


@keep_active_session()
def check(lake: LakeFile, *, stage: str | None = None, sources: bool = True) -> CheckReport:
    """Try all that a load needs, as ``lakewriter check`` does.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        stage: The stage of the file whose settings are taken; none by default.
        sources: Look at the tables' sources too, which starts Spark. True by default.

    Returns:
        A finding for each thing that was tried; a failed one has its error's code and a remedy.

    Raises:
        LakeError: ``SPEC_INVALID`` for the file.
    """
    opened = Opened(lake, stage)
    spark = opened.spark if sources else None
    findings = run_checks(opened.spec, opened.clients, deployment=opened.deployment, spark=spark)
    return CheckReport(pipeline=opened.spec.pipeline, findings=findings)


def verify(lake: LakeFile, job_id: str, *, stage: str | None = None, rows: bool = False) -> Verified:
    """Compare a committed load with S3 and the catalog, as ``lakewriter verify`` does.

    Args:
        lake: The path of lake.yaml, or of a vendor's own file.
        job_id: The load's job id, as its report or ``lakewriter history`` has it.
        stage: The stage of the file whose settings are taken; none by default.
        rows: Read the load's files and count their rows. False by default: footers and receipts are compared.

    Returns:
        What differs, what could not be compared, and the load's rows and files. No differences: all is right.

    Raises:
        LakeError: ``SPEC_INVALID`` where no table has the load, a service's error where no table could be compared.
    """
    opened = Opened(lake, stage)
    counting = Counting.of(opened.spec) if rows else None
    return verify_load(opened.controls(), require_job_id(job_id), opened.clients, counting)
