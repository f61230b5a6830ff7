"""Build the bundle: the job's sources, its entry point, and its dependencies for each architecture."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click
from pydantic import ValidationError

from infra.bundle.archive import compute_digest, write_archive
from infra.bundle.dependencies import (
    MACHINES,
    PYTHON,
    PYTHONS,
    BundleError,
    install,
    list_licences,
    list_packages,
    refuse_foreign,
    select_files,
)
from infra.bundle.manifest import (
    ENTRY,
    NAME,
    REQUIREMENTS,
    ROOT,
    Dependencies,
    File,
    Manifest,
    compute_job_digest,
    compute_requirements_digest,
    list_job_files,
)
from lakewriter import __version__
from lakewriter.entry import MARK

SPARK: Final = ".".join(version("pyspark").split(".")[:2])
"""The version that the tests run on."""

Fetch = Callable[[Path, str, Path], None]
"""Installs the packages pinned in a requirements file, for an architecture, into a folder."""


def build(
    folder: Path, architectures: Iterable[str] = tuple(MACHINES), *, python: str = PYTHON, fetch: Fetch | None = None
) -> Manifest:
    """Build the bundle in ``folder`` for one ``python``, such as ``3.11``; an archive built from the same
    pins is reused. ``fetch`` installs the packages, by default with uv."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch = fetch or partial(install, python=python)
    reusable = _find_reusable(folder, python)
    (folder / NAME).unlink(missing_ok=True)
    missing = sorted(set(architectures) - set(reusable))
    with ThreadPoolExecutor() as threads:
        made = dict(
            zip(missing, threads.map(partial(_build_dependencies, folder, fetch, python), missing), strict=True)
        )
    current = {folder / archive.name for archive in (reusable | made).values()}
    for stale in set(folder.glob("dependencies-*.zip")) - current:
        stale.unlink()
    shutil.copyfile(ENTRY, folder / ENTRY.name)
    sources = list_job_files()
    write_archive(folder / "job.zip", sources)
    manifest = Manifest(
        version=__version__,
        commit=find_commit(),
        python=python,
        spark=SPARK,
        job=compute_job_digest(),
        requirements=compute_requirements_digest(),
        entry=_describe_file(folder / ENTRY.name, compute_digest({ENTRY.name: ENTRY})),
        archive=_describe_file(folder / "job.zip", compute_digest(sources)),
        dependencies=dict(sorted((reusable | made).items())),
    )
    (folder / NAME).write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
    return manifest


def find_commit() -> str | None:
    """Find git's commit of the sources; None without git or outside of a repository."""
    try:
        commit = _ask_git("rev-parse", "HEAD")
        changed = _ask_git("status", "--porcelain", "--", "job", REQUIREMENTS.name)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+changes" if changed else commit


def _ask_git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _find_reusable(folder: Path, python: str) -> dict[str, Dependencies]:
    """Find the archives of an earlier build that a new build would reproduce."""
    try:
        earlier = Manifest.model_validate_json((folder / NAME).read_text("utf-8"))
    except (OSError, ValidationError):
        return {}
    if (earlier.requirements, earlier.python, earlier.spark) != (compute_requirements_digest(), python, SPARK):
        return {}
    return {
        name: dependency
        for name, dependency in earlier.dependencies.items()
        if _compute_sha256(folder / dependency.name) == dependency.sha256
    }


def _build_dependencies(folder: Path, fetch: Fetch, python: str, architecture: str) -> Dependencies:
    with tempfile.TemporaryDirectory(prefix="lakewriter-") as scratch:
        installed = Path(scratch)
        fetch(REQUIREMENTS, architecture, installed)
        (installed / MARK).write_text(
            json.dumps({"python": python, "architecture": architecture, "spark": SPARK}), "utf-8"
        )
        files = select_files(installed)
        refuse_foreign(files, architecture)
        to = folder / f"dependencies-{architecture}.zip"
        write_archive(to, files, compress=True)
        described = _describe_file(to, compute_digest(files)).model_dump()
        return Dependencies(**described, packages=list_packages(installed), licences=list_licences(installed))


def _describe_file(path: Path, contents: str) -> File:
    return File(name=path.name, bytes=path.stat().st_size, sha256=_compute_sha256(path) or "", contents=contents)


def _compute_sha256(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@click.command()
@click.option(
    "--architecture",
    "architectures",
    multiple=True,
    type=click.Choice(tuple(MACHINES)),
    help="Build for this one only; by default for all.",
)
@click.option(
    "--python",
    type=click.Choice(PYTHONS),
    default=PYTHON,
    show_default=True,
    help="The Python that the job runs with, one of those of the EMR release.",
)
@click.option("--to", type=click.Path(path_type=Path), default=ROOT / "build" / "bundle", help="The folder to fill.")
def main(architectures: tuple[str, ...], python: str, to: Path) -> None:
    """Build what EMR Serverless needs to run the job, with a list of what is in it: sbom.json."""
    # Imported here: a bundle that is built in another way needs no list.
    from infra.bundle.sbom import write_sbom

    try:
        manifest = build(to, architectures or tuple(MACHINES), python=python)
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    write_sbom(to, manifest)
    for file in (manifest.entry, manifest.archive, *manifest.dependencies.values()):
        click.echo(f"{to / file.name}  {file.bytes / 1e6:.1f} MB  sha256 {file.sha256}")


if __name__ == "__main__":
    main()
