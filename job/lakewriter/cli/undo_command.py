"""``lakewriter undo``: take a committed load out of its tables again."""

from pathlib import Path
from typing import Any

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.repair_commands import REASON
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors
from lakewriter.operate import job_ids


@click.command()
@LAKE
@click.argument("job")
@click.option(
    "--table", "tables", multiple=True, shell_complete=complete_table, help="Undo it in this table alone; repeatable."
)
@click.option("--through", is_flag=True, help="Undo the later loads of its tables too, the newest first.")
@click.option("--keep-cursor", is_flag=True, help="Leave the cursor where it is: the rows are not read again.")
@click.option("--rewrite", is_flag=True, help="Iceberg: delete its rows from files that were compacted since.")
@click.option("--plan", "plan_only", is_flag=True, help="Only say what would be done, and what readers would see.")
@REASON
@STAGE
@LOCAL
@JSON
@report_errors
def undo(lake: Path, job: str, stage: str | None, as_json: bool, **options: Any) -> int:
    """Take a committed load out of its tables again. The next load reads its rows anew.

    JOB is the load's job id, as run and history show it. Running it under this id again loads nothing; the id that
    loads its rows again is printed.
    """
    from lakewriter.cli.undo_view import WantedUndo, undo_load

    wanted = WantedUndo(job_id=job_ids.require_job_id(job), **options)
    return undo_load(lake, stage, wanted, as_json=as_json)
