"""``lakewriter policy``: the documents that the stacks attach, to attach them by hand."""

from pathlib import Path
from typing import Any

import click

from lakewriter.cli.shared import JSON, LAKE, STAGE, report_errors
from lakewriter.policy.who import Who


@click.command()
@LAKE
@click.option("--who", type=click.Choice([who.value for who in Who]), help="Print only the documents for this party.")
@click.option("--account", metavar="ID", help="The AWS account; by default deployment.account, or the role's account.")
@click.option("--kms-key", metavar="ARN", help="The bucket's KMS key, if a stack creates it.")
@click.option(
    "--state-machine",
    metavar="ARN",
    multiple=True,
    help="The stack's StateMachineArn, for an operator who starts loads; and its other state machines.",
)
@STAGE
@JSON
@report_errors
def policy(lake: Path, who: str | None, stage: str | None, as_json: bool, **options: Any) -> int:
    """Print the IAM policies of the destination's roles. They are least-privilege, trust policies included."""
    from lakewriter.cli.policy_documents import print_documents

    return print_documents(lake, stage, who, as_json=as_json, **options)
