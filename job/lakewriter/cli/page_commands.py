"""``lakewriter report`` and ``lakewriter catalogue``: pages for a browser."""

from pathlib import Path

import click

from lakewriter.cli.shared import LAKE, LOCAL, STAGE, report_errors
from lakewriter.operate import job_ids


@click.command()
@LAKE
@click.argument("job", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the page to this file; - is standard output.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@STAGE
@LOCAL
@report_errors
def report(lake: Path, job: str | None, output: Path | None, opens: bool, stage: str | None) -> int:
    """Write the page of a load as one HTML file.

    JOB is the load's job id, as run and history show it; without it, the page is of the last load. The page is made
    of the control objects in the bucket, where each load leaves it as report.html too.
    """
    from lakewriter.cli.pages import write_report

    return write_report(lake, stage, None if job is None else job_ids.require_job_id(job), output, opens=opens)


@click.command()
@LAKE
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the page to this file, or into this folder with a page of each of the last loads; - prints it.",
)
@STAGE
@LOCAL
@report_errors
def catalogue(lake: Path, output: Path | None, stage: str | None) -> int:
    """Write a page of all tables as one HTML file.

    For each table it has columns, types, where they come from, the last load, sizes, and SQL to paste. With -o FOLDER
    there are pages of the last loads beside it, and all link to each other.
    """
    from lakewriter.cli.pages import write_catalogue

    return write_catalogue(lake, stage, output)
