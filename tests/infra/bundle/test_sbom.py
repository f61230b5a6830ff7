"""What a bundle says of itself: its release, its commit, licences, and a bill of materials that CycloneDX accepts."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.bundle import build as building
from infra.bundle.build import build, find_commit
from infra.bundle.manifest import Manifest
from lakewriter import __version__

pytest.importorskip("cyclonedx", reason="scripts/setup installs it")

METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: {}\n{}\n"
APACHE = "Classifier: License :: OSI Approved :: Apache Software License\n"
PACKAGES = [
    # name, version, what its metadata says, the licence
    ("isal", "1.7.2", "License-Expression: PSF-2.0\n", "PSF-2.0"),
    ("requests", "2.32.5", APACHE, "Apache Software License"),
    ("thrift", "0.22.0", "License: Apache License 2.0\n", "Apache License 2.0"),
    ("silent", "1.0", "", ""),
]


def fetch(_requirements: Path, _architecture: str, to: Path) -> None:
    for name, version, said, _ in PACKAGES:
        folder = to / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(METADATA.format(name, version, said), "utf-8")


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return build(tmp_path, ["x86_64", "aarch64"], fetch=fetch)


def bill(folder: Path, manifest: Manifest) -> dict[str, Any]:
    from infra.bundle.sbom import write_sbom

    found: dict[str, Any] = json.loads(write_sbom(folder, manifest).read_text("utf-8"))
    return found


def test_manifest_says_which_release_it_is(manifest: Manifest) -> None:
    assert (manifest.version, manifest.commit) == (__version__, find_commit())
    assert manifest.dependencies["x86_64"].licences == {name: licence for name, _, _, licence in sorted(PACKAGES)}


def test_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"rev-parse": "0a1b2c", "status": ""}
    monkeypatch.setattr(building, "_ask_git", lambda verb, *_: answers[verb])
    assert find_commit() == "0a1b2c"
    answers["status"] = " M job/lakewriter/entry.py"
    assert find_commit() == "0a1b2c+changes"


def test_sources_that_are_no_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_commit() is None


def test_every_package_is_in_the_bill_once(tmp_path: Path, manifest: Manifest) -> None:
    found = bill(tmp_path, manifest)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["version"] == __version__
    components = {each["name"]: each for each in found["components"]}
    assert sorted(components) == ["isal", "requests", "silent", "thrift"]
    assert components["isal"]["purl"] == "pkg:pypi/isal@1.7.2"
    assert components["isal"]["licenses"] == [{"license": {"id": "PSF-2.0"}}]
    assert components["thrift"]["licenses"] == [{"license": {"name": "Apache License 2.0"}}]
    assert "licenses" not in components["silent"]
    (job,) = [each for each in found["dependencies"] if each["ref"] == "lakewriter"]
    assert job["dependsOn"] == ["isal==1.7.2", "requests==2.32.5", "silent==1.0", "thrift==0.22.0"]


def test_serial_number_is_the_bundles(tmp_path: Path, manifest: Manifest) -> None:
    first, second = bill(tmp_path, manifest), bill(tmp_path, manifest)
    assert first["serialNumber"] == second["serialNumber"]
    other = bill(tmp_path, manifest.model_copy(update={"version": "9"}))
    assert other["serialNumber"] != first["serialNumber"]
