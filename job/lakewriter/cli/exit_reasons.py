"""Find why a command that has printed its own object does not exit with 0."""

from collections.abc import Sequence

from lakewriter.doctor import Finding
from lakewriter.errors import CODES
from lakewriter.exit_codes import EXIT_BREAKS, EXIT_FAILED, EXIT_OK
from lakewriter.operate.health import Health, RunHealth
from lakewriter.operate.planning import PlannedTable
from lakewriter.operate.verification import Verified, choose_exit_code
from lakewriter.report import ErrorReport


def find_check_error(findings: Sequence[Finding]) -> ErrorReport | None:
    """Return the first finding that failed."""
    finding = next((finding for finding in findings if finding.status == "failed"), None)
    if finding is None:
        return None
    if finding.code is None:
        return ErrorReport.of_exit(EXIT_FAILED, f"{finding.probe}: {finding.message}")
    return ErrorReport.of(CODES[finding.code](finding.message, remedy=finding.remedy))


def find_plan_error(tables: Sequence[PlannedTable], *, exit_code: bool = False) -> ErrorReport | None:
    """Return the error of the first table that a load would fail on; with ``exit_code`` else what readers would fail
    on."""
    failure = next((table.failure for table in tables if table.failure is not None), None)
    if failure is not None:
        return failure
    breaks = next((f"{table.table}: {what}" for table in tables for what in table.breaks), None)
    return ErrorReport.of_exit(EXIT_BREAKS, breaks) if breaks is not None and exit_code else None


def find_verify_error(loads: Sequence[Verified]) -> ErrorReport | None:
    """Return the first difference, with the exit code for all of them."""
    exit_code = choose_exit_code(loads) if loads else EXIT_OK
    differences = (difference for load in loads for difference in load.differences)
    if exit_code == EXIT_OK or (first := next(differences, None)) is None:
        return None
    return ErrorReport.of_exit(exit_code, first.message, first.code)


def find_status_error(health: Health) -> ErrorReport | None:
    """Return the error that decides the exit code of ``status``: the continuous run's, a state that cannot be read, a
    load that waits."""
    code = health.exit_code
    if code == EXIT_OK:
        return None
    error = next((error for error in health.unreadable.values() if error.exit_code == code), None)
    if error is not None:
        return ErrorReport.of(error)
    run = f"the continuous run is {health.run}." if health.run not in (None, *_WELL) else ""
    return ErrorReport.of_exit(code, run or " ".join(health.waiting))


_WELL = (RunHealth.RUNNING, RunHealth.STOPPING, RunHealth.STOPPED)
