"""The work of ``lakewriter report`` and ``lakewriter catalogue``."""

import webbrowser
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from lakewriter.cli.shared import OUT, open_context
from lakewriter.cli.status_view import read_states
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import queries
from lakewriter.operate.catalogue import describe_tables, list_statements
from lakewriter.operate.loads import Loads
from lakewriter.pages.catalogue_page import render_catalogue, sort_tables
from lakewriter.pages.load_page import CHARTED, Links, render_load
from lakewriter.report import format_count

_INDEX = "index.html"
_LOADS = "loads"
_STANDARD_OUTPUT = Path("-")


def write_report(lake: Path, stage: str | None, job_id: str | None, output: Path | None, *, opens: bool) -> int:
    """Make the page of one load of the file at ``lake``, and write it."""
    if opens and output == _STANDARD_OUTPUT:
        raise SpecInvalidError("--open needs a file.", remedy="Leave out -o -, or give -o FILE.")
    loads = Loads(open_context(lake, stage).controls())
    record = loads.read_one(job_id)
    path = output or Path(f"{record.pipeline}-{record.job_id}.html")
    write_page(render_load(*loads.read_before(record, CHARTED - 1)), path)
    if opens:
        webbrowser.open(path.resolve().as_uri())
    return EXIT_OK


def write_catalogue(lake: Path, stage: str | None, output: Path | None) -> int:
    """Make the page of all tables of the file at ``lake``, and write it."""
    context = open_context(lake, stage)
    spec, controls = context.spec, context.controls()
    output = output or Path(f"{spec.pipeline}-tables.html")
    states, broken = read_states(controls)
    last = queries.LastLoads(
        jobs={table_id: state.last_job for table_id, state in states.items() if state.last_job},
        times={table_id: state.last_commit for table_id, state in states.items() if state.last_commit},
    )
    written = queries.write_queries(spec, queries.list_engines(spec), last, context.deployment, stage)
    tables = describe_tables(spec, controls, {**states, **broken}, context.clients, written)
    setup = list_statements(written, brief=False).get(queries.ALL, ())
    # Twice as many, so that each load that is shown has its charts.
    loads, now = Loads(controls).read_last(2 * CHARTED), datetime.now(UTC)
    shown = loads[:CHARTED]
    if output == _STANDARD_OUTPUT or (output.suffix and not output.is_dir()):
        write_page(render_catalogue(spec.pipeline, tables, setup, shown, now), output)
        return EXIT_OK
    names = {load.job_id: f"{_LOADS}/{load.job_id}.html" for load in shown}
    pages = {_INDEX: render_catalogue(spec.pipeline, tables, setup, shown, now, names)}
    urls = {table.id: f"../{_INDEX}#{name}" for name, table in sort_tables(tables).items()}
    for number, load in enumerate(shown):
        earlier = f"{shown[number + 1].job_id}.html" if number + 1 < len(shown) else ""
        later = f"{shown[number - 1].job_id}.html" if number else ""
        links = Links(f"../{_INDEX}", urls, earlier, later)
        pages[names[load.job_id]] = render_load(load, loads[number + 1 : number + CHARTED], links)
    write_pages(pages, output)
    return EXIT_OK


def write_pages(pages: Mapping[str, str], folder: Path) -> None:
    """Write pages that link to each other into a folder, and say where the first one is."""
    try:
        (folder / _LOADS).mkdir(parents=True, exist_ok=True)
        for name, page in pages.items():
            (folder / name).write_text(page, "utf-8")
    except OSError as error:
        raise SpecInvalidError(
            f"{folder} cannot be written ({error.strerror}).", remedy="Give another folder: -o FOLDER."
        ) from error
    OUT.print(f"wrote {format_count(len(pages), 'page')}, the first is {folder / _INDEX}", markup=False, soft_wrap=True)


def write_page(page: str, path: Path) -> None:
    """Write a page to a file, and say where; ``-`` is standard output."""
    if path == _STANDARD_OUTPUT:
        click.echo(page, nl=False)
        return
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise SpecInvalidError(
            f"{path} cannot be written ({error.strerror}).", remedy="Give another file: -o FILE."
        ) from error
    OUT.print(f"wrote {path}", markup=False, soft_wrap=True)
