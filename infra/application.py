"""Synthesise the stacks of one stage: read settings, check them, add stacks, validate, and write the review."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import click
from cdk_nag import AwsSolutionsChecks

from infra.checks import require_deployable
from infra.destination.stack import DestinationStack
from infra.pipeline.stack import PipelineStack
from infra.review import list_changes, write_review
from infra.review.imports import write_imports
from infra.review.limits import check_templates
from infra.review.prices import describe_costs
from infra.review.templates import Templates
from infra.settings import Settings, choose_output_folder, read_defaults
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import STACK_TAG

_TAGGED: Final = ["AWS::StepFunctions::StateMachine", "AWS::SecretsManager::Secret", "AWS::S3::Bucket"]
"""Policies tell these resources apart by the tag, or they cost money."""


def synthesise(context: Mapping[str, Any]) -> tuple[Path, bool]:
    """Synthesise, and return the folder of the assembly and whether one of its changes needs a second look.

    ``context`` overrides cdk.json, the CLI overrides both. Changes that let somebody in, end a refusal, or make data
    unreadable or deletable are printed on standard error.
    """
    app = cdk.App(
        context={**read_defaults(), **context},
        outdir=str(choose_output_folder()),
        analytics_reporting=False,
        # A warning's stack trace would hold temporary folders of this call and no line of this code.
        stack_traces=False,
    )
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    settings = Settings.read(app.node.try_get_context)
    for stack_settings in (settings, *settings.guests):
        require_deployable(stack_settings)
    try:
        add_stacks(app, settings)
        folder = Path(app.synth().directory)
        require_taken(folder, settings)
    except RuntimeError as error:
        # Templates are written before they are validated, with messages that name no key of the file.
        require_taken(Path(app.outdir), settings)
        # CDK and cdk-nag have printed their findings on standard error already.
        reason = str(error).partition("\n")[0]
        raise SpecInvalidError(f"CDK refuses the stacks of stage {settings.stage!r}: {reason}") from error
    write_review(folder, settings)
    write_imports(folder, settings)
    for name, (cost, what) in describe_costs(settings, Templates.read(folder, settings.stack_names)):
        click.echo(f"{name}: {cost}, for {what or 'nothing'}.", err=True)
    changes = list_changes(folder, settings)
    for line in changes:
        click.echo(line, err=True)
    for guest in settings.guests:
        write_review(folder, guest, suffix=f"-{guest.spec.pipeline}")
    return folder, bool(changes)


def require_taken(folder: Path, settings: Settings) -> None:
    """Raise ``SPEC_INVALID`` with each value of the templates that a model of AWS does not allow, by its key."""
    if not (folder / "manifest.json").exists():
        return
    problems = [
        problem
        for stack_settings in (settings, *settings.guests)
        for problem in check_templates(folder, stack_settings)
    ]
    if problems:
        raise SpecInvalidError(f"stage {settings.stage!r} cannot be deployed:", problems=problems)


def add_stacks(app: cdk.App, settings: Settings, *, host: DestinationStack | None = None) -> None:
    """Add the two stacks of one stage to an app, which can hold several stages, and those of its guests.

    ``host`` is the destination whose bucket and key a guest uses.
    """
    first, second = settings.stack_names
    destination = DestinationStack(app, first, settings=settings, host=host)
    pipeline = PipelineStack(
        app,
        second,
        settings=settings,
        bucket=destination.bucket,
        key=destination.key,
        job_role=destination.job_role,
    )
    for stack in (destination, pipeline):
        tag(stack, settings)
    for guest in settings.guests:
        add_stacks(app, guest, host=destination)


def tag(stack: cdk.Stack, settings: Settings) -> None:
    """Tag the resources of a stack as the file says, and those that its name does not tell apart."""
    for key, value in settings.deployment.tags.items():
        cdk.Tags.of(stack).add(key, value)
    cdk.Tags.of(stack).add(STACK_TAG, stack.stack_name, include_resource_types=_TAGGED)
