"""The work of ``lakewriter queries``."""

from pathlib import Path

from lakewriter.cli import console
from lakewriter.cli.context import Context
from lakewriter.cli.shared import OUT, open_context, print_json, warn
from lakewriter.commit.state import TableState
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import queries, snowflake
from lakewriter.spec.catalogs import NoCatalog


def print_queries(lake: Path, stage: str | None, *, as_json: bool) -> int:
    """Print the SQL of the file at ``lake``."""
    context = open_context(lake, stage)
    if isinstance(context.spec.catalog, NoCatalog) and not queries.reads_files(context.spec):
        warn("Athena sees the tables once they are in Glue, which is off here")
    found = _write_queries(context, stage)
    if as_json:
        print_json({"version": 1, "queries": [vars(query) for query in found]})
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
