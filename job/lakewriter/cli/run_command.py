"""``lakewriter run``: the command that loads."""

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from lakewriter.cli import console, job_ids
from lakewriter.cli.context import Context
from lakewriter.cli.continuous_view import show_batches, show_continuous
from lakewriter.cli.shared import ERR, JSON, LAKE, OUT, STAGE, open_context, print_json, report_errors, warn
from lakewriter.cli.signals import Signals, handle_signals
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.report import RunReport
from lakewriter.run.continuous import run_continuously
from lakewriter.run.continuous_metrics import make_sender
from lakewriter.run.continuous_status import RunStatus
from lakewriter.run.loader import load, with_messages
from lakewriter.run.outcome_file import find_failure, leave_outcome, summarize_load, summarize_run
from lakewriter.run.stop import Stopped, exit_code_of
from lakewriter.spec.canary import make_canary
from lakewriter.spec.specification import Spec

_STAGE_VARIABLE: Final = "LAKEWRITER_STAGE"
"""Names the stage in the metrics of a job whose file has its stage merged in."""
_NO_STAGE: Final = "none"


@dataclass(frozen=True)
class Wanted:
    """Which load it is to be, what it reads in place of the file's messages, and under what name it tells its end."""

    job_id: str | None
    scheduled_at: str | None
    sync_id: int | None
    messages: str | None
    outcome: str | None
    canary: str | None = None

    @property
    def for_one_load(self) -> str | None:
        """An option given that means nothing to a continuous run."""
        given = {
            "--job-id": self.job_id,
            "--scheduled-at": self.scheduled_at,
            "--sync-id": self.sync_id,
            "--messages": self.messages,
            "--canary": self.canary,
        }
        return next((option for option, value in given.items() if value is not None), None)


@click.command()
@LAKE
@click.option("--job-id", help="The load's name. Running the same name again continues the same load.")
@click.option(
    "--scheduled-at", metavar="TIME", help="Use the job id of this scheduled time, such as 2026-01-31T06:00:00Z."
)
@click.option("--sync-id", type=click.IntRange(min=0), help="The sync's number, for destinations that number syncs.")
@click.option("--messages", help="Read these Airbyte messages in place of source.messages; - is standard input.")
@click.option("--outcome", metavar="NAME", help="Write the outcome to runs/NAME.json, for an orchestrator.")
@click.option(
    "--canary",
    is_flag=False,
    flag_value="",
    metavar="[JOB_ID]",
    help="Load one row into a table of its own instead, to prove that loads of this file can work.",
)
@click.option("--continuous", is_flag=True, help="Load new data at every interval, until SIGTERM.")
@STAGE
@JSON
@report_errors
def run(lake: Path, stage: str | None, as_json: bool, continuous: bool, **options: Any) -> int:
    """Load every table once under a job id. Without --job-id, make a new one."""
    wanted = Wanted(**options)
    if continuous and wanted.for_one_load:
        raise SpecInvalidError(f"{wanted.for_one_load} is for a single load; a continuous run names each of its own.")
    name = None if wanted.outcome is None else job_ids.require_job_id(wanted.outcome, "outcome")
    context = open_context(lake, stage)
    context.spec = _choose_spec(context.spec, wanted)
    if continuous:
        return _run_continuously(context, name, as_json, stage or os.environ.get(_STAGE_VARIABLE) or _NO_STAGE)
    again = partial(_describe_continuation, lake, stage, wanted)
    controls = context.controls()
    try:
        report = leave_outcome(
            lambda: _run_load(context, wanted, again), summarize_load, name=name, controls=controls, warn=warn
        )
    except Stopped as stopped:
        click.echo(f"The load was {stopped} before a table began.\n{' '.join(stopped.__notes__)}", err=True)
        return exit_code_of(stopped.reason)
    for note in report.notes:
        warn(note)
    error = _print_failures(report)
    if as_json:
        print_json(report)
    else:
        console.show_run(OUT, report)
    if report.stopped is not None:
        _print_stopped(report, again(report.job_id))
        return exit_code_of(report.stopped)
    return error.exit_code if error else EXIT_OK


def _choose_spec(spec: Spec, wanted: Wanted) -> Spec:
    if wanted.canary is None:
        return spec
    if wanted.for_one_load != "--canary":
        raise SpecInvalidError(f"{wanted.for_one_load} is for a load of the file's tables; --canary has one row.")
    return make_canary(spec)


def _describe_continuation(lake: Path, stage: str | None, wanted: Wanted, job_id: str) -> str:
    """How to go on with a load: the command, as a person would type it."""
    options = {
        "--stage": stage,
        "--sync-id": wanted.sync_id,
        "--messages": wanted.messages,
        "--outcome": wanted.outcome,
    }
    given = [part for option, value in options.items() if value is not None for part in (option, str(value))]
    return f"Go on with: {shlex.join(['lakewriter', 'run', str(lake), '--job-id', job_id, *given])}"


def _run_load(context: Context, wanted: Wanted, again: Callable[[str], str]) -> RunReport:
    given = wanted.job_id if wanted.canary is None else wanted.canary or None
    job_id = job_ids.choose_job_id(context.spec.pipeline, given, wanted.scheduled_at)
    spec = context.spec if wanted.messages is None else with_messages(context.spec, wanted.messages)
    first = f"load {job_id} stops: what is staged is withdrawn, and a table that is being committed is finished."
    with console.show_progress(spec, ERR) as progress:
        signals = Signals(_tell, first=first, go_on=again(job_id))
        try:
            with handle_signals(signals) as stop:
                return load(
                    spec,
                    job_id=job_id,
                    clients=context.clients,
                    spark=signals.after(context.spark),
                    progress=progress,
                    sync_id=wanted.sync_id,
                    stop=stop,
                )
        except Stopped as stopped:
            stopped.add_note(again(job_id))
            raise


def _tell(text: str) -> None:
    """A line on standard error, above the progress that is shown there."""
    ERR.print(text, markup=False, soft_wrap=True)


def _print_stopped(report: RunReport, go_on: str) -> None:
    left = [table for table in report.tables if table.status == "not_run"]
    names = ", ".join(".".join(part for part in (table.schema_, table.table) if part) for table in left)
    for note in (note for table in left for note in table.notes):
        warn(note)
    click.echo(f"load {report.job_id} stopped by {report.stopped}: nothing of {names} is published.\n{go_on}", err=True)


def _run_continuously(context: Context, name: str | None, as_json: bool, stage: str) -> int:
    first = "the run stops when the batch in hand has ended."
    go_on = "The next start goes on with the batch in hand."
    signals = Signals(_tell, first=first, go_on=go_on, cancels=False)

    def run_until_stopped() -> tuple[RunStatus, LakeError | None]:
        with show_batches(context.spec, ERR, stage) as watch, handle_signals(signals) as stop:
            spark, send = signals.after(context.spark), make_sender(context.spec, stage)
            return run_continuously(
                context.spec, clients=context.clients, spark=spark, watch=watch, stop=stop.event, send=send
            )

    status, error = leave_outcome(run_until_stopped, summarize_run, name=name, controls=context.controls(), warn=warn)
    for table in status.tables.values():
        if table.state == "failed":
            click.echo(table.message, err=True)
    if as_json:
        print_json(status)
    else:
        show_continuous(OUT, status)
    return error.exit_code if error else EXIT_OK


def _print_failures(report: RunReport) -> LakeError | None:
    failed = [result for result in report.tables if result.code]
    error = find_failure(report)
    for result in sorted(failed, key=lambda result: result.code != (error.code if error else "")):
        click.echo("\n".join((f"{result.code}: {result.message}", *result.notes)), err=True)
    return error
