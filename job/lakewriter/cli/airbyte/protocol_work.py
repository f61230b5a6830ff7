"""The work of the commands of ``lakewriter airbyte``."""

import functools
import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import click

from lakewriter.aws import Clients
from lakewriter.cli.airbyte.protocol import Emit, make_connection_status, make_log, make_trace, standard_output
from lakewriter.cli.airbyte.writer import Step, Writer
from lakewriter.cli.signals import Signals, handle_signals
from lakewriter.dialects.airbyte.connector import make_connector_specification, read_connection, require_standard_input
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.doctor import run_checks
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_FAILED, EXIT_OK
from lakewriter.run.loader import Loader, read_saved_state
from lakewriter.run.stop import Stop, Stopped, exit_code_of
from lakewriter.run.stream_completion import InputEnd
from lakewriter.source.request import SparkFactory
from lakewriter.source.session import open_spark_session
from lakewriter.spec.specification import MIB, Spec


def print_spec() -> None:
    """Print the SPEC message."""
    with standard_output() as emit:
        emit({"type": "SPEC", "spec": make_connector_specification()})


def check(config: Path) -> None:
    """Print a CONNECTION_STATUS message."""
    with standard_output() as emit:
        emit(make_connection_status(_find_problem(config, emit)))


def print_state(lake: Path, stage: str | None) -> None:
    """Print the source's state, for its --state. Nothing is printed if there is none."""
    try:
        spec = load_spec(lake, stage=stage)
        click.echo(read_saved_state(spec, Clients(spec.access)) or "", nl=False)
    except LakeError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)


def write(config: Path, catalog: Path, step_mb: int | None, step_seconds: float, statuses: str) -> None:
    """Load messages from standard input. Print each STATE once the records before it are committed."""

    def work(emit: Emit) -> None:
        require_standard_input(os.environ)
        spec = _read_spec(config, catalog, emit)
        first = "what is not committed is withdrawn, and no further STATE comes."
        signals = Signals(lambda text: emit(make_log("WARN", text)), first=first, go_on="The next sync goes on.")
        with handle_signals(signals) as stop:
            tasks = spec.limits.tables_at_once
            spark = functools.cache(
                signals.after(lambda: open_spark_session("lakewriter airbyte", tasks=tasks, only_python=True))
            )
            try:
                load(emit, spec, spark, stop)
            except Exception as error:
                # Any error may follow from Spark's cancelled jobs.
                stop.check(cause=error)
                raise

    def load(emit: Emit, spec: Spec, spark: SparkFactory, stop: Stop) -> None:
        clients = Clients(spec.access)
        with tempfile.TemporaryDirectory(prefix="lakewriter-messages-") as folder:
            loader = Loader(spec, uuid.uuid4().hex, clients, spark, lambda *_: None, stop)
            ended: InputEnd = "no statuses" if statuses == "none" else "unseen"
            step = Step(None if step_mb is None else step_mb * MIB, step_seconds)
            writer = Writer(loader, spark, emit, Path(folder), step=step, ended=ended)
            try:
                writer.write(sys.stdin.buffer)
            finally:
                # After any ending: committed rows stay, so the platform gets what became of their values.
                for level, text in writer.statistics.summarise():
                    emit(make_log(level, text))

    with standard_output() as emit:
        code = _guard(work, emit)
    sys.exit(code)


def _guard(work: Callable[[Emit], None], emit: Emit) -> int:
    """Return the exit code: the platform takes anything but 0 for a failure, and reads why from the TRACE."""
    try:
        work(emit)
    except LakeError as error:
        emit(make_trace(error))
        return EXIT_FAILED
    except Stopped as error:
        emit(make_trace(error))
        return exit_code_of(error.reason)
    except BrokenPipeError:
        click.echo("Nobody reads standard output any more: what is not committed is withdrawn.", err=True)
        return EXIT_FAILED
    except Exception as error:
        emit(make_trace(error))
        raise
    return EXIT_OK


def _read_spec(config: Path, catalog: Path | None, emit: Emit) -> Spec:
    spec = read_connection(config, catalog)
    for warning in spec.warnings:
        emit(make_log("WARN", warning))
    return spec


def _find_problem(config: Path, emit: Emit) -> str | None:
    """Return the error that keeps the destination from working, None where nothing does."""
    try:
        require_standard_input(os.environ)
        spec = _read_spec(config, None, emit)
        findings = run_checks(spec, Clients(spec.access))
    except LakeError as error:
        return str(error)
    for finding in findings:
        if finding.status == "warning":
            emit(make_log("WARN", f"{finding.probe}: {finding.message} {finding.remedy}"))
    failed = [
        f"{finding.probe}: {finding.message} {finding.remedy}".strip()
        for finding in findings
        if finding.status == "failed"
    ]
    return " ".join(failed) or None
