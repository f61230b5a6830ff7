"""``lakewriter schema``: the JSON Schema of what the product reads and prints."""

import click

from lakewriter.cli.shared import print_json, report_errors
from lakewriter.exit_codes import EXIT_OK


@click.command()
@report_errors
def schema() -> int:
    """Print the JSON Schema of lake.yaml.

    Write it to lake.schema.json beside the file. With the first line

    \b
        # yaml-language-server: $schema=lake.schema.json

    editors describe each key and mark mistakes.
    """
    from lakewriter.dialects.lake_schema import make_lake_schema

    print_json(make_lake_schema())
    return EXIT_OK
