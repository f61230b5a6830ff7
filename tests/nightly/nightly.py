"""Run sections one after the other, skip what passed on this tree, and show a table of all at the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tests.nightly.marks import FIGURES, Mark, Marks, is_clean, read_tree
from tests.nightly.sections import ROOT, Section, list_sections

CLEAN_UP_SECONDS = 30
CHANGED = "the working tree changed while it ran"


@dataclass(frozen=True)
class Line:
    """A section of the table."""

    section: str
    result: str
    seconds: float
    figures: str


def run_sections(sections: Iterable[Section], root: Path, build: Path) -> list[Line]:
    """Run what has not passed on the tree that ``root`` holds now; a section that fails does not stop the next."""
    marks = Marks(build, read_tree(root))
    marks.make_folder()
    lines: list[Line] = []
    for section in sections:
        mark = marks.read(section.key)
        if mark is not None and mark.passed:
            lines.append(Line(section.key, "passed before", mark.seconds, mark.figures))
            continue
        click.echo(f"== {section.key}: {section.shows}")
        earlier = 0.0 if mark is None else mark.seconds
        began = time.monotonic()
        code = _run(section, root, marks)
        mark = Mark(code == 0, earlier + time.monotonic() - began, _read_figures(section, marks))
        if read_tree(root) != marks.tree:
            lines.append(Line(section.key, "FAILED", mark.seconds, f"{CHANGED}; {mark.figures}"))
            continue
        marks.write(section.key, mark)
        figures = mark.figures if mark.passed else f"exit code {code}; {mark.figures}"
        lines.append(Line(section.key, "passed" if mark.passed else "FAILED", mark.seconds, figures))
    return lines


def _run(section: Section, root: Path, marks: Marks) -> int:
    """The command's exit code; what it prints goes to the terminal and to its log."""
    variables = marks.variables(section.key)
    Path(variables[FIGURES]).unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **section.environment, **variables}
    with (
        marks.log(section.key).open("wb") as log,
        subprocess.Popen(
            section.command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
    ):
        assert process.stdout is not None
        try:
            while piece := os.read(process.stdout.fileno(), 65536):
                log.write(piece)
                log.flush()
                print_piece(piece)
        except BaseException:
            # Left alone it would run on, beside the next start.
            _stop(process)
            raise
        return process.wait()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let the process clean up; in the background it may have been started with interrupts ignored."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(CLEAN_UP_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()


def print_piece(piece: bytes) -> None:
    """What a section printed, at once."""
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()


def _read_figures(section: Section, marks: Marks) -> str:
    file = Path(marks.variables(section.key)[FIGURES])
    if file.exists():
        figures = json.loads(file.read_text("utf-8"))
        return ", ".join(f"{value} {name}" for name, value in figures.items())
    printed = marks.log(section.key).read_text("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(printed) if line.strip() and section.figures in line), "")


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; the last is as wide as it likes."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header) - 1)]
    aligned = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]]).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join(aligned)


def _describe(tree: str) -> str:
    commit = tree.partition("+")[0][:12]
    if is_clean(tree):
        return f"commit {commit}"
    return f"commit {commit} WITH CHANGES that are not committed: what passes is noted for exactly these changes"


@click.command()
@click.argument("names", metavar="[SECTION]...", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Show the sections and what passed, and run nothing.")
@click.option("--kills", type=click.IntRange(10), default=300, show_default=True, help="Of the random kills; tens.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the random kills.")
def main(names: tuple[str, ...], only_list: bool, kills: int, seed: int) -> None:
    """Run what takes too long for CI: all sections, or those named.

    Started again on the same tree, it goes on with what has not passed. Notes and logs are in build/nightly.
    """
    sections = list_sections(kills=kills, seed=seed)
    unknown = sorted(set(names) - {section.name for section in sections})
    if unknown:
        known = ", ".join(dict.fromkeys(section.name for section in sections))
        raise click.UsageError(f"unknown section {', '.join(unknown)}; expected {known}.")
    chosen = [section for section in sections if not names or section.name in names]
    build, tree = ROOT / "build" / "nightly", read_tree(ROOT)
    click.echo(_describe(tree))
    if only_list:
        marks = Marks(build, tree)
        click.echo(format_table(("section", "on this tree", "shows"), [_state(section, marks) for section in chosen]))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    lines = run_sections(chosen, ROOT, build)
    rows = [(line.section, line.result, f"{line.seconds:.0f}", line.figures) for line in lines]
    click.echo(f"== {_describe(tree)}")
    click.echo(format_table(("section", "result", "seconds", "figures"), rows))
    failed = sum(line.result == "FAILED" for line in lines)
    seconds = sum(line.seconds for line in lines)
    click.echo(f"{len(lines)} sections, {len(lines) - failed} passed, {failed} failed, {seconds:.0f} s")
    sys.exit(1 if failed else 0)


def _state(section: Section, marks: Marks) -> tuple[str, str, str]:
    mark = marks.read(section.key)
    state = "-" if mark is None else f"{'passed' if mark.passed else 'FAILED'}, {mark.seconds:.0f} s"
    return section.key, state, section.shows


if __name__ == "__main__":
    main()
