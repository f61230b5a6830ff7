"""``lakewriter maintain``: compact Iceberg tables, expire their snapshots and delete their orphan files."""

from pathlib import Path

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors


@click.command()
@LAKE
@click.argument("table", required=False, shell_complete=complete_table)
@click.option(
    "--most-gib",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Compact at most so many GiB of each table's files; the next call continues.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Only say what would go, and which loads lose their undo.")
@STAGE
@LOCAL
@JSON
@report_errors
def maintain(lake: Path, table: str | None, most_gib: float, plan_only: bool, stage: str | None, as_json: bool) -> int:
    """Compact Iceberg tables, expire their old snapshots and delete orphan files, as 'maintenance' in LAKE says.

    TABLE is the name of a table as status shows it; by default all are kept up. Loads go on meanwhile.
    """
    from lakewriter.cli.maintain_view import maintain_tables

    return maintain_tables(lake, stage, table, int(most_gib * 2**30), plan_only=plan_only, as_json=as_json)
