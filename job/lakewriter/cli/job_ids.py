"""Ids of loads, as a person, a schedule or an orchestrator gives them."""

import uuid
from datetime import datetime

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import JOB_ID, make_scheduled_job_id


def require_job_id(text: str, what: str = "job id") -> str:
    """``text``, which becomes part of keys; ``SPEC_INVALID`` where it cannot."""
    if not JOB_ID.fullmatch(text):
        raise SpecInvalidError(f"{what} {text!r} is not of the form {JOB_ID.pattern}.")
    return text


def choose_job_id(pipeline: str, job_id: str | None, scheduled_at: str | None) -> str:
    """The given id, that of a schedule's time, or else a new one."""
    if job_id is not None and scheduled_at is not None:
        raise SpecInvalidError("expected either --job-id or --scheduled-at.")
    if scheduled_at is None:
        return str(uuid.uuid4()) if job_id is None else require_job_id(job_id)
    try:
        moment = datetime.fromisoformat(scheduled_at)
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise SpecInvalidError(f"--scheduled-at {scheduled_at!r} is no time with a zone, such as 2026-01-31T06:00:00Z.")
    return make_scheduled_job_id(pipeline, moment)
