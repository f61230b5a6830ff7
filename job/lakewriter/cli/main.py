"""The command line: arguments to a command to an exit code; each command prints and exits."""

from typing import Final

import click

from lakewriter import __version__
from lakewriter.cli.lazy_group import LazyGroup
from lakewriter.cli.mend_command import VERBS

GROUPS: Final = {
    "Begin": {
        "init": "lakewriter.cli.init_command:init",
        "check": "lakewriter.cli.check_command:check",
        "plan": "lakewriter.cli.plan_command:plan",
    },
    "Load": {
        "run": "lakewriter.cli.run_command:run",
    },
    "Look": {
        "status": "lakewriter.cli.status_command:status",
        "history": "lakewriter.cli.history_commands:history",
        "show": "lakewriter.cli.history_commands:show",
        "report": "lakewriter.cli.page_commands:report",
        "catalogue": "lakewriter.cli.page_commands:catalogue",
        "queries": "lakewriter.cli.queries_command:queries",
        "sql": "lakewriter.cli.sql_command:sql",
        "verify": "lakewriter.cli.verify_command:verify",
    },
    "Mend": {
        "mend": "lakewriter.cli.mend_command:mend",
    },
    "Vendors": {
        "adopt": "lakewriter.cli.adopt_command:adopt",
        "airbyte": "lakewriter.cli.airbyte.commands:airbyte",
    },
    "Tools": {
        "local": "lakewriter.cli.local_commands:local",
        "policy": "lakewriter.cli.policy_command:policy",
        "publish": "lakewriter.cli.publish_command:publish",
        "schema": "lakewriter.cli.schema_command:schema",
        "docs": "lakewriter.cli.docs_command:docs",
        "completion": "lakewriter.cli.completion_command:completion",
    },
}
"""The commands as ``--help`` shows them, and where each is declared: these modules import what the work needs when the
command runs."""
SYNONYMS: Final = {
    "diff": "plan",
    "doctor": "check",
    "list": "history",
    "load": "run",
    "select": "sql",
    "start": "run",
    "sync": "run",
    "validate": "check",
    "write": "run",
}
"""Words of other tools: they are no commands, but name the command to suggest."""


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    # The commands of ``mend`` stay callable by themselves, as before there was ``mend``.
    others=VERBS,
    synonyms=SYNONYMS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="lakewriter")
def main() -> None:
    """Load the tables of a lake.yaml into an S3 data lake, exactly once per job id.

    LAKE, in every command, is the path of that file. A new one goes through check, plan and run; status shows what
    it has loaded.
    """
