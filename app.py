"""Run the CDK app of one stage: ``cdk synth -c stage=dev``, or without the CLI, ``python app.py -c stage=dev``."""

import sys

import click

from infra.node import use_packaged_node
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_BREAKS


class KeyValue(click.ParamType[tuple[str, str]]):
    """``KEY=VALUE``, as the CLI's own ``-c`` takes it."""

    name = "key=value"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        key, equals, text = value.partition("=")
        return (key, text) if equals else self.fail(f"{value!r}: expected KEY=VALUE, such as stage=prod.", param, ctx)


@click.command()
@click.option("-c", "--context", type=KeyValue(), multiple=True, help="Context over that of cdk.json.")
@click.option(
    "--exit-code",
    is_flag=True,
    help="End with 3 if a change against -c deployed=FOLDER lets somebody in, ends a refusal, or makes data unreadable "
    "or deletable.",
)
def main(context: tuple[tuple[str, str], ...], *, exit_code: bool) -> None:
    """Write the CloudFormation templates of one stage, and a page to review them by."""
    use_packaged_node()
    # aws_cdk starts node when it is imported.
    from infra.application import synthesise

    try:
        folder, is_notable = synthesise(dict(context))
    except LakeError as error:
        click.echo(error.report, err=True)
        sys.exit(error.exit_code)
    click.echo(f"To review: {folder / 'review.html'}, and review.md for a pull request.", err=True)
    if exit_code and is_notable:
        sys.exit(EXIT_BREAKS)


if __name__ == "__main__":
    main()
