"""A file with one of its stages, as the stacks are made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec


@dataclass(frozen=True)
class StagedLake:
    """One stage of one pipeline."""

    lake: Lake
    stage: str
    """Empty for the file as it is, without one of its stages."""
    siblings: Mapping[str, Lake] = field(default_factory=dict, kw_only=True)
    """The same file as read for each other stage."""

    @property
    def spec(self) -> Spec:
        """Return the specification of the job."""
        return self.lake.spec

    @property
    def deployment(self) -> Deployment:
        """Return the settings of the stacks."""
        return self.lake.deployment


def load_siblings(path: Path, lake: Lake, stage: str) -> dict[str, Lake]:
    """Read the file of ``lake`` for each other stage than its own."""
    return {other: load(path, stage=other) for other in lake.deployment.stages if other != stage}
