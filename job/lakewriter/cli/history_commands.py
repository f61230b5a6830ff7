"""``lakewriter history`` and ``lakewriter show``: the results of loads."""

from pathlib import Path
from typing import Final

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, WholeNumber, report_errors
from lakewriter.operate import job_ids

LOADS: Final = 20


@click.command()
@LAKE
@click.option("--table", help="List only loads that have this table.", shell_complete=complete_table)
@click.option("--limit", type=WholeNumber(1, 1000), default=LOADS, show_default=True, help="List so many loads.")
@STAGE
@LOCAL
@JSON
@report_errors
def history(lake: Path, table: str | None, limit: int, stage: str | None, as_json: bool) -> int:
    """List the last loads, the newest first.

    They come from the control objects in the bucket, which are kept for keep_loads_days. With --table, rows, files
    and sizes are those of the table.
    """
    from lakewriter.cli.history_view import print_history

    return print_history(lake, stage, table, limit, as_json=as_json)


@click.command()
@LAKE
@click.argument("job", required=False)
@STAGE
@LOCAL
@JSON
@report_errors
def show(lake: Path, job: str | None, stage: str | None, as_json: bool) -> int:
    """Show the result of one load.

    JOB is the load's job id, as run and history show it; without it, the last load is shown.
    """
    from lakewriter.cli.history_view import print_load

    return print_load(lake, stage, None if job is None else job_ids.require_job_id(job), as_json=as_json)
