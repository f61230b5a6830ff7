"""Arguments of the commands, and how they print and exit; no library but click and rich is imported here."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from lakewriter.cli.completing import complete_stage, complete_table
from lakewriter.cli.endings import LOCAL_KEY, report_errors
from lakewriter.cli.json_output import print_json

if TYPE_CHECKING:
    from lakewriter.operate.context import Context

__all__ = [
    "ERR",
    "JSON",
    "LAKE",
    "LOCAL",
    "OUT",
    "STAGE",
    "TABLES",
    "WholeNumber",
    "is_local",
    "list_chosen_tables",
    "open_context",
    "print_json",
    "report_errors",
    "warn",
]

WIDE: Final = 160
"""Columns for output that no terminal bounds."""

_TABLES: Final = "lakewriter.tables"

OUT = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
ERR = Console(stderr=True, highlight=False)


class WholeNumber(click.IntRange):
    """A whole number in a range, which the message names whatever was given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{value!r}: expected a whole number in the range {self._describe_range()}.", param, error.ctx)


LAKE = click.argument("lake", type=click.Path(path_type=Path))
STAGE = click.option("--stage", help="Merge deployment.stages.STAGE over the file.", shell_complete=complete_stage)
LOCAL = click.option(
    "--local",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({LOCAL_KEY: value}),
    help="Use an S3 server on this machine; its data stay in .lakewriter, beside LAKE.",
)
"""For commands that call ``open_context``, which reads it; so none of them has to hand it on."""
TABLES = click.option(
    "--table",
    multiple=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({_TABLES: value}),
    shell_complete=complete_table,
    help="Take this table alone; repeatable.",
)
"""Likewise."""
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")


def open_context(lake: Path, stage: str | None, *, quiet: bool = False, asks: bool = True) -> "Context":
    """Read the file at ``lake``, with the tables that ``--table`` names or all; its warnings are printed, unless it is
    to be ``quiet``. Unless it ``asks``, no service is asked for what the file leaves out."""
    from lakewriter.operate.context import Context

    with ERR.status("Starting the S3 server of this machine") if is_local() and ERR.is_terminal else nullcontext():
        context = Context(lake, stage, local=is_local(), asks=asks)
    context.choose_tables(list_chosen_tables())
    for warning in () if quiet else context.spec.warnings:
        warn(warning)
    return context


def is_local() -> bool:
    """Return True if the command was called with ``--local``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(LOCAL_KEY))


def list_chosen_tables() -> tuple[str, ...]:
    """List the tables that ``--table`` names; none where all are taken."""
    context = click.get_current_context(silent=True)
    return () if context is None else tuple(context.meta.get(_TABLES, ()))


def warn(text: str) -> None:
    """Print one line on standard error."""
    ERR.print(f"warning: {text}", markup=False, soft_wrap=True)
