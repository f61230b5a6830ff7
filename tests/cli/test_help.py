"""What a command answers without its work: help, version, and in which modules it looks for them."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lakewriter import __version__
from lakewriter.cli.main import GROUPS, main
from lakewriter.cli.mend_command import PRINTED, VERBS

ROOT = Path(__file__).parents[2]
COMMANDS = [name for places in GROUPS.values() for name in places]

HEAVY = ["boto3", "botocore", "datafusion", "pandas", "py4j", "pyarrow", "pydantic", "pyiceberg", "pyspark", "yaml"]
"""Each of these takes a tenth of a second or more to import, and no help needs it."""

HELP = """\
import sys
from lakewriter.cli.main import main
main(sys.argv[1:], standalone_mode=False)
sys.stderr.write(" ".join(name for name in %r if name in sys.modules))
"""


def list_commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    """Every command by its words, groups included."""
    context, commands = click.Context(group), []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        commands.append((*path, name))
        if isinstance(command, click.Group):
            commands.extend(list_commands(command, *path, name))
    return commands


@pytest.mark.one_in(4)
@pytest.mark.parametrize("words", [(), *list_commands(main)], ids=" ".join)
def test_help_imports_nothing_heavy(words):
    arguments = [sys.executable, "-c", HELP % HEAVY, *words, "--help"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith(f"Usage: {' '.join(['-c', *words])} [OPTIONS]")


def test_version():
    done = subprocess.run([sys.executable, "-m", "lakewriter", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (f"lakewriter, version {__version__}\n", "", 0)


def test_commands_have_the_names_they_are_listed_under():
    context = click.Context(main)
    names = [*COMMANDS, *VERBS]
    assert {name: getattr(main.get_command(context, name), "name", None) for name in names} == {n: n for n in names}


def test_verbs_of_mend_are_the_commands_that_they_were():
    mend = main.get_command(click.Context(main), "mend")
    assert isinstance(mend, click.Group)
    for verb in VERBS:
        assert mend.get_command(click.Context(mend), verb) is main.get_command(click.Context(main), verb)


def test_each_verb_of_mend_says_what_it_prints():
    assert list(PRINTED) == list(VERBS)


@pytest.mark.parametrize("words", list_commands(main), ids=" ".join)
def test_help_says_what_each_argument_is(words):
    """A newcomer knows LAKE from the help of the program, and what is not LAKE from the command's own."""
    command: click.Command | None = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    assert f"{main.help}".count("LAKE, in every command, is the path") == 1
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name != "lake":
            assert str(parameter.name).rstrip("s").upper() in str(command.help)
        if isinstance(parameter, click.Option):
            assert parameter.help


MISTYPED = [
    ("laod", "No such command 'laod'. Did you mean 'run'?"),
    ("sync", "No such command 'sync'. Did you mean 'run'?"),
    ("hist", "No such command 'hist'. Did you mean 'history'?"),
    ("verfy", "No such command 'verfy'. Did you mean 'verify'?"),
    ("qwertz", "No such command 'qwertz'."),
]


@pytest.mark.parametrize(("word", "expected"), MISTYPED)
def test_mistyped_command(word, expected):
    done = CliRunner().invoke(main, [word, "lake.yaml"])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: {expected}")


def test_help_shows_each_command_once_and_its_whole_summary():
    text = CliRunner().invoke(main, ["--help"]).output
    shown = re.findall(r"^  ([a-z]+) {2,}", text, re.MULTILINE)
    assert [name for name in shown if name in COMMANDS] == COMMANDS
    assert "..." not in text.partition("Begin:")[2]
