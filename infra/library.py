"""Offer the stacks as constructs for somebody's own CDK app: ``from lakewriter_infra import LakewriterDestination``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from infra.application import tag
from infra.checks import require_deployable
from infra.destination.stack import DestinationStack
from infra.pipeline.stack import PipelineStack
from infra.review import write_review
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError

__all__ = ["LakewriterDestination", "LakewriterPipeline"]


class LakewriterDestination(DestinationStack):
    """The stack of a stage's bucket, key, roles and Glue databases.

    The construct's id and the stack's name follow from pipeline and stage, since policies name them.

    Args:
        scope: The app.
        lake: The path of lake.yaml.
        stage: The stage, whose settings are merged over the file.
        bundle: The folder that ``scripts/bundle`` of the same release fills.
        guests: The paths of further files whose tables are in the bucket that this one makes. The bucket's policy and
            its key are made for them too; each gets a destination of its own, with this one as its ``host``.
        host: The destination that makes the bucket, and lists this file among its ``guests``.

    Raises:
        LakeError: ``SPEC_INVALID``, with every problem of a file that could not be deployed, or if two destinations of
            the app would make one bucket.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        lake: Path | str,
        stage: str,
        bundle: Path | str,
        guests: Sequence[Path | str] = (),
        host: "LakewriterDestination | None" = None,
    ) -> None:
        settings = Settings.load(lake, stage=stage, bundle=bundle)
        loaded = tuple(Settings.load(guest, stage=stage, bundle=bundle) for guest in guests)
        self.settings = replace(settings, guests=loaded)
        self.is_guest = host is not None
        require_deployable(self.settings)
        _require_one_maker(scope, self.settings, host)
        super().__init__(scope, settings.stack_names[0], settings=self.settings, host=host)
        tag(self, self.settings)

    def write_review(self, assembly: Path | str) -> None:
        """Write ``review.html`` and ``review.md`` beside the templates of the synthesized app, or of its ``cdk.Stage``.

        Args:
            assembly: The directory of ``app.synth()``.
        """
        stage = cdk.Stage.of(self)
        name = stage.artifact_id if stage else ""
        of_stage = next(iter(Path(assembly).rglob(name)), None) if name else None
        write_review(of_stage or Path(assembly), self.settings)


def _require_one_maker(scope: Construct, settings: Settings, host: LakewriterDestination | None) -> None:
    """Raise ``SPEC_INVALID`` if the host does not name its guest, or if the app makes the bucket already."""
    pipeline, bucket = settings.spec.pipeline, settings.spec.access.bucket
    if host is not None:
        if pipeline not in {guest.spec.pipeline for guest in host.settings.guests}:
            raise SpecInvalidError(
                f"the destination of {host.settings.spec.pipeline!r} makes the bucket {bucket!r} without knowing of "
                f"{pipeline!r}; expected it among its guests, for which its policy and its key are made.",
                remedy=f"Give the path of {pipeline!r}'s lake.yaml in 'guests' of the host.",
            )
        return
    if settings.deployment.existing.bucket:
        return
    for other in scope.node.root.node.find_all():
        if not isinstance(other, LakewriterDestination) or other.is_guest or other.settings.deployment.existing.bucket:
            continue
        if other.settings.spec.access.bucket == bucket:
            raise SpecInvalidError(
                f"the destinations of {other.settings.spec.pipeline!r} and {pipeline!r} both make the bucket "
                f"{bucket!r}; expected one that does.",
                remedy="Give the first one the other's lake.yaml in 'guests', and the other the first as its 'host'.",
            )


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
