"""A lake.yaml and a CDK context, as the stacks take them; the only reader of context and environment."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.errors import SecretUnresolvedError, SpecInvalidError
from lakewriter.naming import deployment_name, destination_stack
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Trust

ROOT: Final = Path(__file__).resolve().parent.parent


def defaults() -> dict[str, Any]:
    """The context of cdk.json, which the CLI passes on, and ``python app.py`` would not see."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return context


def output_folder() -> Path:
    """Where the CLI wants the assembly, else ``cdk.out`` beside cdk.json."""
    return Path(os.environ.get("CDK_OUTDIR", ROOT / "cdk.out"))


@dataclass(frozen=True)
class Settings:
    """One stage of one pipeline. ``bundle`` is the folder that ``scripts/bundle`` fills."""

    lake: Lake
    stage: str
    bundle: Path
    siblings: Mapping[str, Lake] = field(default_factory=dict)
    """The file as its other stages have it."""

    @classmethod
    def read(cls, context: Callable[[str], Any]) -> "Settings":
        """What the context keys ``lake`` and ``bundle``, paths from the folder of cdk.json, and ``stage`` name."""
        path, stage, bundle = (_text(context, key) for key in ("lake", "stage", "bundle"))
        lake = load(ROOT / path, stage=stage)
        others = [each for each in lake.deployment.stages if each != stage]
        return cls(lake, stage, ROOT / bundle, {each: load(ROOT / path, stage=each) for each in others})

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
        return deployment_name(self.spec.pipeline, self.stage)

    @property
    def stack_names(self) -> tuple[str, str]:
        """Destination and pipeline."""
        return destination_stack(self.spec.pipeline, self.stage), f"{self.name}-pipeline"

    @property
    def protected(self) -> bool:
        """Whether stateful resources outlive their stack."""
        protect = self.deployment.protect
        return self.stage != "dev" if protect is None else protect

    def external_id(self, trust: Trust) -> str:
        """Its text, or ``${ssm:NAME}``, which CloudFormation reads; ``SECRET_UNRESOLVED`` without the variable."""
        kind, name = trust.external_id.reference or ("", "")
        if kind != "env":
            return trust.external_id.text
        if name not in os.environ:
            raise SecretUnresolvedError(
                f"{trust.external_id.text}, the external id of {trust.role!r}, is not set in this environment.",
                remedy=f"Set {name} to what the vendor gave you, or give the external id as ${{ssm:NAME}}.",
            )
        return os.environ[name]


def _text(context: Callable[[str], Any], key: str) -> str:
    value = context(key)
    if not isinstance(value, str) or not value:
        raise SpecInvalidError(f"context key {key!r} is {value!r}; expected text.", remedy=f"Give -c {key}=VALUE.")
    return value
