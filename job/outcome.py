"""How an attempt ended, in one record: what decides whether the load is started again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from job.errors import CODES, EXIT_FAILED, EXIT_OK, LakeError
from job.report import RunReport


def ending(errors: Sequence[LakeError]) -> LakeError | None:
    """The error that speaks for all: one that a retry will not help, if there is any."""
    return next((error for error in errors if not error.transient), errors[0] if errors else None)


def failure(report: RunReport) -> LakeError | None:
    """The same for a run, whose tables tell of their errors by code and message."""
    return ending([CODES[table.code](table.message or "") for table in report.tables if table.code])


def outcome(error: LakeError | None, at: datetime) -> dict[str, Any]:
    """The content of ``outcome.json``."""
    return {
        "version": 1,
        "status": "failed" if error else "done",
        "code": error.code if error else None,
        "message": str(error) if error else None,
        "transient": bool(error and error.transient),
        "exit_code": error.exit_code if error else EXIT_OK,
        "finished": at.isoformat(),
    }


def crash(error: BaseException, at: datetime) -> dict[str, Any]:
    """The same for an end that no code describes: a fault of the program, or an interruption."""
    return {
        "version": 1,
        "status": "failed",
        "code": None,
        "message": f"{type(error).__name__}: {error}",
        "transient": False,
        "exit_code": EXIT_FAILED,
        "finished": at.isoformat(),
    }
