"""Offer the stacks as constructs for somebody's own CDK app: ``from lakewriter_infra import LakewriterDestination``."""

from pathlib import Path

from constructs import Construct

from infra.application import tag
from infra.checks import require_deployable
from infra.destination.stack import DestinationStack
from infra.pipeline.stack import PipelineStack
from infra.review import write_review
from infra.settings import Settings

__all__ = ["LakewriterDestination", "LakewriterPipeline"]


class LakewriterDestination(DestinationStack):
    """The stack of a stage's bucket, key, roles and Glue databases.

    The construct's id and the stack's name follow from pipeline and stage, since policies name them.

    Args:
        scope: The app.
        lake: The path of lake.yaml.
        stage: The stage, whose settings are merged over the file.
        bundle: The folder that ``scripts/bundle`` of the same release fills.

    Raises:
        LakeError: ``SPEC_INVALID``, with every problem of a file that could not be deployed.
    """

    def __init__(self, scope: Construct, *, lake: Path | str, stage: str, bundle: Path | str) -> None:
        self.settings = Settings.load(lake, stage=stage, bundle=bundle)
        require_deployable(self.settings)
        super().__init__(scope, self.settings.stack_names[0], settings=self.settings)
        tag(self, self.settings)

    def write_review(self, assembly: Path | str) -> None:
        """Write ``review.html`` and ``review.md`` beside the templates of the synthesized app."""
        write_review(Path(assembly), self.settings)


class LakewriterPipeline(PipelineStack):
    """The stack of a stage's job, state machine, schedule and alarms, which loads into ``destination``."""

    def __init__(self, scope: Construct, *, destination: LakewriterDestination) -> None:
        settings = destination.settings
        super().__init__(
            scope,
            settings.stack_names[1],
            settings=settings,
            bucket=destination.bucket,
            key=destination.key,
            job_role=destination.job_role,
        )
        tag(self, settings)
