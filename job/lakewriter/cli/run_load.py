"""The work of ``lakewriter run``."""

import getpass
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import click
from pydantic import Field, ValidationError

from lakewriter.aws import Clients
from lakewriter.cli.continuous_view import show_batches, show_continuous
from lakewriter.cli.endings import list_given, name_lake
from lakewriter.cli.json_output import print_failure, remember_job_id
from lakewriter.cli.progress_view import show_progress, show_waiting
from lakewriter.cli.run_view import show_run, show_summary
from lakewriter.cli.shared import ERR, OUT, is_local, list_chosen_tables, open_context, print_json, warn
from lakewriter.cli.signals import Signals, handle_signals
from lakewriter.cli.wanted import Wanted
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.repeated_loads import find_last_repeat
from lakewriter.doctor.source_access import ask_sources
from lakewriter.errors import CODES, InternalError, LakeError, SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import job_ids
from lakewriter.operate.context import Context
from lakewriter.operate.load_ending import PhaseClock, leave_record
from lakewriter.report import ErrorReport, RunReport
from lakewriter.run.continuous import run_continuously
from lakewriter.run.continuous_metrics import make_sender
from lakewriter.run.continuous_status import RunStatus
from lakewriter.run.judging import accept, list_departures
from lakewriter.run.loader import load, with_messages
from lakewriter.run.outcome_file import choose_error, find_failure, leave_outcome, summarize_load, summarize_run
from lakewriter.run.ranges import Bounds, choose_range
from lakewriter.run.stop import Stopped, exit_code_of
from lakewriter.source.spark_jobs import get_spark_version
from lakewriter.spec.canary import make_canary
from lakewriter.spec.expectations import Acceptance
from lakewriter.spec.installing import describe_other_spark
from lakewriter.spec.model import Model
from lakewriter.spec.specification import Spec

_STAGE_VARIABLE: Final = "LAKEWRITER_STAGE"
"""Names the stage in the metrics of a job whose file has its stage merged in."""
_NO_STAGE: Final = "none"


def run_once(lake: Path, stage: str | None, wanted: Wanted, *, as_json: bool) -> int:
    """Load the file's tables once, and print the report."""
    context = open_context(lake, stage, quiet=wanted.quiet)
    spec = _choose_spec(context.spec, wanted)
    again = partial(_describe_continuation, lake, stage, wanted)
    _warn_of_other_spark(quiet=wanted.quiet)
    single, controls = _SingleLoad(context, spec, wanted, again), Pipeline.open(spec, context.clients).controls
    try:
        report = leave_outcome(single.run, summarize_load, name=wanted.outcome, controls=controls, warn=warn)
    except Stopped as stopped:
        exit_code, notes = exit_code_of(stopped.reason), " ".join(stopped.__notes__)
        click.echo(f"The load was {stopped} before a table began.\n{notes}", err=True)
        if as_json:
            print_failure(ErrorReport.of_stop(stopped.reason, exit_code, notes))
        return exit_code
    for note in () if wanted.quiet else (*report.notes, *list_departures(report)):
        warn(note)
    error = _print_failures(report)
    ending = _find_ending(report, error, again)
    if wanted.canary is None:
        given = () if _STAGE_VARIABLE in os.environ else list_given()
        leave_record(report, ending, single.phases, controls, warn, given)
    if as_json:
        print_json(report, ending)
    elif wanted.quiet:
        show_summary(OUT, report, single.phases)
    else:
        show_run(OUT, report, single.phases)
        _show_next(report)
    if report.stopped is not None:
        _print_stopped(report, again(report.job_id))
    return ending.exit_code if ending else EXIT_OK


def _warn_of_other_spark(*, quiet: bool = False) -> None:
    """Say if tests ran with another Spark than the one that is installed."""
    other = "" if quiet else describe_other_spark(get_spark_version())
    if other:
        warn(other)


def _show_next(report: RunReport) -> None:
    """Say on a terminal how the tables can be read."""
    if OUT.is_terminal and report.status == "done":
        command = shlex.join(["lakewriter", "queries", *list_given()])
        OUT.print(f"Next: {command} prints SQL that reads the tables.", markup=False, soft_wrap=True)


def _find_ending(report: RunReport, error: LakeError | None, again: Callable[[str], str]) -> ErrorReport | None:
    if report.stopped is not None:
        return ErrorReport.of_stop(report.stopped, exit_code_of(report.stopped), again(report.job_id))
    return ErrorReport.of(error) if error else None


def run_continuous(lake: Path, stage: str | None, wanted: Wanted, *, as_json: bool) -> int:
    """Load new data at every interval, until a signal."""
    if list_chosen_tables():
        raise SpecInvalidError("--table is for a single load; a continuous run loads all tables of the file.")
    context = open_context(lake, stage)
    spec = _accept(_choose_spec(context.spec, wanted), wanted)
    stage_name = stage or os.environ.get(_STAGE_VARIABLE) or _NO_STAGE
    return _run_continuously(context, spec, wanted.outcome, as_json, stage_name)


def _choose_spec(spec: Spec, wanted: Wanted) -> Spec:
    if list_chosen_tables() and spec.source is not None:
        raise SpecInvalidError(
            "--table is for a pipeline that reads each table by itself; this one reads the messages of all streams, "
            "and its source may have one state for all of them.",
            remedy="Leave --table out, or name a catalog of these streams alone.",
        )
    if wanted.canary is None:
        return spec
    other = "--table" if list_chosen_tables() else wanted.for_one_load
    if other != "--canary":
        raise SpecInvalidError(f"{other} is for a load of the file's tables; --canary has one row.")
    return make_canary(spec)


def _accept(spec: Spec, wanted: Wanted) -> Spec:
    """Return the spec with the expectations that this load need not meet, by whom and why."""
    if wanted.acceptance is not None:
        return accept(spec, _read_acceptance(wanted))
    reason = (wanted.reason or "").strip()
    if bool(wanted.accept) != bool(reason):
        raise SpecInvalidError(
            "--accept and --reason belong together: what is loaded although it is not as expected has a reason.",
            remedy="Give both, such as --accept not_null.id --reason 'the source has no ids before 2020'.",
        )
    if not wanted.accept:
        return spec
    return accept(spec, Acceptance(checks=wanted.accept, reason=reason, by=_find_user()))


class _Accepted(Model):
    """The object of ``--acceptance``."""

    accept: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    reason: Annotated[str, Field(pattern=r"\S")]
    by: str = ""


def _read_acceptance(wanted: Wanted) -> Acceptance:
    """Read ``--acceptance``; ``SPEC_INVALID`` for what an orchestrator has put together wrongly."""
    if wanted.accept or wanted.reason:
        raise SpecInvalidError("expected --acceptance, or --accept with --reason, not both.")
    try:
        given = _Accepted.model_validate_json(wanted.acceptance or "")
    except ValidationError as error:
        problem = error.errors()[0]
        key_path = ".".join(map(str, problem["loc"]))
        raise SpecInvalidError(
            f"--acceptance {wanted.acceptance!r}: {f'{key_path}: ' if key_path else ''}{problem['msg']}.",
            remedy='Expected {"accept": ["CHECK"], "reason": "TEXT"}, and "by" if it is to say who.',
        ) from error
    return Acceptance(checks=given.accept, reason=given.reason, by=given.by)


def _find_user() -> str:
    """Find the user's name on this machine; blank where it has none."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def _describe_continuation(lake: Path, stage: str | None, wanted: Wanted, job_id: str) -> str:
    """Say how to continue a load: the command, as a person would type it."""
    options = {
        "--stage": stage,
        "--sync-id": wanted.sync_id,
        "--messages": wanted.messages,
        "--outcome": wanted.outcome,
        "--reason": wanted.reason,
        "--acceptance": wanted.acceptance,
        "--from": wanted.first,
        "--to": wanted.end,
        "--by": wanted.column,
    }
    accepted = [part for check in wanted.accept for part in ("--accept", check)]
    tables = [part for table in list_chosen_tables() for part in ("--table", table)]
    given = [part for option, value in options.items() if value is not None for part in (option, str(value))]
    local = ["--local"] if is_local() else []
    words = ["lakewriter", "run", str(lake), "--job-id", job_id, *tables, *accepted, *given, *local]
    return f"Continue with: {shlex.join(words)}"


@dataclass(frozen=True)
class _SingleLoad:
    """A load of the tables of ``spec``: those of the file, or a canary's."""

    context: Context
    spec: Spec
    wanted: Wanted
    again: Callable[[str], str]
    """Describes how to continue the load with a job id."""
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    """The seconds of each table's steps so far."""

    def run(self) -> RunReport:
        """Load once; after a canary ask the sources of the file, and raise the error of one that refuses this process.

        Acceptances are checked here, so that an orchestrator gets an outcome if one is wrong.
        """
        report = self._load(_accept(self.spec, self.wanted))
        if self.wanted.canary is None or report.status != "done":
            return report
        findings = ask_sources(self.context.spec, self.context.spark)
        failed = [finding for finding in findings if finding.status == "failed"]
        error = choose_error(
            [CODES[finding.code or InternalError.code](finding.message, remedy=finding.remedy) for finding in failed]
        )
        if error is not None:
            for finding in failed:
                error.add_note(f"{finding.probe} failed in the canary, whose row is loaded.")
            raise error
        said = tuple(f"{finding.probe}: {finding.message}" for finding in findings)
        return report.model_copy(update={"notes": (*report.notes, *said)})

    def _load(self, spec: Spec) -> RunReport:
        wanted, clients = self.wanted, self.context.clients
        given = wanted.job_id if wanted.canary is None else wanted.canary or None
        job_id = job_ids.choose_job_id(spec.pipeline, given, wanted.scheduled_at, wanted.run_id)
        if wanted.scheduled_at is not None:
            # A schedule is never given the job id that repeats an undone load, so it is looked up here.
            job_id = find_last_repeat(Pipeline.open(spec, clients).first_control, job_id)
        remember_job_id(job_id)
        if wanted.messages is not None:
            spec = with_messages(spec, wanted.messages)
        spec = _choose_range(spec, wanted, clients)
        if wanted.scheduled_at is not None:
            spec = _schedule(spec, job_ids.parse_time(wanted.scheduled_at))
        first = f"load {job_id} stops: what is staged is withdrawn, and a table that is being committed is finished."
        with show_progress(spec, ERR, job_id=job_id, quiet=wanted.quiet) as progress:
            clock = PhaseClock(progress, self.phases)
            signals = Signals(_tell, first=first, go_on=self.again(job_id))
            spark = signals.after(clock.waits(show_waiting(progress, "Spark starts:", self.context.spark)))
            try:
                with handle_signals(signals) as stop:
                    return load(
                        spec,
                        job_id=job_id,
                        clients=clients,
                        spark=spark,
                        progress=clock,
                        sync_id=wanted.sync_id,
                        stop=stop,
                    )
            except Stopped as stopped:
                stopped.add_note(self.again(job_id))
                raise


def _choose_range(spec: Spec, wanted: Wanted, clients: Clients) -> Spec:
    """Return the pipeline whose one table brings the rows of a range, where one is given."""
    if wanted.first is None or wanted.end is None:
        if wanted.first is not None or wanted.end is not None or wanted.column is not None:
            raise SpecInvalidError("expected --from VALUE and --to VALUE together; --by COLUMN is for both.")
        return spec
    controls = Pipeline.open(spec, clients).controls
    single = spec.named_tables[0] if len(spec.named_tables) == 1 else None
    cursor = controls[single.id].state.read().cursor if single is not None else None
    bounds = Bounds(wanted.first, wanted.end, wanted.column)
    return choose_range(spec, bounds, cursor.type if cursor is not None else None)


def _schedule(spec: Spec, time: datetime) -> Spec:
    update: dict[str, Any] = {"scheduled_at": time}
    if spec.lineage is not None:
        update["lineage"] = spec.lineage.model_copy(update={"nominal_time": time})
    return spec.model_copy(update=update)


def _tell(text: str) -> None:
    """Print a line on standard error, above the progress that is shown there."""
    ERR.print(text, markup=False, soft_wrap=True)


def _print_stopped(report: RunReport, go_on: str) -> None:
    left = [table for table in report.tables if table.status == "not_run"]
    names = ", ".join(table.id for table in left)
    for note in (note for table in left for note in table.notes):
        warn(note)
    click.echo(f"load {report.job_id} stopped by {report.stopped}: nothing of {names} is published.\n{go_on}", err=True)


def _run_continuously(context: Context, spec: Spec, name: str | None, as_json: bool, stage: str) -> int:
    first = "the run stops when the batch in hand has ended."
    go_on = "The next start continues with the batch in hand."
    signals = Signals(_tell, first=first, go_on=go_on, cancels=False)
    clients, controls = context.clients, Pipeline.open(spec, context.clients).controls

    def run_until_stopped() -> tuple[RunStatus, LakeError | None]:
        # Importing PyIceberg takes a second, and few runs keep their tables up.
        from lakewriter.operate.upkeep import BETWEEN_BATCHES

        with show_batches(spec, ERR, stage) as watch, handle_signals(signals) as stop:
            spark, send = signals.after(context.spark), make_sender(spec, stage)
            return run_continuously(
                spec, clients=clients, spark=spark, watch=watch, stop=stop.event, upkeep=BETWEEN_BATCHES, send=send
            )

    status, error = leave_outcome(run_until_stopped, summarize_run, name=name, controls=controls, warn=warn)
    for table in status.tables.values():
        if table.state == "failed":
            click.echo(table.message, err=True)
    if as_json:
        print_json(status, ErrorReport.of(error) if error else None)
    else:
        show_continuous(OUT, status)
    return error.exit_code if error else EXIT_OK


def _print_failures(report: RunReport) -> LakeError | None:
    """Print what failed, each text once: several tables may fail of one cause."""
    failed = [result for result in report.tables if result.code]
    error = find_failure(report)
    ordered = sorted(failed, key=lambda result: result.code != (error.code if error else ""))
    for text in dict.fromkeys("\n".join((f"{result.code}: {result.message}", *result.notes)) for result in ordered):
        click.echo(name_lake(text), err=True)
    return error
