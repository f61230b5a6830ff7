"""Read the settings of a stage from lake.yaml, CDK context and environment; no other module reads the latter two."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lakewriter.deployable.staged_lake import StagedLake, load_siblings
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SecretUnresolvedError, SpecInvalidError
from lakewriter.spec.access import SecretText
from lakewriter.spec.deployment import name_deployment, name_destination_stack, name_pipeline_stack

ROOT: Final = Path(__file__).resolve().parent.parent
_INSTALLED: Final = Path(__file__).with_name("cdk.json")
"""A wheel has it here."""


def read_defaults() -> dict[str, Any]:
    """Read the context of cdk.json: the CLI passes it on, ``python app.py`` would not have it."""
    path = _INSTALLED if _INSTALLED.exists() else ROOT / "cdk.json"
    context: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["context"]
    return context


def choose_output_folder() -> Path:
    """Choose the folder of the assembly: ``CDK_OUTDIR``, which the CLI sets, else ``cdk.out`` beside cdk.json."""
    return Path(os.environ.get("CDK_OUTDIR", ROOT / "cdk.out"))


@dataclass(frozen=True)
class Settings(StagedLake):
    """One stage of one pipeline. ``bundle`` is the folder that ``scripts/bundle`` fills."""

    bundle: Path
    deployed: Path | None = None
    """The assembly that was deployed last, to compare with."""
    other_stacks: frozenset[str] = frozenset()
    """The stacks of the other files of this assembly."""
    guests: tuple["Settings", ...] = ()
    """Further files whose tables lie in the bucket that this file's destination stack makes."""

    @classmethod
    def read(cls, context: Callable[[str], Any]) -> "Settings":
        """Read the context keys ``stage``, ``lake``, ``bundle``, ``deployed``; paths begin at the folder of cdk.json.

        ``lake`` may be several files with commas between them: the first one's bucket holds the tables of all.
        """
        paths, stage, bundle = (_require_text(context, key) for key in ("lake", "stage", "bundle"))
        first, *guests = (cls._read_file(path.strip(), stage, bundle) for path in paths.split(","))
        deployed = _read_deployed(context("deployed"))
        names = {name for settings in (first, *guests) for name in settings.stack_names}
        first, *guests = (
            replace(settings, deployed=deployed, other_stacks=frozenset(names) - {*settings.stack_names})
            for settings in (first, *guests)
        )
        return replace(first, guests=tuple(guests))

    @classmethod
    def load(cls, lake: Path | str, *, stage: str, bundle: Path | str) -> "Settings":
        """Read one file for an app of somebody's own; relative paths begin at the working directory."""
        return cls._read_file(str(Path(lake).resolve()), stage, str(Path(bundle).resolve()))

    @classmethod
    def _read_file(cls, path: str, stage: str, bundle: str) -> "Settings":
        lake = load(ROOT / path, stage=stage)
        return cls(lake, stage, ROOT / bundle, siblings=load_siblings(ROOT / path, lake, stage))

    @property
    def name(self) -> str:
        """The prefix of all resource names; no two stages share it."""
        return name_deployment(self.spec.pipeline, self.stage)

    @property
    def stack_names(self) -> tuple[str, str]:
        """Destination and pipeline."""
        pipeline = self.spec.pipeline
        return name_destination_stack(pipeline, self.stage), name_pipeline_stack(pipeline, self.stage)

    @property
    def protected(self) -> bool:
        """True if stateful resources are kept when their stack is deleted."""
        protect = self.deployment.protect
        return self.stage != "dev" if protect is None else protect

    def read_external_id(self, secret: SecretText) -> str:
        """Read an external id: its text, an environment variable, or ``${ssm:NAME}``, which CloudFormation resolves.

        Raises ``SECRET_UNRESOLVED`` if the variable is not set.
        """
        kind, name = secret.reference or ("", "")
        if kind != "env":
            return secret.text
        if name not in os.environ:
            raise SecretUnresolvedError(
                f"{secret.text}, an external id, is not set in this environment.",
                remedy=f"Set {name} to what the vendor gave you, or give the external id as ${{ssm:NAME}}.",
            )
        return os.environ[name]


def _read_deployed(value: object) -> Path | None:
    if value is None:
        return None
    folder = ROOT / str(value)
    if folder.resolve() == choose_output_folder().resolve():
        raise SpecInvalidError(
            f"-c deployed={value}: this folder is where synth writes; expected a copy of what was deployed last.",
            remedy="Keep a copy of cdk.out after each deployment, or give another --output.",
        )
    return folder


def _require_text(context: Callable[[str], Any], key: str) -> str:
    value = context(key)
    if not isinstance(value, str) or not value:
        raise SpecInvalidError(f"context key {key!r}: expected text, got {value!r}.", remedy=f"Give -c {key}=VALUE.")
    return value
