"""``lakewriter sql``: the rows of a statement over the tables."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors


@click.command()
@LAKE
@click.argument("statement")
@STAGE
@LOCAL
@JSON
@report_errors
def sql(lake: Path, statement: str, stage: str | None, as_json: bool) -> int:
    """Run STATEMENT, one SELECT over the tables of LAKE, on this machine, and print its rows. Nothing is changed.

    A table has its own name, or schema_table where LAKE gives it a schema. DuckDB runs the statement; where it is not
    installed, DataFusion runs it over Iceberg tables. The first line on standard error says which.
    """
    from lakewriter.cli.sql_view import print_rows

    return print_rows(lake, stage, statement, as_json=as_json)
