"""``lakewriter init``: a lake.yaml to begin with."""

from pathlib import Path

import click

from lakewriter.cli.shared import JSON, report_errors


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|jdbc:URL]...")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, allow_dash=True),
    default=Path("lake.yaml"),
    show_default=True,
    help="The file to write; - prints it. An existing file is never overwritten.",
)
@click.option("--type", "kind", help="The destination's type. By default that of the vendor's file, or lakewriter-s3.")
@click.option("--bucket", help="The bucket to write to.")
@click.option("--region", help="The bucket's region. By default that of the environment, or us-east-1.")
@click.option("--pipeline", help="The pipeline's name. By default that of the first PATH.")
@click.option("--schema", "schemas", multiple=True, help="Take only this schema of a database. May be repeated.")
@click.option("--expect", "expects", is_flag=True, help="Also propose what each load is expected to be.")
@JSON
@report_errors
def init(
    paths: tuple[str, ...],
    output: Path,
    schemas: tuple[str, ...],
    *,
    expects: bool,
    as_json: bool,
    **wishes: str | None,
) -> int:
    """Write a lake.yaml for what PATH holds, with types, a key and a cursor, and why they are proposed.

    PATH is a file or folder of CSV, JSON, Parquet, ORC or Avro, on this machine or in S3; Airbyte's destination or
    connection, as a file or as its API exports it; a configured catalog, with or without its messages; an Estuary Flow
    specification. A JDBC URL takes the tables of a database; export DB_USER and DB_PASSWORD.
    """
    from lakewriter.cli.init_view import run_init

    return run_init(paths, output, schemas, expects=expects, as_json=as_json, **wishes)
