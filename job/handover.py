"""What an attempt leaves for whoever started it: its outcome, at a key that the starter chose and then reads."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from job.commit.control import Control
from job.commit.store import Unclear
from job.errors import LakeError
from job.outcome import crash, failure, outcome
from job.report import RunReport

PAUSES: Final = (0.2, 0.8, 3.2)
"""Seconds after an unclear answer."""


def handed_over(
    load: Callable[[], RunReport],
    *,
    name: str | None,
    controls: Mapping[str, Control],
    warn: Callable[[str], None],
) -> RunReport:
    """``load()``; with a name, how it ended is written to ``ControlKeys.run(name)``, whatever is raised."""
    if name is None:
        return load()
    try:
        report = load()
    except BaseException as error:
        now = datetime.now(UTC)
        told = outcome(error, now) if isinstance(error, LakeError) else crash(error, now)
        _leave(controls, name, told | _counts(None, _pending(controls, now)), error.add_note)
        raise
    failed = {key: controls[key] for key in _unfinished(report) if key in controls}
    now = datetime.now(UTC)
    _leave(controls, name, outcome(failure(report), now) | _counts(report, _pending(failed, now)), warn)
    return report


def _unfinished(report: RunReport) -> list[str]:
    """The ids of the tables that are not done."""
    open_ = [table for table in report.tables if table.status in ("failed", "not_run")]
    return [".".join(part for part in (table.schema_, table.table) if part) for table in open_]


def _pending(controls: Mapping[str, Control], now: datetime) -> timedelta:
    """How long ago the oldest intent became pending; states that cannot be read count as having none."""
    ages = [timedelta(0)]
    for control in controls.values():
        try:
            pending = control.state.read().pending
        except LakeError:
            continue
        if pending is not None:
            ages.append(now - pending.since)
    return max(ages)


def _counts(report: RunReport | None, pending: timedelta) -> dict[str, Any]:
    """What the outcome has beside the verdict: numbers for a dashboard."""
    tables = [table for table in report.tables if table.status == "done"] if report else []
    return {
        "job_id": report.job_id if report else None,
        "rows": sum(table.rows for table in tables),
        "files": sum(table.files for table in tables),
        "bytes": sum(table.bytes for table in tables),
        "seconds": report.seconds if report else 0.0,
        "pending_hours": round(pending / timedelta(hours=1), 2),
    }


def _leave(controls: Mapping[str, Control], name: str, content: Mapping[str, Any], warn: Callable[[str], None]) -> None:
    """What cannot be written is told to ``warn``: the load has ended as it has."""
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
    """A process that is started again under the same name replaces what the one before it left."""
    if control.store.create(key, body) is None and (found := control.store.get(key)):
        control.store.replace(key, body, found[1])
