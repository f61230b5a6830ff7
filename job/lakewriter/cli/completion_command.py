"""``lakewriter completion``: what a shell needs to complete commands, options, stages and tables."""

import click
from click.shell_completion import get_completion_class

from lakewriter.cli.shared import report_errors
from lakewriter.errors import InternalError
from lakewriter.exit_codes import EXIT_OK

VARIABLE = "_LAKEWRITER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@report_errors
def completion(shell: str) -> int:
    """Print the lines that let SHELL complete commands, options, stages and tables.

    \b
    bash  lakewriter completion bash > ~/.lakewriter-completion; source it in ~/.bashrc
    zsh   lakewriter completion zsh > ~/.lakewriter-completion; source it in ~/.zshrc
    fish  lakewriter completion fish > ~/.config/fish/completions/lakewriter.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"click does not know {shell}.")
    click.echo(kind(click.get_current_context().find_root().command, {}, "lakewriter", VARIABLE).source())
    return EXIT_OK
