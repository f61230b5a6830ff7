"""What a bundle says of itself: its files and what they were made from and for."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from infra.bundle.archive import below, digest
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.model import Model

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "job" / "lakewriter"
ENTRY: Final = PACKAGE / "entry.py"
REQUIREMENTS: Final = ROOT / "requirements-job.txt"
RECIPE: Final = ("archive.py", "build.py", "dependencies.py")
"""The modules that decide what an archive holds."""

NAME: Final = "manifest.json"
REMEDY: Final = "Run scripts/bundle."


class File(Model):
    """One file: its size and SHA-256, and the SHA-256 over what is in it, which no compression changes."""

    name: str
    bytes: int
    sha256: str
    contents: str


class Dependencies(File):
    """The packages for one architecture, by name."""

    packages: dict[str, str]


class Manifest(Model):
    """``python`` and ``spark`` are ``major.minor``; ``job`` and ``requirements`` are SHA-256 over the sources."""

    python: str
    spark: str
    job: str
    requirements: str
    entry: File
    archive: File
    dependencies: dict[str, Dependencies]
    """By machine name: ``x86_64``, ``aarch64``."""


def job_files() -> dict[str, Path]:
    """The job's sources, by the names they have in its archive."""
    return {f"{PACKAGE.name}/{name}": path for name, path in below(PACKAGE).items()}


def job_digest() -> str:
    """Changes with every source that the job's archive or its entry comes from."""
    return digest({**job_files(), ENTRY.name: ENTRY})


def requirements_digest() -> str:
    """Changes with the pins, and with how archives are made of them."""
    recipe = {name: Path(__file__).with_name(name) for name in RECIPE}
    return digest({**recipe, REQUIREMENTS.name: REQUIREMENTS})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the bundle in ``folder``; ``SPEC_INVALID`` where it is missing or made from other sources."""
    path = folder / NAME
    try:
        manifest = Manifest.model_validate_json(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise SpecInvalidError(f"there is no bundle of the job: {path} does not exist.", remedy=REMEDY) from error
    except (OSError, ValidationError) as error:
        raise SpecInvalidError(f"{path} is no manifest of a bundle ({type(error).__name__}).", remedy=REMEDY) from error
    if manifest.job != job_digest():
        raise SpecInvalidError(f"the bundle in {folder} is stale: job/ has changed since.", remedy=REMEDY)
    if manifest.requirements != requirements_digest():
        raise SpecInvalidError(
            f"the bundle in {folder} is stale: {REQUIREMENTS.name} has changed since.", remedy=REMEDY
        )
    files = (manifest.entry, manifest.archive, *manifest.dependencies.values())
    for file in files:
        found = folder / file.name
        if not found.is_file() or found.stat().st_size != file.bytes:
            raise SpecInvalidError(f"{found} is not the file of {file.bytes} bytes in the manifest.", remedy=REMEDY)
    return manifest
