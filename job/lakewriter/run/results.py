"""Make each table's entry in the run's report."""

from typing import Final

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import ExpectationFailedError, LakeError
from lakewriter.report import TableResult
from lakewriter.spec.specification import TableSpec

_KEPT: Final = (
    "table", "rows", "files", "bytes", "keys", "feed", "engine", "small_files", "notes", "health", "sync_id",
    "generation_id", "retired", "changes", "change_samples", "undeclared", "set_aside",
    "cursor_after", "expectations", "repeated",
)  # fmt: skip
"""What a table's own report says that the run's repeats."""


def read_result(control: Control, attempt: Attempt, done: str | None = None) -> TableResult:
    """A table whose report says that it is done, by this attempt or by another of its job; ``done`` is the job id under
    which it is, where that is one that the job repeats."""
    report = control.read_report(done or attempt.job_id)
    if report is None:
        # It was held for longer than control objects are kept: its report was there when it was taken to its end.
        schema, _, name = control.table_id.rpartition(".")
        return TableResult(schema_=schema, table=name, status="already_done")
    status = "done" if report["attempt"] == attempt.id else "already_done"
    return TableResult.model_validate(
        {"schema_": report["schema_name"], "status": status} | {name: report[name] for name in _KEPT if name in report}
    )


def make_repeated(table: TableSpec) -> TableResult:
    """A batch from before the last one; its report may be cleared away already."""
    return TableResult(schema_=table.schema_name, table=table.name, status="already_done")


def make_not_run(table: TableSpec, stopped: BaseException | None = None) -> TableResult:
    """A table of which nothing is published; ``stopped`` is what ended it, noted with what could not be withdrawn."""
    notes = _collect_notes(stopped) if stopped is not None else ()
    return TableResult(schema_=table.schema_name, table=table.name, status="not_run", notes=notes)


def _collect_notes(error: BaseException) -> tuple[str, ...]:
    cause = error.__cause__
    return (*getattr(error, "__notes__", ()), *(getattr(cause, "__notes__", ()) if cause else ()))


def make_failed(table: TableSpec, error: LakeError, seconds: float) -> TableResult:
    """A table that could not be loaded, with what the error was noted with."""
    return TableResult(
        schema_=table.schema_name,
        table=table.name,
        status="failed",
        code=error.code,
        message=f"{error.message} {error.remedy}".strip(),
        remedy=error.remedy or None,
        seconds=round(seconds, 3),
        notes=tuple(getattr(error, "__notes__", ())),
        expectations=tuple(error.verdicts) if isinstance(error, ExpectationFailedError) else (),
    )
