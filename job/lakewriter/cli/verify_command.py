"""``lakewriter verify``: compare committed loads with what can be queried now."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors
from lakewriter.errors import SpecInvalidError
from lakewriter.operate import job_ids


@click.command()
@LAKE
@click.argument("job", required=False)
@click.option("--run-id", metavar="TEXT", help="Compare the load that run --run-id TEXT made, in place of JOB.")
@click.option("--all", "every", is_flag=True, help="Compare every load whose records are kept.")
@click.option("--rows", is_flag=True, help="Also read the files; count rows and repeated row ids.")
@STAGE
@LOCAL
@JSON
@report_errors
def verify(
    lake: Path, job: str | None, run_id: str | None, every: bool, rows: bool, stage: str | None, as_json: bool
) -> int:
    """Compare a committed load with S3 and the catalog. Its own records are compared too.

    JOB is the load's job id, as run and status show it.
    """
    if (job is not None) + (run_id is not None) + every != 1:
        raise SpecInvalidError("expected either JOB, the id of a load, or --run-id, or --all.")
    job_id = None if job is None else job_ids.require_job_id(job)
    if run_id is not None:
        job_id = job_ids.require_run_id(run_id)
    from lakewriter.cli.verify_view import verify_every, verify_one

    return (
        verify_every(lake, stage, rows=rows, as_json=as_json)
        if job_id is None
        else verify_one(lake, stage, job_id, rows=rows, as_json=as_json)
    )
