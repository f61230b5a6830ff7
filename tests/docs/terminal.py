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
    ``elsewhere`` names programs that other tests run. ``beside`` is called before a command with such words, such as
    what presses Ctrl-C.
    """

    folder: Path
    words: Mapping[str, str] = field(default_factory=dict)
    piped: str = ""
    elsewhere: Sequence[str] = ()
    beside: Mapping[str, Callable[[], None]] = field(default_factory=dict)

    def run(self, fence: Fence) -> None:
        """Run each command of the block; AssertionError for one that ends otherwise than it should."""
        for line in read_commands(fence.code, fence.language).replace("\\\n", " ").splitlines():
            tokens = list(_split(line))
            if tokens:
                self._run_line(fence, line, tokens)

    def _run_line(self, fence: Fence, line: str, tokens: Sequence[str]) -> None:
        stdin = self.piped if "|" in tokens else None
        tokens = tokens[tokens.index("|") + 1 :] if "|" in tokens else tokens
        words = [self.words.get(token, token) for token in tokens]
        if words[0] == "export":
            os.environ.update(dict(_split_assignment(word) for word in words[1:]))
        elif words[0] not in self.elsewhere:
            assert words[0] == "lakewriter", f"{fence}: {line}: nothing runs {words[0]}"
            self._run_ours(f"{fence}: {line}", words, stdin)

    def _run_ours(self, line: str, words: list[str], stdin: str | None) -> None:
        target = self.folder / words.pop(words.index(">") + 1) if ">" in words else None
        if "<" in words:
            stdin = (self.folder / words.pop(words.index("<") + 1)).read_text("utf-8")
        arguments = [word for word in words[1:] if word not in {"<", ">"}]
        for begin, act in self.beside.items():
            if begin in line:
                act()
        with chdir(self.folder):
            done = CliRunner().invoke(main, arguments, input=stdin)
        assert done.exit_code == 0, f"{line}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        if target is not None:
            target.write_text(done.stdout, "utf-8")


def _split_assignment(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    return list(lexer)
