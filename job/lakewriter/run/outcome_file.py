"""Write how an attempt ended, for the state machine or person that decides whether to start it again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.store import Unclear
from lakewriter.errors import CODES, ExpectationFailedError, LakeError
from lakewriter.exit_codes import EXIT_FAILED, EXIT_OK
from lakewriter.report import RunReport, Sums, TableResult
from lakewriter.run.continuous_status import RunStatus
from lakewriter.run.stop import Stopped, exit_code_of


def choose_error(errors: Sequence[LakeError]) -> LakeError | None:
    """Return the error that decides the exit code: the first one that a retry cannot help, else the first one."""
    return next((error for error in errors if not error.transient), errors[0] if errors else None)


def find_failure(report: RunReport) -> LakeError | None:
    """Return the same from a run's report, whose tables carry code and message."""
    return choose_error([_make_error(table.code, table) for table in report.tables if table.code])


def _make_error(code: str, table: TableResult) -> LakeError:
    remedy = table.remedy or ""
    error = CODES[code]((table.message or "").removesuffix(remedy), remedy=remedy)
    if isinstance(error, ExpectationFailedError):
        error.verdicts = table.expectations
    for note in table.notes:
        error.add_note(note)
    return error


def describe_end(error: LakeError | None, at: datetime) -> dict[str, Any]:
    """Return the content of ``outcome.json``."""
    end = _Ending(
        error.code if error else None,
        str(error) if error else None,
        is_transient=bool(error and error.transient),
        exit_code=error.exit_code if error else EXIT_OK,
    )
    return end.describe(at)


def describe_crash(error: BaseException, at: datetime) -> dict[str, Any]:
    """Return the same for an end that no code describes: a fault of the program, or an interruption."""
    end = _Ending(None, f"{type(error).__name__}: {error}", is_transient=False, exit_code=EXIT_FAILED)
    return end.describe(at)


def describe_stop(reason: str, at: datetime) -> dict[str, Any]:
    """Return the same for a load that was stopped by a signal; the same job id goes on."""
    said = f"stopped by {reason} before all tables were done"
    return _Ending(None, said, is_transient=True, exit_code=exit_code_of(reason)).describe(at)


@dataclass(frozen=True)
class _Ending:
    """The end of an attempt: ``message`` is None where it succeeded."""

    code: str | None
    message: str | None
    is_transient: bool
    exit_code: int

    def describe(self, at: datetime) -> dict[str, Any]:
        return {
            "version": 1,
            "status": "done" if self.message is None else "failed",
            "code": self.code,
            "message": self.message and _cut(self.message),
            "transient": self.is_transient,
            "exit_code": self.exit_code,
            "finished": at.isoformat(),
        }


LONGEST_MESSAGE: Final = 8192
"""Bytes of a message. Step Functions ends an execution whose state passes more than 256 KiB, and nothing catches that:
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""
_CUT: Final = " [...] (cut: the job's log has the whole message)"


def _cut(message: str) -> str:
    """Cut a message between two characters."""
    body = message.encode()
    if len(body) <= LONGEST_MESSAGE:
        return message
    return body[: LONGEST_MESSAGE - len(_CUT)].decode(errors="ignore") + _CUT


PAUSES: Final = (0.2, 0.8, 3.2)
"""Seconds after an unclear answer."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Counts(Sums):
    """The outcome's numbers for a dashboard."""

    job_id: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class LoadEnd:
    """The end of an attempt; ``unfinished`` are the ids of the tables that are not done."""

    error: LakeError | None
    unfinished: tuple[str, ...]
    counts: Counts
    stopped: str | None = None


def leave_outcome(
    load: Callable[[], Result],
    ended: Callable[[Result], LoadEnd],
    *,
    name: str | None,
    controls: Mapping[str, Control],
    warn: Callable[[str], None],
) -> Result:
    """Call ``load()``; with a name, write how it ended to ``ControlKeys.run(name)``, whatever is raised."""
    if name is None:
        return load()
    try:
        result = load()
    except BaseException as error:
        now = datetime.now(UTC)
        content = describe_end(error, now) if isinstance(error, LakeError) else describe_crash(error, now)
        if isinstance(error, Stopped):
            content = describe_stop(error.reason, now)
        _leave(controls, name, content | _describe_counts(Counts(), _measure_pending(controls, now)), error.add_note)
        raise
    summary, now = ended(result), datetime.now(UTC)
    pending = _measure_pending({key: controls[key] for key in summary.unfinished if key in controls}, now)
    content = describe_end(summary.error, now) if summary.stopped is None else describe_stop(summary.stopped, now)
    _leave(controls, name, content | _describe_counts(summary.counts, pending), warn)
    return result


def summarize_load(report: RunReport) -> LoadEnd:
    """Summarize a load."""
    open_ = [table for table in report.tables if table.status in ("failed", "not_run")]
    sums = Sums.of(table for table in report.tables if table.status == "done")
    counts = Counts(**asdict(sums), job_id=report.job_id, seconds=report.seconds)
    names = tuple(table.id for table in open_)
    return LoadEnd(find_failure(report), names, counts, report.stopped)


def summarize_run(result: tuple[RunStatus, LakeError | None]) -> LoadEnd:
    """Summarize a continuous run, whose loads have ids of their own."""
    status, error = result
    tables = status.tables.values()
    counts = Counts(
        rows=sum(table.rows for table in tables),
        files=sum(table.files for table in tables),
        bytes=sum(table.bytes for table in tables),
        seconds=round((status.at - status.started_at).total_seconds(), 3),
    )
    return LoadEnd(error, tuple(name for name, table in status.tables.items() if table.state == "failed"), counts)


def _measure_pending(controls: Mapping[str, Control], now: datetime) -> timedelta:
    """Measure how long ago the oldest intent became pending; states that cannot be read count as having none."""

    def measure(control: Control) -> timedelta:
        try:
            pending = control.state.read().pending
        except LakeError:
            pending = None
        return now - pending.since if pending is not None else timedelta(0)

    return max(call_all(measure, controls.values()), default=timedelta(0))


def _describe_counts(counts: Counts, pending: timedelta) -> dict[str, Any]:
    return asdict(counts) | {"pending_hours": round(pending / timedelta(hours=1), 2)}


def _leave(controls: Mapping[str, Control], name: str, content: Mapping[str, Any], warn: Callable[[str], None]) -> None:
    """Write the outcome. A failure to do so is a warning: it does not change how the load ended."""
    control = next(iter(controls.values()))
    key, body = control.keys.run(name), json.dumps(content, indent=1).encode()
    problem: Exception | None = None
    for seconds in PAUSES:
        try:
            _put(control, key, body)
        except Unclear as error:
            problem = error
            control.pause(seconds)
        except LakeError as error:
            problem = error
            break
        else:
            return
    warn(f"The outcome could not be left at {key}: {problem}")


def _put(control: Control, key: str, body: bytes) -> None:
    """Write the object. A process that is started again under the same name replaces what the one before it left."""
    if control.store.create(key, body) is None and (stored := control.store.get(key)):
        control.store.replace(key, body, stored[1])
