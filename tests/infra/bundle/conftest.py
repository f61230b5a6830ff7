"""The bundle, built as ``scripts/bundle`` builds it."""

from pathlib import Path

import pytest

from infra.bundle.build import build

BUNDLE = Path(__file__).parents[3] / "build" / "bundle"


@pytest.fixture(scope="session")
def bundle() -> Path:
    """For both architectures; what an earlier session made from the same pins is kept, as the command keeps it."""
    build(BUNDLE)
    return BUNDLE
