"""The work of ``lakewriter init``."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from lakewriter.cli.printed import InitReport
from lakewriter.cli.shared import OUT, print_json, warn
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.init.draft import NO_BUCKET, SCHEMA_FILE, Draft, write_draft
from lakewriter.init.start import Drafted, Wishes, choose_region, make_draft

_PRINT: Final = Path("-")
_EXAMPLES: Final = "Name what there is, such as: lakewriter init data/ or lakewriter init jdbc:postgresql://host/shop."


def run_init(
    sources: tuple[str, ...],
    output: Path,
    schemas: tuple[str, ...],
    *,
    expects: bool,
    as_json: bool,
    **wishes: str | None,
) -> int:
    """Look at ``sources``, write the file, and print the next steps; ``wishes`` are the options with a text."""
    if output != _PRINT and output.exists():
        raise SpecInvalidError(
            f"{output} exists, and is not overwritten.", remedy="Name another file with --output, or move it away."
        )
    if as_json and output == _PRINT:
        raise SpecInvalidError("--output - prints the file, and --json what was written.", remedy="Leave one out.")
    asks = not as_json and output != _PRINT and sys.stdin.isatty() and sys.stdout.isatty()
    sources = sources or _ask_for_places(asks=asks)
    wished = Wishes(
        folder=Path() if output == _PRINT else output.parent,
        kind=wishes["kind"],
        bucket=wishes["bucket"] or _ask("Bucket (blank: later)", asks=asks and not _has_vendor_file(sources)),
        region=wishes["region"] or choose_region(),
        pipeline=wishes["pipeline"],
        schemas=schemas,
        spark=_make_spark(),
        expects=expects,
    )
    drafted = make_draft(sources, wished)
    text = write_draft(drafted.draft, shlex.join(["lakewriter", "init", *map(_hide_password, sources)]))
    if output == _PRINT:
        click.echo(text, nl=False)
        return EXIT_OK
    for name, content in drafted.beside.items():
        if not _create(output.parent / name, _write_json(content)):
            raise SpecInvalidError(
                f"{output.parent / name} exists, and is not overwritten.",
                remedy=f"Move it away, or name it in place of the connection: lakewriter init {name}.",
            )
    _create(output.parent / SCHEMA_FILE, _write_json(make_lake_schema()))
    if not _create(output, text):
        raise SpecInvalidError(f"{output} was written by another program in the meantime.", remedy="Look at it.")
    report = _report(drafted, output)
    if as_json:
        print_json(report)
        return EXIT_OK
    _show(drafted.draft, output, list(drafted.beside))
    return _check(output, report.problems)


def _ask_for_places(*, asks: bool) -> tuple[str, ...]:
    answer = _ask("Files, a folder, a vendor's configuration, or jdbc: URL", asks=asks)
    if not answer:
        raise SpecInvalidError("expected a PATH or a jdbc: URL to begin with.", remedy=_EXAMPLES)
    return tuple(shlex.split(answer))


def _ask(question: str, *, asks: bool) -> str | None:
    """Ask on a terminal and return the answer; None for a blank one, and wherever nobody answers."""
    return click.prompt(question, default="", show_default=False) or None if asks else None


def _has_vendor_file(sources: tuple[str, ...]) -> bool:
    """Return True if a place may name the bucket itself."""
    return any(source.endswith((".json", ".yaml", ".yml")) for source in sources)


def _make_spark() -> Callable[[], Any]:
    def start() -> Any:
        from lakewriter.source.session import open_spark_session

        return open_spark_session("lakewriter init")

    return start


def _hide_password(source: str) -> str:
    return source.partition("?")[0].partition(";")[0] if source.startswith("jdbc:") else source


def _write_json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _create(path: Path, text: str) -> bool:
    """Write a new file; False where there is one."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise SpecInvalidError(
            f"{path} cannot be written ({error.strerror}).", remedy="Name another with --output."
        ) from error
    return True


def _show(draft: Draft, output: Path, beside: list[str]) -> None:
    if draft.tables:
        grid = Table("table", "format", "primary key", "cursor", "types", "each load", box=None, pad_edge=False)
        for table in draft.tables:
            key = ", ".join(table.key[0]) if table.key[2] else "?" if table.key[0] else "none"
            cursor = "none" if table.cursor is None else table.cursor[0] if table.cursor[2] else f"{table.cursor[0]}?"
            name = f"{table.schema}.{table.name}" if table.schema else table.name
            way = "left out" if table.is_off else table.choose_way(draft.kind).value
            cells = (name, str(table.read["format"]), key, cursor, str(len(table.columns)), way)
            grid.add_row(*map(escape, cells))
        OUT.print(grid)
    what = ", ".join([str(output), *beside])
    OUT.print(f"Wrote {what}. Read it: each line says why it is there, and ? stands for what only you can tell.")
    for note in draft.notes:
        warn(note)


def _report(drafted: Drafted, output: Path) -> InitReport:
    """Print what was written, and which values the user has to fill in."""
    problems: tuple[str, ...] = ()
    try:
        load(output)
    except SpecInvalidError as error:
        problems = error.problems or (str(error),)
    return InitReport(
        file=str(output),
        beside=tuple(drafted.beside),
        pipeline=drafted.draft.pipeline,
        tables=tuple(table.name for table in drafted.draft.tables),
        notes=drafted.draft.notes,
        problems=problems,
    )


def _check(output: Path, problems: Sequence[str]) -> int:
    """Print the next steps, and before them the values that the user still has to fill in."""
    lake = shlex.quote(str(output))
    if problems:
        OUT.print("Mend this first:", soft_wrap=True)
        for problem in problems:
            click.echo(f"  {problem}", err=True)
    OUT.print("Next, without an account, on an S3 server of this machine:")
    for verb in ("check", "plan", "run"):
        OUT.print(f"  lakewriter {verb} {lake} --local", markup=False, soft_wrap=True)
    bucket = f" once your bucket replaces {NO_BUCKET!r}" if NO_BUCKET in output.read_text("utf-8") else ""
    OUT.print(f"In your own account: the same without --local{bucket}.", markup=False, soft_wrap=True)
    return EXIT_OK
