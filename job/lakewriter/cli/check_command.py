"""``lakewriter check``: try what a load needs, and say what to fix."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, OUT, STAGE, open_context, print_json, report_errors
from lakewriter.errors import CODES
from lakewriter.exit_codes import EXIT_FAILED, EXIT_OK


@click.command()
@LAKE
@STAGE
@JSON
@report_errors
def check(lake: Path, stage: str | None, as_json: bool) -> int:
    """Try every permission and setting that a load needs. Say what to fix."""
    from lakewriter.cli import console
    from lakewriter.doctor import CheckReport, run_checks

    context = open_context(lake, stage)
    findings = run_checks(context.spec, context.clients, deployment=context.deployment)
    if as_json:
        print_json(CheckReport(pipeline=context.spec.pipeline, findings=findings))
    else:
        console.show_findings(OUT, findings)
    failed = [finding for finding in findings if finding.status == "failed"]
    return CODES[failed[0].code].exit_code if failed and failed[0].code else EXIT_FAILED if failed else EXIT_OK
