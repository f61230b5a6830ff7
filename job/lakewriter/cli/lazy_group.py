"""A group of commands whose modules are imported when they are asked for.

A module that declares a command imports click and the standard library only: the work behind it is imported when the
command runs, so that ``--help`` and completion answer at once.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import click
from click.exceptions import NoSuchCommand

from lakewriter.cli.endings import explain_usage, wants_json

_WANTS_JSON: Final = "lakewriter.wants_json"
_UNCUT: Final = 1_000
"""Characters of a summary: help breaks a long one into lines, and does not end it with dots."""


def import_named(name: str) -> Any:
    """Import the module and return the attribute that ``module:attribute`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


class LazyGroup(click.Group):
    """``groups`` has a command's ``module:attribute`` by its name, under the headings of ``--help``.

    ``others`` are called likewise and not shown. ``synonyms`` are words that other tools have for some of them. With
    ``--json`` wrong usage is said in JSON too, by the outermost group.
    """

    def __init__(
        self,
        *args: Any,
        groups: Mapping[str, Mapping[str, str]],
        others: Mapping[str, str] = MappingProxyType({}),
        synonyms: Mapping[str, str] = MappingProxyType({}),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._groups, self._synonyms = groups, dict(synonyms)
        self._modules = {name: module for group in groups.values() for name, module in group.items()} | dict(others)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names, in the alphabet's order."""
        return sorted({*super().list_commands(ctx), *self._modules})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, its module imported now."""
        module_name = self._modules.get(cmd_name)
        if module_name is None:
            return super().get_command(ctx, cmd_name)
        command = import_named(module_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module_name} is no command of click's")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group's commands under its heading, with the whole first sentence of each."""
        for heading, modules in self._groups.items():
            commands = [(name, self.get_command(ctx, name)) for name in modules]
            rows = [(name, command.get_short_help_str(_UNCUT)) for name, command in commands if command]
            with formatter.section(heading):
                # The descriptions of all groups begin in one column.
                formatter.write_dl([(name.ljust(max(map(len, self._modules))), text) for name, text in rows])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name; for one that is not there name what is most like it."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            words = {name: name for name in self.list_commands(ctx)} | self._synonyms
            near = dict.fromkeys(words[word] for word in get_close_matches(args[0], words))
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        if ctx.parent is not None:
            return super().parse_args(ctx, args)
        ctx.meta[_WANTS_JSON] = wants_json(args)
        with explain_usage(as_json=ctx.meta[_WANTS_JSON]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name."""
        if ctx.parent is not None:
            return super().invoke(ctx)
        with explain_usage(as_json=ctx.meta[_WANTS_JSON]):
            return super().invoke(ctx)
