"""A group of commands whose modules are imported when they are asked for.

A module that declares a command imports click and the standard library only: the work behind it is imported when the
command runs, so that ``--help`` and completion answer at once.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from lakewriter.cli.endings import explain_usage, wants_json

_WANTS_JSON: Final = "lakewriter.wants_json"


class LazyGroup(click.Group):
    """``places`` has a command's ``module:attribute`` by its name. With ``--json`` wrong usage is said in JSON too."""

    def __init__(self, *args: Any, places: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the alphabet's order."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, its module imported now."""
        place = self._places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is no command of click's")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        ctx.meta[_WANTS_JSON] = wants_json(args)
        with explain_usage(as_json=ctx.meta[_WANTS_JSON]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name."""
        with explain_usage(as_json=ctx.meta[_WANTS_JSON]):
            return super().invoke(ctx)
