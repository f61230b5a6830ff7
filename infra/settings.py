"""A lake.yaml and a CDK context, as the stacks take them; the only reader of context and environment."""

from dataclasses import dataclass
from pathlib import Path

from job.deployment import Deployment
from job.dialects.lake_yaml import Lake
from job.spec import Spec


@dataclass(frozen=True)
class Settings:
    """One stage of one pipeline. ``bundle`` is the folder that ``scripts/bundle`` fills."""

    lake: Lake
    stage: str
    bundle: Path

    @property
    def spec(self) -> Spec:
        """What the job does."""
        return self.lake.spec

    @property
    def deployment(self) -> Deployment:
        """What the stacks make."""
        return self.lake.deployment

    @property
    def name(self) -> str:
        """Begins the name of everything that needs one; no two stages share it."""
        return f"lakewriter-{self.spec.pipeline}-{self.stage}"

    @property
    def protected(self) -> bool:
        """Whether stateful resources outlive their stack."""
        protect = self.deployment.protect
        return self.stage != "dev" if protect is None else protect
