"""What the archives hold: of every real one, and of light ones what decides it."""

import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.bundle.build import build
from infra.bundle.dependencies import CLIENTS, BundleError
from infra.bundle.manifest import REQUIREMENTS, ROOT, read_manifest

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
"""EM_X86_64 and EM_AARCH64 of <elf.h>."""


def binaries(archive: Path) -> dict[str, int]:
    """The ``e_machine`` of every ELF file in it."""
    with zipfile.ZipFile(archive) as packed:
        heads = {name: packed.open(name).read(20) for name in packed.namelist()}
    return {name: struct.unpack("<H", head[18:20])[0] for name, head in heads.items() if head[:4] == b"\x7fELF"}


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_binary_is_for_its_architecture(bundle: Path, architecture: str) -> None:
    found = binaries(bundle / f"dependencies-{architecture}.zip")
    assert set(found.values()) == {ELF_MACHINES[architecture]}
    assert {"pyarrow/lib", "pydantic_core/_pydantic_core", "datafusion/_internal"} <= {
        name.partition(".")[0] for name in found
    }


UNNEEDED = ("tests/", "zstandard/_cffi", "pyarrow/_flight", "pyarrow/include/")


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_what_nothing_loads_is_left_out(bundle: Path, architecture: str) -> None:
    with zipfile.ZipFile(bundle / f"dependencies-{architecture}.zip") as packed:
        names = packed.namelist()
    numeric = [name for name in names if name.startswith(("numpy/", "pandas/", "pyarrow/", "zstandard/"))]
    assert [name for name in numeric if any(part in name for part in UNNEEDED)] == []
    assert any(name.startswith("zstandard/backend_c") for name in names)


@pytest.mark.exhaustive
def test_second_build_is_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    build(tmp_path, ["aarch64"])
    for name in ("dependencies-aarch64.zip", "job.zip", "entry.py"):
        assert (tmp_path / name).read_bytes() == (bundle / name).read_bytes(), name


def pins(architecture: str) -> dict[str, str]:
    """What requirements-job.txt pins for Python 3.11 on Linux."""
    lines = re.findall(r"^(\w\S+==[^\\]+?) \\$", REQUIREMENTS.read_text(), re.M)
    machine = {"platform_machine": architecture, "sys_platform": "linux", "python_full_version": "3.11.9"}
    found = [each for each in map(Requirement, lines) if each.marker is None or each.marker.evaluate(machine)]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in found}


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_packages_are_the_pinned_ones(bundle: Path, architecture: str) -> None:
    packages = read_manifest(bundle).dependencies[architecture].packages
    assert {canonicalize_name(name): version for name, version in packages.items()} == pins(architecture)


def test_both_architectures_have_the_same_packages(bundle: Path) -> None:
    built = {architecture: set(each.packages) for architecture, each in read_manifest(bundle).dependencies.items()}
    assert built["x86_64"] == built["aarch64"]
    assert {"isal", "thrift", "zlib-ng"} <= built["aarch64"]


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_archive_holds_what_the_job_needs_and_no_more(bundle: Path, architecture: str) -> None:
    with zipfile.ZipFile(bundle / f"dependencies-{architecture}.zip") as archive:
        names = archive.namelist()
    spare = re.compile(r"(pyspark|py4j|bin)/|.*\.pyc$|.*dist-info/RECORD$|pyarrow/(include|libarrow_flight)|\.lock")
    assert [name for name in names if spare.match(name)] == []
    assert len([name for name in names if re.fullmatch(r"pyarrow/libarrow_python\.so.*", name)]) == 1
    assert "lakewriter-bundle.json" in names


def test_botocore_keeps_the_services_that_the_job_calls() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "job").rglob("*.py"))
    called = set(re.findall(r"client\(\s*\"([\w-]+)\"", sources))
    assert {"s3", "glue", "sts"} <= called <= set(CLIENTS)


def test_job_archive_holds_the_job_alone(bundle: Path) -> None:
    with zipfile.ZipFile(bundle / "job.zip") as archive:
        names = archive.namelist()
    assert {"lakewriter/__init__.py", "lakewriter/__main__.py", "lakewriter/source/log4j2.properties"} <= set(names)
    assert [name for name in names if not name.startswith("lakewriter/")] == []


class Fetch:
    """Counts the installations it makes, each of one file."""

    def __init__(self, name: str = "package.py", content: bytes = b"") -> None:
        self.made: list[str] = []
        self._name, self._content = name, content

    def __call__(self, requirements: Path, architecture: str, to: Path) -> None:
        self.made.append(architecture)
        (to / self._name).parent.mkdir(exist_ok=True)
        (to / self._name).write_bytes(self._content)


def test_archives_from_the_same_pins_are_kept(tmp_path: Path) -> None:
    fetch = Fetch()
    build(tmp_path, ["x86_64"], fetch=fetch)
    assert set(build(tmp_path, ["aarch64"], fetch=fetch).dependencies) == {"x86_64", "aarch64"}
    build(tmp_path, fetch=fetch)
    assert fetch.made == ["x86_64", "aarch64"]


def test_archive_that_was_touched_is_made_again(tmp_path: Path) -> None:
    fetch = Fetch()
    build(tmp_path, fetch=fetch)
    (tmp_path / "dependencies-x86_64.zip").write_bytes(b"cut off")
    build(tmp_path, ["aarch64"], fetch=fetch)
    assert not (tmp_path / "dependencies-x86_64.zip").exists()
    assert set(build(tmp_path, fetch=fetch).dependencies) == {"x86_64", "aarch64"}
    assert sorted(fetch.made) == ["aarch64", "x86_64", "x86_64"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("_c.so", b"\x7fELF" + bytes(14) + struct.pack("<H", 62), "not for aarch64: _c.so."),
        ("pyspark-4.1.1.dist-info/METADATA", b"Name: pyspark\nVersion: 4.1.1\n", "the dependencies hold pyspark"),
    ],
)
def test_unfit_packages_are_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    with pytest.raises(BundleError, match=re.escape(said)):
        build(tmp_path, ["aarch64"], fetch=Fetch(name, content))


def test_command_says_what_it_built(bundle: Path) -> None:
    command = [sys.executable, "-m", "infra.bundle.build", "--architecture", "x86_64", "--to", str(bundle)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    sizes = re.findall(r"^(\S+)  [\d.]+ MB  sha256 [0-9a-f]{64}$", done.stdout, re.M)
    names = ("entry.py", "job.zip", "dependencies-aarch64.zip", "dependencies-x86_64.zip")
    assert sizes == [str(bundle / name) for name in names]
