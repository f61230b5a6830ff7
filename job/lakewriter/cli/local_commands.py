"""``lakewriter local``: the S3 server of ``--local``."""

from pathlib import Path

import click

from lakewriter.cli.shared import LAKE, OUT, report_errors
from lakewriter.exit_codes import EXIT_OK


@click.group()
def local() -> None:
    """Look at the S3 server that --local uses, or stop it."""


@local.command()
@LAKE
@report_errors
def start(lake: Path) -> int:
    """Start the server beside LAKE, unless it runs. Print how to reach it."""
    from lakewriter.local.server import LocalServer

    server = LocalServer.beside(lake)
    running = server.start()
    OUT.print(f"S3 server at {running.endpoint}, data in {server.folder}", markup=False, soft_wrap=True)
    OUT.print(f"export AWS_ENDPOINT_URL_S3={running.endpoint}", markup=False, soft_wrap=True)
    OUT.print(f"export AWS_ACCESS_KEY_ID={running.key_id}", markup=False, soft_wrap=True)
    OUT.print(f"export AWS_SECRET_ACCESS_KEY={running.secret}", markup=False, soft_wrap=True)
    OUT.print("export AWS_REGION=us-east-1", markup=False, soft_wrap=True)
    return EXIT_OK


@local.command()
@LAKE
@report_errors
def stop(lake: Path) -> int:
    """Stop the server beside LAKE. Its data stay."""
    from lakewriter.local.server import LocalServer

    server = LocalServer.beside(lake)
    what = "stopped" if server.stop() else "was not running"
    OUT.print(f"The S3 server {what}. Its data are in {server.folder}.", markup=False, soft_wrap=True)
    return EXIT_OK
