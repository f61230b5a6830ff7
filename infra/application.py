"""From context to a cloud assembly: settings, checks, stacks, validation, and the review beside the templates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.checks import require_deployable
from infra.destination.stack import DestinationStack
from infra.pipeline.stack import PipelineStack
from infra.review import write_review
from infra.settings import Settings, defaults, output_folder
from lakewriter.errors import SpecInvalidError


def synthesise(context: Mapping[str, Any]) -> Path:
    """The folder of the assembly; ``context`` goes over cdk.json's, and under what the CLI gives."""
    app = cdk.App(
        context={**defaults(), **context},
        outdir=str(output_folder()),
        analytics_reporting=False,
        # Those of warnings would have the folders of this one call in them, and nothing of this code.
        stack_traces=False,
    )
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    settings = Settings.read(app.node.try_get_context)
    require_deployable(settings)
    try:
        add_stacks(app, settings)
        folder = Path(app.synth().directory)
    except RuntimeError as error:
        # What CDK itself and cdk-nag find; the findings are on standard error already.
        reason = str(error).partition("\n")[0]
        raise SpecInvalidError(f"CDK refuses the stacks of stage {settings.stage!r}: {reason}") from error
    write_review(folder, settings)
    return folder


def add_stacks(app: cdk.App, settings: Settings) -> None:
    """The two stacks of one stage; an app can hold several stages."""
    first, second = settings.stack_names
    destination = DestinationStack(app, first, settings=settings)
    pipeline = PipelineStack(
        app,
        second,
        settings=settings,
        bucket=destination.bucket,
        key=destination.key,
        job_role=destination.job_role,
    )
    for stack in (destination, pipeline):
        for key, value in settings.deployment.tags.items():
            cdk.Tags.of(stack).add(key, value)
