"""``lakewriter plan``: what a run would write, and change in the catalog."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, OUT, STAGE, TABLES, open_context, print_json, report_errors
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import job_ids


@click.command()
@LAKE
@click.option("--job-id", help="Show the keys that a load with this job id would write.")
@click.option("--all-columns", is_flag=True, help="Show every column, not only those that change.")
@click.option("--all", "show_all", is_flag=True, help="Show every column, and every object that would be deleted.")
@click.option("--offline", is_flag=True, help="Ask no server and read no source: for a file that you do not trust.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 where readers of a table would break.")
@TABLES
@STAGE
@LOCAL
@JSON
@report_errors
def plan(  # noqa: PLR0913 - click passes each option
    lake: Path,
    job_id: str | None,
    stage: str | None,
    as_json: bool,
    all_columns: bool,
    show_all: bool,
    offline: bool,
    exit_code: bool,
) -> int:
    """Show the keys, columns and catalog changes of a run. Write nothing."""
    from lakewriter.cli import plan_view
    from lakewriter.cli.exit_reasons import find_plan_error
    from lakewriter.operate.planning import PlanReport, plan_offline
    from lakewriter.operate.planning import plan as plan_tables

    context = open_context(lake, stage, asks=not offline)
    if context.refusal is not None:
        raise context.refusal
    job = None if job_id is None else job_ids.require_job_id(job_id)
    if offline:
        tables = plan_offline(context.spec, job_id=job)
    else:
        tables = plan_tables(
            context.spec, job_id=job, clients=context.clients, spark=context.spark, controls=context.controls()
        )
    error = find_plan_error(tables, exit_code=exit_code)
    if as_json:
        print_json(PlanReport(pipeline=context.spec.pipeline, tables=tables), error)
    else:
        plan_view.show_plan(OUT, tables, columns=all_columns or show_all, deletes=show_all)
    return error.exit_code if error else EXIT_OK
