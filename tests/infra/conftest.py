"""Fixtures of the tests that synthesise stacks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from infra.settings import Settings
from lakewriter.dialects.lake_yaml import load


class SettingsFor(Protocol):
    """``settings_for(lake, stage="prod", bundle=None)``: the Settings of a lake.yaml's text, or of its content."""

    def __call__(
        self, lake: str | Mapping[str, Any], *, stage: str = "prod", bundle: Path | None = None
    ) -> Settings: ...


@pytest.fixture(scope="session")
def settings_for(tmp_path_factory: pytest.TempPathFactory) -> SettingsFor:
    """A stage that the file does not name changes nothing in it."""

    def make(lake: str | Mapping[str, Any], *, stage: str = "prod", bundle: Path | None = None) -> Settings:
        folder = tmp_path_factory.mktemp("lake")
        text = lake if isinstance(lake, str) else yaml.safe_dump(dict(lake), sort_keys=False)
        path = folder / "lake.yaml"
        path.write_text(text)
        stages = (yaml.safe_load(text).get("deployment") or {}).get("stages") or {}
        loaded = load(path, stage=stage if stage in stages else None)
        return Settings(loaded, stage, bundle or folder / "bundle")

    return make
