"""The work of ``lakewriter replay``."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from lakewriter.cli.json_output import remember_job_id
from lakewriter.cli.progress_view import show_progress, show_waiting
from lakewriter.cli.run_view import show_run
from lakewriter.cli.shared import ERR, OUT, open_context, print_json, warn
from lakewriter.cli.signals import Signals, handle_signals
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.context import Context
from lakewriter.operate.load_ending import PhaseClock, leave_record
from lakewriter.report import ErrorReport, RunReport
from lakewriter.run.judging import list_departures
from lakewriter.run.loader import load
from lakewriter.run.outcome_file import find_failure
from lakewriter.run.replay import Chosen, Replay, find_files, require_replayable
from lakewriter.run.stop import exit_code_of

_AGAIN: Final = "Continue it with the same command."


@dataclass(frozen=True)
class WantedReplay:
    """A replay as the user asks for it; ``since`` is the first load."""

    table: str
    check: str | None
    since: str | None


def replay_table(lake: Path, stage: str | None, wanted: WantedReplay, *, as_json: bool) -> int:
    """Load what the quarantine holds, and print the load's report."""
    context = open_context(lake, stage)
    replay = plan_replay(context, wanted)
    if not replay.files:
        what = f" of check {wanted.check!r}" if wanted.check else ""
        warn(f"the quarantine of {wanted.table} holds no rows{what}: there is nothing to replay.")
        if as_json:
            print_json(_make_empty(context, replay))
        return EXIT_OK
    phases: dict[str, dict[str, float]] = {}
    report = _load(context, replay, phases)
    for note in (*report.notes, *list_departures(report)):
        warn(note)
    error = find_failure(report)
    if error is not None:
        click.echo(f"{error.code}: {error}", err=True)
    ending = ErrorReport.of(error) if error is not None else None
    if report.stopped is not None:
        ending = ErrorReport.of_stop(report.stopped, exit_code_of(report.stopped), _AGAIN)
    leave_record(report, ending, phases, context.controls(), warn)
    if as_json:
        print_json(report, ending)
    else:
        show_run(OUT, report, phases)
    return ending.exit_code if ending is not None else EXIT_OK


def plan_replay(context: Context, wanted: WantedReplay) -> Replay:
    """Find the files that are to be replayed."""
    context.require_table(wanted.table)
    table = next(table for table in context.spec.tables if table.id == wanted.table)
    require_replayable(context.spec, table)
    pipeline = Pipeline.open(context.spec, context.clients)
    control = pipeline.controls[table.id]
    # What a pending load has kept out is not there yet, and what a pending replay has loaded still is.
    recover(control, pipeline.open_clients)
    chosen = Chosen(wanted.check, _read_start(control, wanted.since))
    return Replay(context.spec, table, find_files(control, table, chosen), chosen)


def _read_start(control: Control, job_id: str | None) -> datetime | None:
    if job_id is None:
        return None
    report = control.read_report(job_id)
    if report is None:
        raise SpecInvalidError(
            f"--since {job_id!r} is not a committed load of {control.table_id}.",
            remedy="lakewriter history LAKE lists its loads.",
        )
    return report.started


def _load(context: Context, replay: Replay, phases: dict[str, dict[str, float]]) -> RunReport:
    remember_job_id(replay.job_id)
    first = f"load {replay.job_id} stops: what is staged is withdrawn, and a table that is being committed is finished."
    spec, control = replay.make_spec(), context.controls()[replay.table.id]
    with show_progress(spec, ERR, job_id=replay.job_id) as progress:
        clock = PhaseClock(progress, phases)
        signals = Signals(lambda text: ERR.print(text, markup=False, soft_wrap=True), first=first, go_on=_AGAIN)
        with handle_signals(signals) as stop:
            return load(
                spec,
                job_id=replay.job_id,
                clients=context.clients,
                spark=signals.after(clock.waits(show_waiting(progress, "Spark starts:", context.spark))),
                progress=clock,
                kind=replay.make_kind(control),
                stop=stop,
            )


def _make_empty(context: Context, replay: Replay) -> RunReport:
    return RunReport(
        pipeline=context.spec.pipeline,
        job_id=replay.job_id,
        attempt="",
        status="done",
        started_at=datetime.now(UTC),
        seconds=0.0,
        tables=(),
        requests={},
    )
