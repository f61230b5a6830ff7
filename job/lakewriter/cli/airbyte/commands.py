"""The Airbyte destination protocol on the command line: what the platform calls a destination with."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LOCAL, STAGE, report_errors
from lakewriter.errors import SpecInvalidError

CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), required=True, help="The destination's configuration, a JSON file."
)
CATALOG = click.option(
    "--catalog",
    type=click.Path(path_type=Path),
    required=True,
    help="The configured catalog: the streams and their modes.",
)


@click.group(name="airbyte")
def airbyte() -> None:
    """Speak the protocol of Airbyte's S3 destination."""


@airbyte.command()
def spec() -> None:
    """Print the SPEC message: which settings this destination takes."""
    from lakewriter.cli.airbyte import protocol_work

    protocol_work.print_spec()


@airbyte.command()
@CONFIG
def check(config: Path) -> None:
    """Print a CONNECTION_STATUS message: whether the configuration works."""
    from lakewriter.cli.airbyte import protocol_work

    protocol_work.check(config)


@airbyte.command()
@click.argument("lake", type=click.Path(path_type=Path))
@click.option("--stage", help="Merge deployment.stages.STAGE over the file.")
def state(lake: Path, stage: str | None) -> None:
    """Print the source's state, for its --state. Nothing is printed if there is none."""
    from lakewriter.cli.airbyte import protocol_work

    protocol_work.print_state(lake, stage)


@airbyte.command()
@CONFIG
@CATALOG
@click.option("--step-mb", type=int, help="MiB of a stream's messages between two commits; by default its files' size.")
@click.option(
    "--step-seconds",
    type=float,
    default=900.0,
    show_default=True,
    help="How long a STATE waits for more messages.",
)
@click.option(
    "--statuses",
    type=click.Choice(["reported", "none"]),
    default="reported",
    show_default=True,
    help="none: the source never reports a stream's status, so the end of the input completes every stream.",
)
def write(config: Path, catalog: Path, step_mb: int | None, step_seconds: float, statuses: str) -> None:
    """Load messages from standard input. Print each STATE once the records before it are committed."""
    from lakewriter.cli.airbyte import protocol_work

    protocol_work.write(config, catalog, step_mb, step_seconds, statuses)


@airbyte.command()
@click.argument("lake", type=click.Path(path_type=Path), required=False)
@click.option("--config", type=click.Path(path_type=Path), help="In place of LAKE: the configuration of airbyte write.")
@click.option("--catalog", type=click.Path(path_type=Path), help="Beside --config: its configured catalog.")
@click.option("--write", "writes", is_flag=True, help="Create the states from which the next sync goes on.")
@STAGE
@LOCAL
@JSON
@report_errors
def adopt(
    lake: Path | None, config: Path | None, catalog: Path | None, stage: str | None, writes: bool, as_json: bool
) -> int:
    """List what the vendor's connector wrote: which objects the configuration owns, and which it misses.

    LAKE is the lake.yaml whose loads are to go on from there. A connection that `airbyte write` loads has no LAKE: give
    --config and --catalog.
    """
    from lakewriter.cli.airbyte import adoption_view

    if lake is not None and config is None and catalog is None:
        connection = adoption_view.open_lake(lake, stage)
    elif lake is None and config is not None and catalog is not None:
        connection = adoption_view.open_configuration(config, catalog)
    else:
        raise SpecInvalidError(
            "expected either LAKE or --config and --catalog.",
            remedy="For loads by `lakewriter run`: lakewriter airbyte adopt LAKE.",
        )
    return adoption_view.list_objects(connection, writes=writes, as_json=as_json)
