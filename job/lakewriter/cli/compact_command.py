"""``lakewriter compact``: replace small files of an Iceberg table, and those with deleted rows."""

from pathlib import Path

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors


@click.command()
@LAKE
@click.argument("table", shell_complete=complete_table)
@click.option(
    "--most-gib",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Replace at most so many GiB of files; the next call continues.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Only say which files would be replaced.")
@STAGE
@LOCAL
@JSON
@report_errors
def compact(lake: Path, table: str, most_gib: float, plan_only: bool, stage: str | None, as_json: bool) -> int:
    """Replace small files of an Iceberg table, and files with deleted rows, by full files with the same rows.

    TABLE is the name of a table as status shows it. Readers see the same rows throughout, and loads go on.
    """
    from lakewriter.cli.compact_view import compact_table

    return compact_table(lake, stage, table, int(most_gib * 2**30), plan_only=plan_only, as_json=as_json)
