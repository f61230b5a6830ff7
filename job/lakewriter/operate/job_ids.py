"""Read or make the id of a load that a person, a schedule or an orchestrator gives."""

import uuid
from datetime import UTC, date, datetime, time

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.load_ids import JOB_ID, make_job_id, make_scheduled_job_id


def require_job_id(text: str, what: str = "job id") -> str:
    """Return ``text``, which becomes part of keys; raise ``SPEC_INVALID`` where it cannot."""
    if not JOB_ID.fullmatch(text):
        raise SpecInvalidError(
            f"{what} {text!r} cannot be part of a key.",
            remedy="Expected 1 to 80 letters, digits, '.', '_' and '-', a letter or digit first; --run-id makes a job "
            "id of any text.",
        )
    return text


def choose_job_id(pipeline: str, job_id: str | None, scheduled_at: str | None = None, run_id: str | None = None) -> str:
    """Return the given job id, or that of an orchestrator's run or of a scheduled time; without any, a new one."""
    if sum(given is not None for given in (job_id, scheduled_at, run_id)) > 1:
        raise SpecInvalidError("expected one of --job-id, --run-id and --scheduled-at.")
    if run_id is not None:
        return require_run_id(run_id)
    if scheduled_at is not None:
        return make_scheduled_job_id(pipeline, parse_time(scheduled_at))
    return str(uuid.uuid4()) if job_id is None else require_job_id(job_id)


def require_run_id(text: str) -> str:
    """Make the job id of an orchestrator's run id."""
    if not text.strip():
        raise SpecInvalidError(
            "--run-id is blank.", remedy="Give the orchestrator's own id of the run: in Airflow '{{ run_id }}'."
        )
    return make_job_id(text)


def parse_time(text: str) -> datetime:
    """Parse a time with its zone; a date alone is the midnight, in UTC, that begins it."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise SpecInvalidError(
            f"--scheduled-at {text!r} is neither a time with a zone, such as 2026-01-31T06:00:00Z, nor a date, such as "
            "2026-01-31."
        )
    return moment
