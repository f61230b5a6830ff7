"""``lakewriter queries``: SQL that reads the tables."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors

ENGINES = ("athena", "duckdb", "redshift", "spark", "trino", "snowflake")


@click.command()
@LAKE
@click.option(
    "--engine",
    "engines",
    type=click.Choice(ENGINES),
    multiple=True,
    help="Print only the SQL of this engine; may be given again.",
)
@click.option(
    "--views/--no-views",
    default=None,
    help="Print only what makes a view of each table. The default into a pipe or a file for one engine that has views.",
)
@click.option("--look", is_flag=True, help="Ask the bucket for each table's last load, in place of placeholders.")
@click.option("--as-of", metavar="JOB", help="Print only SQL that reads each table as this load left it.")
@STAGE
@LOCAL
@JSON
@report_errors
def queries(
    lake: Path,
    engines: tuple[str, ...],
    views: bool | None,
    look: bool,
    as_of: str | None,
    stage: str | None,
    as_json: bool,
) -> int:
    """Print SQL that reads the tables, for each engine that can.

    No service is asked without --look, --local or --as-of. Run the statements for all tables first:
    they make the bucket or the catalog known. What only you know, such as a secret, is in angle brackets.
    """
    from lakewriter.cli.queries_view import print_queries

    return print_queries(lake, stage, engines, as_of, views=views, look=look, as_json=as_json)
