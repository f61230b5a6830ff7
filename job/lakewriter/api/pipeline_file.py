"""The lake.yaml behind a function of the package, and the Spark session that its caller has."""

import html
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewriter.errors import SpecInvalidError
from lakewriter.operate.context import Context
from lakewriter.operate.load_ending import PhaseClock, leave_ending
from lakewriter.report import RunReport
from lakewriter.run import judging
from lakewriter.run.kinds import Plain
from lakewriter.run.loader import load
from lakewriter.run.outcome_file import find_failure
from lakewriter.source.request import SparkFactory
from lakewriter.source.session import isolate
from lakewriter.source.time_zone import require_utc
from lakewriter.spec.expectations import Acceptance
from lakewriter.spec.specification import Spec

LakeFile = str | Path

LOG: Final = logging.getLogger(__name__)


LOCAL: Final[ContextVar[bool]] = ContextVar("lakewriter.local", default=False)
"""True if every function uses the S3 server on this machine."""


class LoadReport(RunReport):
    """A load's report, which a notebook shows as the load's page."""

    _page: str | None = PrivateAttr(None)

    @classmethod
    def of(cls, report: RunReport, page: str | None) -> "LoadReport":
        """Return the report with its page, None where there is none."""
        whole = cls.model_construct(**{name: getattr(report, name) for name in RunReport.model_fields})
        whole._page = page
        return whole

    def _repr_html_(self) -> str | None:
        # In a frame of its own, whose styles are not the notebook's.
        if self._page is None:
            return None
        return f'<iframe srcdoc="{html.escape(self._page)}" style="width: 100%; height: 40em; border: 0"></iframe>'


class Opened(Context):
    """A file, with a session of its own beside the caller's where there is one."""

    def __init__(self, lake: LakeFile, stage: str | None, *, local: bool = False) -> None:
        super().__init__(Path(lake), stage, local=local or LOCAL.get(), is_started=True)

    def spark(self) -> SparkSession:
        """Return a session of its own in the caller's Spark, whose settings stay as they are; else a new local one."""
        if self._spark is None and SparkContext._active_spark_context is not None:
            running = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            require_utc(running)
            self._spark = isolate(running)
        return super().spark()

    def load(
        self,
        job_id: str,
        *,
        spark: SparkFactory | None = None,
        kind: Plain = Plain(),  # noqa: B008 - it is frozen
        sync_id: int | None = None,
    ) -> RunReport:
        """Load the tables once, and leave the record and the page of the load."""
        phases: dict[str, dict[str, float]] = {}
        report = load(
            self.spec,
            job_id=job_id,
            clients=self.clients,
            spark=spark or self.spark,
            progress=PhaseClock(lambda *_: None, phases),
            sync_id=sync_id,
            kind=kind,
        )
        return LoadReport.of(report, leave_ending(report, phases, self.controls(), LOG.warning))


def require_done(report: RunReport) -> RunReport:
    """Return the report of a load that is done; raise what failed."""
    error = find_failure(report)
    if error is not None:
        raise error
    return report


def accept_checks(spec: Spec, accept: Mapping[str, str]) -> Spec:
    """Return the pipeline for one load that need not meet some expectations, each with the reason."""
    if not accept:
        return spec
    reasons = "; ".join(dict.fromkeys(accept.values()))
    return judging.accept(spec, Acceptance(checks=tuple(accept), reason=reasons))


def narrow(spec: Spec, table: str) -> Spec:
    """Return the pipeline with one table alone, or with its history, named as in the file: ``table``, or
    ``schema.table`` where that is needed."""
    names = {
        table.id: (table.source_table, f"{table.source_schema}.{table.source_table}", table.id) for table in spec.tables
    }
    matching = [table_spec for table_spec in spec.named_tables if table in names[table_spec.id]]
    named = ", ".join(repr(f"{t.source_schema}.{t.source_table}".lstrip(".")) for t in spec.named_tables)
    if len(matching) != 1:
        problem = "no table of the file" if not matching else f"{len(matching)} tables of the file"
        raise SpecInvalidError(f"table {table!r} names {problem}.", remedy=f"Expected one of {named}.")
    if matching[0].stream is not None:
        raise SpecInvalidError(
            f"table {table!r} is a stream of the file's messages, expected a table that a DataFrame can be written to.",
            remedy="List it under tables:, without source:.",
        )
    return spec.keep_tables({matching[0].id}).model_copy(update={"source": None})
