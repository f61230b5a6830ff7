"""A bundle that is missing, stale or incomplete is refused with what mends it."""

from pathlib import Path

import pytest

from infra.bundle.manifest import read_manifest
from lakewriter.errors import SpecInvalidError
from tests.support.bundles import light_bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle for both architectures."""
    return light_bundle(tmp_path)


def test_fresh_bundle_is_read(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert (manifest.python, manifest.spark, sorted(manifest.dependencies)) == ("3.11", "4.1", ["aarch64", "x86_64"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": "0" * 64}, "is stale: job/ has changed since."),
        ({"requirements": "0" * 64}, "is stale: requirements-job.txt has changed since."),
    ],
)
def test_stale_bundle_is_refused(folder: Path, change: dict[str, str], said: str) -> None:
    manifest = read_manifest(folder).model_copy(update=change)
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    with pytest.raises(SpecInvalidError, match=said) as refused:
        read_manifest(folder)
    assert refused.value.remedy == "Run scripts/bundle."


def test_missing_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalidError, match="there is no bundle of the job") as refused:
        read_manifest(tmp_path)
    assert refused.value.remedy == "Run scripts/bundle."


@pytest.mark.parametrize("name", ["job.zip", "dependencies-aarch64.zip"])
def test_bundle_with_another_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    with pytest.raises(SpecInvalidError, match=f"{name} is not the file of"):
        read_manifest(folder)


def test_manifest_that_is_none_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"python": "3.11"}')
    with pytest.raises(SpecInvalidError, match=r"manifest\.json is not the manifest"):
        read_manifest(folder)
