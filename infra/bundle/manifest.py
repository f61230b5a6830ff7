"""Read and check the manifest of a bundle: its files, their sources, and the Spark and Python they are for."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

import lakewriter
from infra.bundle.archive import compute_digest, list_files
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.model import Model

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = Path(lakewriter.__file__).parent
"""The job's package: of this tree, or installed beside these stacks."""
ENTRY: Final = PACKAGE / "entry.py"
REQUIREMENTS: Final = ROOT / "requirements-job.txt"
RECIPE: Final = ("archive.py", "build.py", "dependencies.py")
"""The modules that decide what an archive contains."""

NAME: Final = "manifest.json"
REMEDY: Final = "Run scripts/bundle."


class File(Model):
    """One file: its size and SHA-256, and ``contents``, the SHA-256 before compression."""

    name: str
    bytes: int
    sha256: str
    contents: str


class Dependencies(File):
    """The archive of one architecture, and the version and licence of each package in it."""

    packages: dict[str, str]
    licences: dict[str, str]
    """Licences are as the metadata says: an SPDX expression, or a name; blank where it says nothing."""


class Manifest(Model):
    """``python`` and ``spark`` are ``major.minor``; ``job`` and ``requirements`` are SHA-256 over the sources.

    ``version`` is the release's; ``commit`` git's, if the sources are a repository, with ``+changes`` behind it if they
    differ.
    """

    version: str
    commit: str | None
    python: str
    spark: str
    job: str
    requirements: str
    entry: File
    archive: File
    dependencies: dict[str, Dependencies]
    """Keys are machine names: ``x86_64``, ``aarch64``."""


def list_job_files() -> dict[str, Path]:
    """List the job's sources by their names in its archive; not the pages that a wheel puts among them."""
    files = {name: path for name, path in list_files(PACKAGE).items() if not name.startswith("docs/")}
    return {f"{PACKAGE.name}/{name}": path for name, path in files.items()}


def compute_job_digest() -> str:
    """Compute a digest of all sources of the job's archive and entry point."""
    return compute_digest({**list_job_files(), ENTRY.name: ENTRY})


def compute_requirements_digest() -> str:
    """Compute a digest of the pins, and of the modules that make archives of them."""
    recipe = {name: Path(__file__).with_name(name) for name in RECIPE}
    return compute_digest({**recipe, REQUIREMENTS.name: REQUIREMENTS})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of the bundle in ``folder``; ``SPEC_INVALID`` if it is missing or its sources have changed."""
    path = folder / NAME
    try:
        manifest = Manifest.model_validate_json(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise SpecInvalidError(f"there is no bundle of the job: {path} does not exist.", remedy=REMEDY) from error
    except (OSError, ValidationError) as error:
        reason = type(error).__name__
        raise SpecInvalidError(f"{path} is not the manifest of a bundle ({reason}).", remedy=REMEDY) from error
    if manifest.job != compute_job_digest():
        raise SpecInvalidError(f"the bundle in {folder} is stale: job/ has changed since.", remedy=REMEDY)
    # A wheel has no pins: there the bundle is of the release if its job is.
    if REQUIREMENTS.exists() and manifest.requirements != compute_requirements_digest():
        raise SpecInvalidError(
            f"the bundle in {folder} is stale: {REQUIREMENTS.name} has changed since.", remedy=REMEDY
        )
    files = (manifest.entry, manifest.archive, *manifest.dependencies.values())
    for file in files:
        bundled = folder / file.name
        if not bundled.is_file() or bundled.stat().st_size != file.bytes:
            raise SpecInvalidError(f"{bundled} is not the file of {file.bytes} bytes in the manifest.", remedy=REMEDY)
    return manifest
