"""A shell for the blocks of the pages: it runs their commands in this process, as they are printed."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.docs.fences import Fence
from tests.docs.shell import read_commands


@dataclass
class Terminal:
    """A folder in which commands run, with what a page leaves to its reader.

    ``words`` has what stands for a placeholder such as ``JOB``. ``piped`` is what a program before ``|`` prints.
    ``elsewhere`` names programs that other tests run. ``exit_codes`` has those that are not 0, by the command's line.
    ``beside`` is called before the command that begins so, such as what presses Ctrl-C.
    """

    folder: Path
    words: Mapping[str, str] = field(default_factory=dict)
    piped: str = ""
    elsewhere: Sequence[str] = ()
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    beside: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def run(self, fence: Fence) -> None:
        """Run each command of the block; AssertionError for one that ends otherwise than it should."""
        for line in read_commands(fence.code, fence.language).replace("\\\n", " ").splitlines():
            tokens = list(_split(line))
            if tokens:
                self._run_line(fence, line, tokens)

    def _run_line(self, fence: Fence, line: str, tokens: Sequence[str]) -> None:
        stdin = None
        if "|" in tokens:
            stdin, tokens = self.piped, tokens[tokens.index("|") + 1 :]
        words = [self.words.get(token, token) for token in tokens]
        if words[0] == "export":
            for name, _, value in (word.partition("=") for word in words[1:]):
                os.environ[name] = value
            return
        if words[0] in self.elsewhere:
            return
        assert words[0] == "lakewriter", f"{fence}: {line}: nothing runs {words[0]}"
        target = self.folder / words.pop(words.index(">") + 1) if ">" in words else None
        if "<" in words:
            stdin = (self.folder / words.pop(words.index("<") + 1)).read_text("utf-8")
        arguments = [word for word in words[1:] if word not in {"<", ">"}]
        for begin, act in self.beside.items():
            if line.startswith(begin):
                act()
        with chdir(self.folder):
            done = CliRunner().invoke(main, arguments, input=stdin)
        expected = next((code for begin, code in self.exit_codes.items() if line.startswith(begin)), 0)
        assert done.exit_code == expected, f"{fence}: {line}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        self.printed.append(done.stdout)
        if target is not None:
            target.write_text(done.stdout, "utf-8")


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    return list(lexer)
