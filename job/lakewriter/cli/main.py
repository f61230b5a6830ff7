"""The command line: arguments to a command to an exit code; each command prints and exits."""

from typing import Final

import click

from lakewriter import __version__
from lakewriter.cli.lazy_group import LazyGroup

COMMANDS: Final = {
    "abandon": "lakewriter.cli.repair_commands:abandon",
    "airbyte": "lakewriter.cli.airbyte.commands:airbyte",
    "catalogue": "lakewriter.cli.page_commands:catalogue",
    "check": "lakewriter.cli.check_command:check",
    "completion": "lakewriter.cli.completion_command:completion",
    "history": "lakewriter.cli.history_commands:history",
    "init": "lakewriter.cli.init_command:init",
    "local": "lakewriter.cli.local_commands:local",
    "plan": "lakewriter.cli.plan_command:plan",
    "policy": "lakewriter.cli.policy_command:policy",
    "queries": "lakewriter.cli.queries_command:queries",
    "rebuild": "lakewriter.cli.repair_commands:rebuild",
    "replay": "lakewriter.cli.replay_command:replay",
    "report": "lakewriter.cli.page_commands:report",
    "reset": "lakewriter.cli.repair_commands:reset",
    "run": "lakewriter.cli.run_command:run",
    "schema": "lakewriter.cli.schema_command:schema",
    "show": "lakewriter.cli.history_commands:show",
    "status": "lakewriter.cli.status_command:status",
    "undo": "lakewriter.cli.undo_command:undo",
    "verify": "lakewriter.cli.verify_command:verify",
}
"""Where each command is declared. These modules import what the work needs when the command runs."""


@click.group(cls=LazyGroup, places=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lakewriter")
def main() -> None:
    """Load the tables of a lake.yaml into an S3 data lake, exactly once per job id.

    LAKE, in every command, is the path of that file. A new one goes through check, plan and run; status shows what
    it has loaded.
    """
