"""``lakewriter run``: the command that loads."""

from pathlib import Path
from typing import Any

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, TABLES, WholeNumber, report_errors
from lakewriter.cli.wanted import Wanted
from lakewriter.errors import SpecInvalidError
from lakewriter.operate import job_ids


@click.command()
@LAKE
@click.option("--job-id", help="The load's name. Running the same name again continues the same load.")
@click.option(
    "--run-id",
    metavar="TEXT",
    help="Make the job id from an orchestrator's run id, such as Airflow's: the same run id is the same load.",
)
@click.option(
    "--scheduled-at",
    metavar="TIME",
    help="Use the job id of this scheduled time, such as 2026-01-31T06:00:00Z; 2026-01-31 is its midnight in UTC.",
)
@click.option("--sync-id", type=WholeNumber(min=0), help="The sync's number, for destinations that number syncs.")
@click.option("--messages", help="Read these Airbyte messages in place of source.messages; - is standard input.")
@click.option("--outcome", metavar="NAME", help="Write the outcome to runs/NAME.json, for an orchestrator.")
@click.option(
    "--canary",
    is_flag=False,
    flag_value="",
    metavar="[JOB_ID]",
    help="Load one row into a table of its own instead, and ask the sources, to prove that loads can work.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="CHECK",
    help="Load although this expectation is not met, for this load alone; TABLE:CHECK for that of one table.",
)
@click.option("--reason", metavar="TEXT", help="Why --accept is right, kept in the table's report.")
@click.option(
    "--acceptance",
    metavar="JSON",
    help='--accept and --reason of an orchestrator: {"accept": ["CHECK"], "reason": "TEXT", "by": "WHO"}.',
)
@click.option(
    "--from",
    "first",
    metavar="VALUE",
    help="Load rows of one table again: those whose cursor is at least this, and below --to.",
)
@click.option("--to", "end", metavar="VALUE", help="The first value that --from does not load again.")
@click.option(
    "--by",
    "column",
    metavar="COLUMN",
    help="The column of --from and --to, if it is not the cursor, or the first that decides on partitions.",
)
@click.option("--continuous", is_flag=True, help="Load new data at every interval, until SIGTERM.")
@click.option("--quiet", "-q", is_flag=True, help="Print failures and the summary's line only.")
@TABLES
@STAGE
@LOCAL
@JSON
@report_errors
def run(lake: Path, stage: str | None, as_json: bool, continuous: bool, **options: Any) -> int:
    """Load every table once under a job id. If no option gives one, make a new one.

    With --table, load these tables alone; the same job id without it loads the rest.
    """
    wanted = Wanted(**options)
    if continuous and wanted.for_one_load:
        raise SpecInvalidError(f"{wanted.for_one_load} is for a single load; a continuous run names each of its own.")
    if wanted.outcome is not None:
        job_ids.require_job_id(wanted.outcome, "outcome")
    from lakewriter.cli import run_load

    if continuous:
        return run_load.run_continuous(lake, stage, wanted, as_json=as_json)
    return run_load.run_once(lake, stage, wanted, as_json=as_json)
