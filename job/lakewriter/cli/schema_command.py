"""``lakewriter schema``: the JSON Schema of what the product reads and prints."""

from typing import Final

import click

from lakewriter.cli.json_output import print_document
from lakewriter.cli.shared import report_errors
from lakewriter.exit_codes import EXIT_OK

OF: Final = (
    "lake",
    "run",
    "plan",
    "check",
    "verify",
    "status",
    "policy",
    "queries",
    "history",
    "replay",
    "show",
    "undo",
    "compact",
    "reset",
    "rebuild",
    "abandon",
    "adopt",
    "init",
    "local",
    "publish",
)


@click.command()
@click.option(
    "--of",
    "what",
    type=click.Choice(OF),
    default="lake",
    show_default=True,
    help="lake: the file lake.yaml. Else what this command prints with --json.",
)
@report_errors
def schema(what: str) -> int:
    """Print the JSON Schema of lake.yaml, or of what a command prints with --json.

    Write the file's to lake.schema.json beside the file. With the first line

    \b
        # yaml-language-server: $schema=lake.schema.json

    editors describe each key and mark mistakes.
    """
    if what == "lake":
        from lakewriter.dialects.lake_schema import make_lake_schema

        print_document(make_lake_schema())
    else:
        from lakewriter.cli.output_schemas import make_output_schema

        print_document(make_output_schema(what))
    return EXIT_OK
