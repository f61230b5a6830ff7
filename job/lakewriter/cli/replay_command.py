"""``lakewriter replay``: load the rows that a table's quarantine holds."""

from pathlib import Path

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors


@click.command()
@LAKE
@click.argument("table", shell_complete=complete_table)
@click.option("--check", metavar="CHECK", help="Only rows that this check has kept out; on_bad_row for bad ones.")
@click.option("--since", metavar="JOB", help="Only rows that this load has kept out, or a later one.")
@STAGE
@LOCAL
@JSON
@report_errors
def replay(lake: Path, table: str, check: str | None, since: str | None, stage: str | None, as_json: bool) -> int:
    """Load the rows of a table's quarantine, by the table's present columns and checks.

    TABLE is the name of a table as status shows it. What is loaded leaves the quarantine; rows that are still bad stay
    in it.
    """
    from lakewriter.cli.replay_view import WantedReplay, replay_table

    return replay_table(lake, stage, WantedReplay(table, check, since), as_json=as_json)
