"""``lakewriter mend``: the commands that change what loads have left."""

from typing import Final

import click

from lakewriter.cli.lazy_group import LazyGroup

VERBS: Final = {
    "undo": "lakewriter.cli.undo_command:undo",
    "compact": "lakewriter.cli.compact_command:compact",
    "maintain": "lakewriter.cli.maintain_command:maintain",
    "replay": "lakewriter.cli.replay_command:replay",
    "reset": "lakewriter.cli.repair_commands:reset",
    "rebuild": "lakewriter.cli.repair_commands:rebuild",
    "abandon": "lakewriter.cli.repair_commands:abandon",
}

PRINTED: Final = {
    "undo": ("lakewriter.cli.printed:UndoReport",),
    "compact": ("lakewriter.cli.printed:CompactReport",),
    "maintain": ("lakewriter.cli.printed:MaintainReport",),
    "replay": ("lakewriter.report:RunReport",),
    "reset": ("lakewriter.cli.printed:MendReport",),
    "rebuild": ("lakewriter.cli.printed:MendReport",),
    "abandon": ("lakewriter.cli.printed:MendReport",),
}
"""The models of what each prints with ``--json``, and where they are: they are imported when their schema is asked
for."""


@click.group(
    cls=LazyGroup,
    groups={"Commands": VERBS},
    help=f"Undo a load, keep tables up, load bad rows or repair a state: {', '.join(VERBS)}.",
)
def mend() -> None:
    """Choose one of these commands, as its help describes."""
