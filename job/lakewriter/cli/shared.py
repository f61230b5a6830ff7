"""What the commands share: arguments, and how they print and exit; no library but click and rich is imported here."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from lakewriter.cli.endings import report_errors
from lakewriter.cli.json_output import print_json

if TYPE_CHECKING:
    from lakewriter.cli.context import Context

__all__ = ["ERR", "JSON", "LAKE", "OUT", "STAGE", "open_context", "print_json", "report_errors", "warn"]

WIDE: Final = 160
"""Columns for output that no terminal bounds."""

OUT = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
ERR = Console(stderr=True, highlight=False)

LAKE = click.argument("lake", type=click.Path(path_type=Path))
STAGE = click.option("--stage", help="Merge deployment.stages.STAGE over the file.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")


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
