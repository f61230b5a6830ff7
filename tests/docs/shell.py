"""Commands as pages show them, taken apart, and held to what each program takes."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import dropwhile
from typing import Any, Final

import botocore.session
import click
from botocore import xform_name

from lakewriter.cli.main import main
from tests.docs.fences import ROOT

_GLOBAL_OPTIONS: Final = {"--query", "--output", "--region", "--profile", "--max-items", "--endpoint-url"}
_OTHERS: Final = {"mkdir", "printf", "source-faker", "export", "pip", "open", "for", "done", "redirected"}
_ASSIGNMENT: Final = re.compile(r"[A-Z_]+=")
_EDITED: Final = re.compile(r"\$\(…[^)]*…\)")
"""What a page leaves to its reader."""


def read_commands(code: str, language: str) -> str:
    """The script of a block; of a console's what follows the prompt."""
    lines = code.splitlines()
    if language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith(("$ ", "  "))]
    return _EDITED.sub("VALUE", "\n".join(lines))


def split_commands(script: str) -> Iterator[list[str]]:
    """The words of each simple command, without redirections."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set(";&|<>"):
                yield words
                words = ["redirected"] if set(word) <= set("<>") else []
            else:
                words.append(word)
        yield words


def require_syntax(script: str) -> None:
    """A shell takes it."""
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def check_command(words: list[str]) -> str:
    """Hold a command to its program; what was looked at, blank for programs that are not ours to know."""
    words = list(dropwhile(lambda word: word == "do" or _ASSIGNMENT.match(word), words))
    match words:
        case ["lakewriter", *arguments]:
            _parse_ours(arguments)
            return "lakewriter"
        case ["aws", service, operation, *arguments]:
            _check_aws(service, operation, arguments)
            return "aws"
        case [program, *_] if program.startswith(("scripts/", "examples/")) or program == "python":
            file = words[1] if program == "python" else program
            assert (ROOT / file).is_file(), f"there is no {file}"
            return "script"
        case [program, *_]:
            assert program in _OTHERS, f"{program} is no program that these pages use"
            return ""
        case _:
            return ""


def _parse_ours(arguments: list[str]) -> None:
    """By click: the command, its options and their types."""
    context = main.make_context("lakewriter", list(arguments))
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, name
        context = command.make_context(name, rest, parent=context)


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


_OF_THE_CLI = {
    ("cloudformation", "deploy"): {
        *("--stack-name", "--template-file", "--capabilities", "--s3-bucket", "--s3-prefix", "--role-arn"),
    },
}
"""Commands that are no operation of the service, with the options that pages give:
https://docs.aws.amazon.com/cli/latest/reference/cloudformation/deploy/
"""


def _check_aws(service: str, operation: str, arguments: list[str]) -> None:
    """By botocore: the operation, and its members in the words of the AWS CLI."""
    if (service, operation) in _OF_THE_CLI:
        given = {word for word in arguments if word.startswith("--")}
        assert given <= _OF_THE_CLI[service, operation], f"aws {service} {operation} has no {given}"
        return
    # The CLI has S3's own operations under another name than those of its file commands.
    model = _model("s3" if service == "s3api" else service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in names, f"aws {service} has no {operation}"
    members = model.operation_model(names[operation]).input_shape.members
    known = {f"--{xform_name(name, '-')}": name for name in members}
    known |= {f"--no-{option[2:]}": name for option, name in known.items() if members[name].type_name == "boolean"}
    for option in (word for word in arguments if word.startswith("--")):
        assert option.split("=")[0] in known.keys() | _GLOBAL_OPTIONS, f"aws {service} {operation} has no {option}"
