"""Assemblies to review, one for each deployment of a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra.application import add_stacks
from infra.bundle.build import build
from infra.settings import Settings, read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.lakes import lake


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    build(folder, fetch=lambda *_: None)
    return folder


class Synth:
    """Synthesises deployments of one file, each into a folder of its own."""

    def __init__(self, settings_for: SettingsFor, bundle: Path, folder: Path) -> None:
        self._settings_for, self._bundle, self._folder, self._count = settings_for, bundle, folder, 0

    def run(
        self,
        deployment: Mapping[str, Any],
        deployed: Path | None = None,
        *,
        stage: str = "prod",
        top: Any = None,
        **destination: Any,
    ) -> tuple[Path, Settings]:
        content = lake(dict(deployment)) | (top or {})
        content["destination"] = {**content["destination"], **destination}
        made = self._settings_for(content, stage=stage, bundle=self._bundle)
        settings = Settings(made.lake, made.stage, made.bundle, deployed=deployed)
        self._count += 1
        app = cdk.App(context=read_defaults(), outdir=str(self._folder / str(self._count)), analytics_reporting=False)
        add_stacks(app, settings)
        return Path(app.synth().directory), settings


@pytest.fixture(scope="module")
def synth(settings_for: SettingsFor, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Synth:
    return Synth(settings_for, bundle, tmp_path_factory.mktemp("assemblies"))
