"""``lakewriter verify``: compare committed loads with what can be queried now."""

from pathlib import Path

import click

from lakewriter.cli import console, job_ids
from lakewriter.cli.shared import JSON, LAKE, OUT, STAGE, open_context, print_json, report_errors
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.verification import Verified, choose_exit_code, verify_all
from lakewriter.operate.verification import verify as verify_load


@click.command()
@LAKE
@click.argument("job", required=False)
@click.option("--all", "every", is_flag=True, help="Compare every load whose records are kept.")
@click.option("--rows", is_flag=True, help="Also read the files; count rows and repeated row ids.")
@STAGE
@JSON
@report_errors
def verify(lake: Path, job: str | None, every: bool, rows: bool, stage: str | None, as_json: bool) -> int:
    """Compare a committed load with S3 and the catalog. Its own records are compared too."""
    if (job is None) != every:
        raise SpecInvalidError("expected either JOB, the id of a load, or --all.")
    job_id = None if job is None else job_ids.require_job_id(job)
    context = open_context(lake, stage)
    counting = Counting.of(context.spec) if rows else None
    if job_id is not None:
        found = verify_load(context.controls(), job_id, context.clients, counting)
        if as_json:
            print_json(found)
        else:
            console.show_verified(OUT, found)
        return found.exit_code
    loads: list[Verified] = []
    for each in verify_all(context.controls(), context.clients, counting):
        loads.append(each)
        if not as_json:
            console.show_verified(OUT, each)
    if as_json:
        print_json({"loads": [each.model_dump(mode="json") for each in loads]})
    elif not loads:
        OUT.print("no load has records that are kept")
    return choose_exit_code(loads) if loads else EXIT_OK
