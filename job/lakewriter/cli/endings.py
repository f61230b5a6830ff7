"""End every command alike: its exit code, ``CODE: message`` on standard error, and with ``--json`` one object."""

import logging
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from lakewriter.cli.json_output import print_failure
from lakewriter.errors import InternalError, LakeError

if TYPE_CHECKING:
    from lakewriter.report import ErrorReport

LOG: Final = logging.getLogger(__name__)
LOCAL_KEY: Final = "lakewriter.local"
"""The click context keeps under this key whether the command was called with ``--local``."""
_LAKE: Final = re.compile(r"(\blakewriter (?:[a-z]+ )+)LAKE\b")
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_PASSED_ON: Final = (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)
"""Click itself ends a command with these exceptions."""


class Terminated(BaseException):
    """A signal that ends the command; no ``except Exception`` on the way takes it for a failure of its own."""


def report_errors(command: Callable[..., int]) -> Callable[..., None]:
    """Return the command's exit code; print a failure a user can act on as ``CODE: message``, without a traceback."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            with _raise_on_signals():
                code = command(*args, **kwargs)
        except LakeError as error:
            code = _end_with(error, as_json=as_json)
        except _PASSED_ON:
            raise
        except (KeyboardInterrupt, Terminated) as end:
            code = _end_stopped(str(end) if isinstance(end, Terminated) else "SIGINT", as_json=as_json)
        except Exception as fault:
            code = _end_with(InternalError.met("the command", fault), as_json=as_json)
            LOG.exception("The command met a fault of the program.")
        sys.exit(code)

    return guarded


@contextmanager
def explain_usage(*, as_json: bool) -> Iterator[None]:
    """Let click say what is wrong with the arguments, and with ``--json`` say it as an object too."""
    try:
        yield
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.possibilities:
            # The most similar one is the first.
            error = click.NoSuchOption(error.option_name, possibilities=error.possibilities[:1], ctx=error.ctx)
        if as_json:
            _print_usage(error)
        raise error from None


def wants_json(arguments: list[str]) -> bool:
    """Return True if ``--json`` is among the options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def list_given() -> tuple[str, ...]:
    """List what this command was given to name its pipeline: the file, and the options that others need too."""
    context = click.get_current_context(silent=True)
    lake = context.params.get("lake") if context is not None else None
    if context is None or lake is None:
        return ()
    stage = context.params.get("stage")
    return (str(lake), *(["--stage", stage] if stage else []), *(["--local"] if context.meta.get(LOCAL_KEY) else []))


def name_lake(text: str) -> str:
    """Put this command's own file into the commands that a text names, so that they can be pasted."""
    given = shlex.join(list_given())
    return _LAKE.sub(lambda match: f"{match[1]}{given}", text) if given else text


def _end_with(error: LakeError, *, as_json: bool) -> int:
    click.echo(name_lake(error.report), err=True)
    if as_json:
        print_failure(_describe(error))
    return error.exit_code


def _end_stopped(name: str, *, as_json: bool) -> int:
    from lakewriter.report import ErrorReport

    exit_code = 128 + signal.Signals[name]
    click.echo(f"stopped by {name}", err=True)
    if as_json:
        print_failure(ErrorReport.of_stop(name, exit_code, "Run the same command again."))
    return exit_code


def _describe(error: LakeError) -> "ErrorReport":
    from lakewriter.report import ErrorReport

    report = ErrorReport.of(error)
    return report.model_copy(update={"remedy": name_lake(report.remedy)})


def _print_usage(error: click.ClickException) -> None:
    from lakewriter.errors import SpecInvalidError
    from lakewriter.report import ErrorReport

    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lakewriter"
    report = ErrorReport.of(SpecInvalidError(error.format_message(), remedy=f"See '{path} --help'."))
    with context or click.Context(click.Command("lakewriter"), info_name="lakewriter"):
        print_failure(report.model_copy(update={"exit_code": error.exit_code}))


@contextmanager
def _raise_on_signals() -> Iterator[None]:
    """Let the signals that would end the process at once raise ``Terminated``; a second one ends it at once."""

    def interrupt(number: int, _: FrameType | None) -> None:
        restore()
        raise Terminated(signal.Signals(number).name)

    def restore() -> None:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)

    handled = []
    if threading.current_thread() is threading.main_thread():
        # One that is ignored, as nohup has it, or that a caller handles stays as it is.
        handled = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        restore()
