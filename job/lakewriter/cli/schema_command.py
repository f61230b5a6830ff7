"""``lakewriter schema``: the JSON Schema of what the product reads and prints."""

from collections.abc import Mapping
from typing import Final

import click

from lakewriter.cli import mend_command
from lakewriter.cli.json_output import print_document
from lakewriter.cli.shared import report_errors
from lakewriter.exit_codes import EXIT_OK

PRINTED: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("lakewriter.report:RunReport", "lakewriter.run.continuous_status:RunStatus"),
    "plan": ("lakewriter.operate.planning:PlanReport",),
    "check": ("lakewriter.doctor:CheckReport",),
    "verify": ("lakewriter.operate.verification:Verified", "lakewriter.cli.printed:VerifiedLoads"),
    "status": ("lakewriter.cli.printed:StatusReport",),
    "policy": ("lakewriter.cli.printed:PolicyReport",),
    "queries": ("lakewriter.cli.printed:QueriesReport",),
    "sql": ("lakewriter.cli.printed:SqlReport",),
    "history": ("lakewriter.cli.printed:HistoryReport",),
    "show": ("lakewriter.cli.printed:ShownLoad",),
    **mend_command.PRINTED,
    "adopt": ("lakewriter.cli.printed:AdoptReport",),
    "init": ("lakewriter.cli.printed:InitReport",),
    "local": ("lakewriter.cli.printed:LocalReport",),
    "publish": ("lakewriter.cli.printed:PublishReport",),
}
"""The models that a command prints with ``--json``, by their modules, which are imported when they are asked for; in
place of each it may print a ``FailureReport``."""


@click.command()
@click.option(
    "--of",
    "what",
    type=click.Choice(("lake", *PRINTED)),
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

        print_document(make_output_schema(what, PRINTED[what]))
    return EXIT_OK
