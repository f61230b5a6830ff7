"""``lakewriter local``: the S3 server of ``--local``."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, STAGE, report_errors


@click.group()
def local() -> None:
    """Look at the S3 server that --local uses, or stop it."""


@local.command()
@LAKE
@STAGE
@JSON
@report_errors
def start(lake: Path, stage: str | None, as_json: bool) -> int:
    """Start the server beside LAKE, unless it runs, and make LAKE's bucket there. Print how to reach it."""
    from lakewriter.cli.local_view import start_server

    return start_server(lake, stage, as_json=as_json)


@local.command()
@LAKE
@JSON
@report_errors
def stop(lake: Path, as_json: bool) -> int:
    """Stop the server beside LAKE. Its data stay."""
    from lakewriter.cli.local_view import stop_server

    return stop_server(lake, as_json=as_json)
