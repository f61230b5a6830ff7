"""``lakewriter plan``: what a run would write, and change in the catalog."""

from pathlib import Path

import click

from lakewriter.cli import job_ids
from lakewriter.cli.shared import JSON, LAKE, OUT, STAGE, open_context, print_json, report_errors
from lakewriter.errors import CODES
from lakewriter.exit_codes import EXIT_OK


@click.command()
@LAKE
@click.option("--job-id", help="Show the keys that a load with this job id would write.")
@STAGE
@JSON
@report_errors
def plan(lake: Path, job_id: str | None, stage: str | None, as_json: bool) -> int:
    """Show the keys, columns and catalog changes of a run. Write nothing."""
    from lakewriter.cli import console
    from lakewriter.operate.planning import PlanReport
    from lakewriter.operate.planning import plan as plan_tables

    context = open_context(lake, stage)
    job = None if job_id is None else job_ids.require_job_id(job_id)
    tables = plan_tables(
        context.spec, job_id=job, clients=context.clients, spark=context.spark, controls=context.controls()
    )
    if as_json:
        print_json(PlanReport(pipeline=context.spec.pipeline, tables=tables))
    else:
        console.show_plan(OUT, tables)
    errors = [table.error for table in tables if table.error]
    return CODES[errors[0].partition(":")[0]].exit_code if errors else EXIT_OK
