"""``lakewriter status``: what a pipeline has committed, and how it fares; once, or again and again."""

from pathlib import Path
from typing import Final

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, WholeNumber, report_errors

WATCH_SECONDS: Final = 5


@click.command()
@LAKE
@click.option(
    "--watch",
    type=WholeNumber(min=1),
    is_flag=False,
    flag_value=WATCH_SECONDS,
    metavar="[SECONDS]",
    help=f"Repeat every SECONDS ({WATCH_SECONDS} by default) until Ctrl-C.",
)
@STAGE
@LOCAL
@JSON
@report_errors
def status(lake: Path, watch: int | None, stage: str | None, as_json: bool) -> int:
    """Show what is committed, running and pending. Exit with 0 if all is well.

    For each table it shows the cursor, the last commit, running attempts and the pending load. A continuous run's
    state follows.
    """
    from lakewriter.cli.status_view import print_status

    return print_status(lake, stage, watch, as_json=as_json)
