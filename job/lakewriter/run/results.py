"""Make each table's entry in the run's report."""

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import ExpectationFailedError, LakeError
from lakewriter.report import TableResult
from lakewriter.spec.table_spec import TableSpec


def read_result(control: Control, attempt: Attempt, done: str | None = None) -> TableResult:
    """Return the result of a table whose report says that it is done, by this attempt or by another of its job.
    ``done`` is the job id of the report, where it is a job id that this job repeats."""
    report = control.read_report(done or attempt.job_id)
    if report is None:
        # The process was suspended for longer than control objects are kept: the report existed when the load ended.
        schema, _, name = control.table_id.rpartition(".")
        return TableResult(schema_name=schema, table=name, status="already_done")
    return TableResult.of(report, status="done" if report.attempt == attempt.id else "already_done")


def make_repeated(table: TableSpec) -> TableResult:
    """Return the result of a batch from before the last one; its report may be cleared away already."""
    return TableResult(schema_name=table.schema_name, table=table.name, status="already_done")


def make_not_run(table: TableSpec, stopped: BaseException | None = None) -> TableResult:
    """Return the result of a table of which nothing is published. ``stopped`` is the exception that ended it; its notes
    say what could not be withdrawn."""
    notes = _collect_notes(stopped) if stopped is not None else ()
    return TableResult(schema_name=table.schema_name, table=table.name, status="not_run", notes=notes)


def _collect_notes(error: BaseException) -> tuple[str, ...]:
    cause = error.__cause__
    return (*getattr(error, "__notes__", ()), *(getattr(cause, "__notes__", ()) if cause else ()))


def make_failed(table: TableSpec, error: LakeError, seconds: float) -> TableResult:
    """Return the result of a table that could not be loaded, with the notes of its error."""
    return TableResult(
        schema_name=table.schema_name,
        table=table.name,
        status="failed",
        code=error.code,
        message=f"{error.message} {error.remedy}".strip(),
        remedy=error.remedy or None,
        seconds=round(seconds, 3),
        notes=tuple(getattr(error, "__notes__", ())),
        expectations=tuple(error.verdicts) if isinstance(error, ExpectationFailedError) else (),
    )
