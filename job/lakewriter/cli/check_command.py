"""``lakewriter check``: try what a load needs, and say what to fix."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, OUT, STAGE, TABLES, open_context, print_json, report_errors
from lakewriter.exit_codes import EXIT_OK


@click.command()
@LAKE
@TABLES
@STAGE
@click.option("--no-sources", is_flag=True, help="Leave out the sources, on a machine that cannot reach them.")
@LOCAL
@JSON
@report_errors
def check(lake: Path, stage: str | None, no_sources: bool, as_json: bool) -> int:
    """Try every permission and setting that a load needs, and look at the sources. Say what to fix."""
    from lakewriter.cli import console
    from lakewriter.cli.exit_reasons import find_check_error
    from lakewriter.doctor import CheckReport, run_checks

    context = open_context(lake, stage)
    spark = None if no_sources else context.spark
    findings = run_checks(
        context.spec, context.clients, deployment=context.deployment, refusal=context.refusal, spark=spark
    )
    error = find_check_error(findings)
    if as_json:
        print_json(CheckReport(pipeline=context.spec.pipeline, findings=findings), error)
    else:
        console.show_findings(OUT, findings)
    return error.exit_code if error else EXIT_OK
