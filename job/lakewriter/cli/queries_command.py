"""``lakewriter queries``: SQL that reads the tables."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, STAGE, report_errors


@click.command()
@LAKE
@STAGE
@JSON
@report_errors
def queries(lake: Path, stage: str | None, as_json: bool) -> int:
    """Print SQL that reads the tables."""
    from lakewriter.cli.queries_view import print_queries

    return print_queries(lake, stage, as_json=as_json)
