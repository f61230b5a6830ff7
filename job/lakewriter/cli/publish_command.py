"""``lakewriter publish``: upload what an assembly's stacks refer to, so that any tool can deploy its templates."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, OUT, print_json, report_errors
from lakewriter.exit_codes import EXIT_OK


@click.command()
@click.argument("assembly", type=click.Path(path_type=Path))
@click.option("--region", metavar="NAME", help="The region of the stacks; by default that of the AWS configuration.")
@click.option(
    "--bucket-owner",
    metavar="ACCOUNT",
    help="The account that the bucket belongs to; by default that of the credentials.",
)
@JSON
@report_errors
def publish(assembly: Path, region: str | None, bucket_owner: str | None, *, as_json: bool) -> int:
    """Upload what the stacks of ASSEMBLY refer to: the job, its packages, its lake.yaml and the templates.

    ASSEMBLY is the folder that synth writes, such as cdk.out. What is there already is left alone. Then any tool may
    deploy the templates; their URLs are printed.
    """
    from lakewriter.cli.printed import PublishReport
    from lakewriter.operate.publishing import publish as upload

    done = upload(assembly, region, bucket_owner)
    if as_json:
        print_json(
            PublishReport(
                uploaded=done.uploaded, present=done.present, bytes=done.bytes, templates=dict(done.templates)
            )
        )
        return EXIT_OK
    OUT.print(f"Uploaded {done.uploaded} files, {done.bytes:,} bytes; {done.present} were there.", markup=False)
    for stack, url in done.templates.items():
        OUT.print(f"{stack}  {url}", markup=False, soft_wrap=True)
    return EXIT_OK
