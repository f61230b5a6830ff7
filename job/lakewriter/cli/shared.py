"""What the commands share: arguments, and how they print and exit; no library but click and rich is imported here."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from lakewriter.errors import LakeError

if TYPE_CHECKING:
    from lakewriter.cli.context import Context

WIDE: Final = 160
"""Columns for output that no terminal bounds."""

OUT = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
ERR = Console(stderr=True, highlight=False)

LAKE = click.argument("lake", type=click.Path(path_type=Path))
STAGE = click.option("--stage", help="Merge deployment.stages.STAGE over the file.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")


def report_errors(command: Callable[..., int]) -> Callable[..., None]:
    """The command's exit code; a failure a user can act on is printed as ``CODE: message``, without a traceback."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except LakeError as error:
            click.echo(error.report, err=True)
            code = error.exit_code
        sys.exit(code)

    return guarded


def print_json(value: Any) -> None:
    """One object, on standard output; pydantic's models as their JSON."""
    plain = value.model_dump(mode="json", by_alias=True) if hasattr(value, "model_dump") else value
    click.echo(json.dumps(plain, indent=1, default=str))


def open_context(lake: Path, stage: str | None) -> "Context":
    """The file at ``lake``; its warnings are printed."""
    from lakewriter.cli.context import Context

    context = Context(lake, stage)
    for warning in context.spec.warnings:
        warn(warning)
    return context


def warn(text: str) -> None:
    """One line on standard error."""
    ERR.print(f"warning: {text}", markup=False, soft_wrap=True)
