"""The command line: arguments to a command to an exit code; each command prints and exits."""

from pathlib import Path

import click

from lakewriter import __version__
from lakewriter.cli import console, job_ids
from lakewriter.cli.airbyte.commands import airbyte
from lakewriter.cli.check_command import check
from lakewriter.cli.context import Context
from lakewriter.cli.plan_command import plan
from lakewriter.cli.policy_command import policy
from lakewriter.cli.run_command import run
from lakewriter.cli.shared import JSON, LAKE, OUT, STAGE, open_context, print_json, report_errors, warn
from lakewriter.cli.status_command import status
from lakewriter.cli.verify_command import verify
from lakewriter.commit.control import Control
from lakewriter.commit.state import TableState
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import queries, snowflake
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.rebuild import ask_catalog
from lakewriter.operate.rebuild import rebuild as rebuild_state
from lakewriter.operate.repair import abandon as abandon_load
from lakewriter.operate.repair import adopt, begin_backfill, reset_cursor
from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import parse_cursor
from lakewriter.spec.catalogs import NoCatalog


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lakewriter")
def main() -> None:
    """Load the tables of a lake.yaml into an S3 data lake, exactly once per job id."""


main.add_command(check)
main.add_command(plan)
main.add_command(run)
main.add_command(policy)
main.add_command(verify)
main.add_command(status)
main.add_command(airbyte)


@main.command()
@LAKE
@click.argument("job")
@click.option("--intent-lost", is_flag=True, help="End a pending load whose intent is gone.")
@click.option("--reason", required=True, help="The reason, kept in the table's state.")
@STAGE
@report_errors
def abandon(lake: Path, job: str, intent_lost: bool, reason: str, stage: str | None) -> int:
    """Give up a pending load that cannot be finished. This acts on every table in which it is pending."""
    context, job_id = open_context(lake, stage), job_ids.require_job_id(job)
    if intent_lost:
        done = abandon_without_intent(context.controls(), job_id, reason)
    else:
        done = abandon_load(context.controls(), job_id, reason, context.clients)
    for table_id, what in done.items():
        OUT.print(f"{table_id}: {what}", markup=False, soft_wrap=True)
    return EXIT_OK


@main.command()
@LAKE
@click.argument("table")
@click.option("--cursor", help="The next load reads rows above this value.")
@click.option("--type", "kind", help="The cursor's type, if the table has none yet: int64, string, date32[day], ...")
@click.option("--no-cursor", "way", flag_value="no-cursor", help="The next load reads everything.")
@click.option(
    "--backfill", "way", flag_value="backfill", help="Raise the backfill number; the next load reads everything."
)
@click.option("--adopt", "way", flag_value="adopt", help="Let a continuous run follow single loads, or the reverse.")
@click.option("--reason", required=True, help="The reason, kept in the table's state.")
@STAGE
@report_errors
def reset(
    lake: Path,
    table: str,
    cursor: str | None,
    kind: str | None,
    way: str | None,
    reason: str,
    stage: str | None,
) -> int:
    """Move a table's cursor, or load the table anew. Or change between single loads and a continuous run."""
    if (cursor is None) == (way is None):
        raise SpecInvalidError("expected one of --cursor VALUE, --no-cursor, --backfill and --adopt.")
    context = open_context(lake, stage)
    control = _find_control(context, table)
    if way in ("backfill", "adopt"):
        state = begin_backfill(control, reason) if way == "backfill" else adopt(control, reason)
        OUT.print(f"{control.table_id}: {state.resets[-1].what}", markup=False, soft_wrap=True)
        return EXIT_OK
    if next(each for each in context.spec.tables if each.id == control.table_id).cursor is None and cursor is not None:
        raise SpecInvalidError(f"table {control.table_id} has no cursor column.", remedy="Give the table a 'cursor'.")
    new = None if cursor is None else _parse_cursor(control, cursor, kind)
    state = reset_cursor(control, new, reason)
    OUT.print(f"{control.table_id}: {state.resets[-1].what}", markup=False, soft_wrap=True)
    return EXIT_OK


@main.command()
@LAKE
@click.argument("table")
@click.option("--cursor", help="The highest value read so far, if no record of a load has it.")
@click.option("--type", "kind", help="The cursor's type: int64, string, date32[day], ...")
@click.option("--no-cursor", "from_start", is_flag=True, help="If no record has one, the next load reads everything.")
@click.option("--reason", required=True, help="The reason, kept in the table's state.")
@STAGE
@report_errors
def rebuild(
    lake: Path, table: str, cursor: str | None, kind: str | None, from_start: bool, reason: str, stage: str | None
) -> int:
    """Create a table's missing state from its loads. Their records and objects are read."""
    if (cursor is None) != (kind is None) or (cursor is not None and from_start):
        raise SpecInvalidError("expected --cursor VALUE with --type TYPE, or --no-cursor, or neither.")
    context = open_context(lake, stage)
    control = _find_control(context, table)
    own = next(each for each in context.spec.tables if each.id == control.table_id)
    known = parse_cursor(kind or "", cursor) if cursor is not None else None
    catalog = ask_catalog(context.spec, own, context.clients)
    rebuilt = rebuild_state(control, own, catalog, reason, known, from_start=from_start)
    OUT.print(f"{control.table_id}: the state was created:", markup=False, soft_wrap=True)
    for line in rebuilt.concluded:
        OUT.print(f"  {line}", markup=False, soft_wrap=True)
    OUT.print("Not known, so look at it before the next load:", markup=False, soft_wrap=True)
    for line in rebuilt.unknown:
        OUT.print(f"  {line}", markup=False, soft_wrap=True)
    return EXIT_OK


def _parse_cursor(control: Control, text: str, kind: str | None) -> Cursor:
    known = control.state.read().cursor
    if known is None and kind is None:
        raise SpecInvalidError(f"table {control.table_id} has no cursor yet.", remedy="Give its type by --type.")
    return parse_cursor(kind or str(known and known.type), text)


def _find_control(context: Context, table: str) -> Control:
    controls = context.controls()
    wanted = {t.id: t for t in context.spec.tables if table in (t.id, t.name, t.source_table)}
    if len(wanted) != 1:
        raise SpecInvalidError(f"{table!r} names {len(wanted)} tables, expected one of: {', '.join(controls)}.")
    return controls[next(iter(wanted))]


@main.command(name="queries")
@LAKE
@STAGE
@JSON
@report_errors
def queries_(lake: Path, stage: str | None, as_json: bool) -> int:
    """Print SQL that reads the tables."""
    context = open_context(lake, stage)
    if isinstance(context.spec.catalog, NoCatalog) and not queries.reads_files(context.spec):
        warn("Athena sees the tables once they are in Glue, which is off here")
    found = _write_queries(context, stage)
    if as_json:
        print_json({"queries": [vars(query) for query in found]})
    else:
        console.show_queries(OUT, found)
    return EXIT_OK


def _write_queries(context: Context, stage: str | None) -> tuple[queries.Query, ...]:
    spec = context.spec
    if spec.rest_service:
        return snowflake.write_statements(spec, context.deployment, spec.rest_service, stage)
    states = _read_states(context)
    jobs = {table_id: state.last_job for table_id, state in states.items() if state.last_job}
    times = {table_id: state.last_commit for table_id, state in states.items() if state.last_commit}
    more = queries.write_time_travel_queries(spec, times) if spec.iceberg else ()
    return (*queries.write_athena_queries(spec, jobs), *more)


def _read_states(context: Context) -> dict[str, TableState]:
    """Each table's state; none where the destination cannot be reached, since the SQL does without."""
    try:
        return {table_id: control.state.read() for table_id, control in context.controls().items()}
    except LakeError as error:
        warn(f"placeholders stand for the latest loads ({error})")
        return {}


@main.command()
@report_errors
def schema() -> int:
    """Print the JSON Schema of lake.yaml."""
    print_json(make_lake_schema())
    return EXIT_OK
