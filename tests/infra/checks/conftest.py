"""A bundle for deployments to be checked with."""

from pathlib import Path

import pytest

from infra.bundle.build import build


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For one architecture, with no dependencies in it."""
    folder = tmp_path_factory.mktemp("bundle")
    build(folder, ["x86_64"], fetch=lambda *_: None)
    return folder
