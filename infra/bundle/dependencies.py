"""Install the job's pinned packages for one architecture, without the files that the job does not need."""

import re
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from infra.bundle.archive import list_files

PYTHON: Final = "3.11"
"""A bundle is built for this Python unless another one is asked for."""
PYTHONS: Final = (PYTHON, "3.13")
"""Those that EMR has: https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark810-release.html."""
MACHINES: Final = {"x86_64": 62, "aarch64": 183}
"""Each architecture's ``e_machine`` in an ELF header."""
GLIBC: Final = "manylinux_2_28"
"""Amazon Linux 2023 has a newer one."""

CLIENTS: Final = (
    "cloudwatch", "glue", "iam", "kms", "s3", "s3tables", "secretsmanager", "signin", "ssm", "sso", "sso-oidc", "sts"
)  # fmt: skip
"""The services whose botocore descriptions stay in the archive; those of all services are 28 MB."""

DROP: Final = (
    # Their contents depend on the installer, and nothing reads them.
    "bin/*",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    ".lock",
    # For testing numpy, pandas and pyarrow, and for building against the latter.
    "numpy/tests/*",
    "numpy/*/tests/*",
    "pandas/tests/*",
    "pyarrow/include/*",
    "pyarrow/includes/*",
    "pyarrow/src/*",
    "pyarrow/tests/*",
    "pyarrow/*.pxd",
    "pyarrow/*.pxi",
    "pyarrow/*.pyx",
    "pyarrow/_pyarrow_cpp_tests*",
    # Arrow's RPC, which only pyarrow.flight loads.
    "pyarrow/_flight*",
    "pyarrow/flight.py",
    "pyarrow/libarrow_flight*",
    "pyarrow/libarrow_python_flight*",
    # For Pythons without the C extension, which is beside it.
    "zstandard/_cffi*",
)

_SERVICE: Final = re.compile(r"botocore/data/([^/]+)/.+")
# Wheels hold each library under three names; it is loaded by the one with the major version.
_COPY: Final = re.compile(r"(pyarrow/lib\w+\.so)(\.\d+\.\d+\.\d+)?")


class BundleError(Exception):
    """The pinned packages cannot be installed, or do not fit the job."""


def install(requirements: Path, architecture: str, to: Path, *, python: str = PYTHON) -> None:
    """Install the wheels that ``requirements`` pins into ``to``, checked against its hashes."""
    command = [find_uv_bin(), "pip", "install", "--quiet", "--target", str(to), "--link-mode", "copy"]
    command += ["--python-version", python, "--python-platform", f"{architecture}-{GLIBC}"]
    command += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-compile-bytecode"]
    done = subprocess.run([*command, "--requirements", str(requirements)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundleError(
            f"uv could not install {requirements.name} for Python {python} on {architecture}: {done.stderr}"
        )


def select_files(folder: Path) -> dict[str, Path]:
    """Select the files of an installation that belong in the archive, by their paths in it."""
    files = list_files(folder)
    return {name: path for name, path in files.items() if not _is_unneeded(name, files)}


def _is_unneeded(name: str, files: Mapping[str, Path]) -> bool:
    if any(fnmatch(name, pattern) for pattern in DROP):
        return True
    if service := _SERVICE.fullmatch(name):
        return service[1] not in CLIENTS
    copy = _COPY.fullmatch(name)
    return bool(copy and any(re.fullmatch(rf"{re.escape(copy[1])}\.\d+", other) for other in files))


def list_packages(folder: Path) -> dict[str, str]:
    """List the version of each package in ``folder`` by name."""
    versions = {package.name: package.version for package in distributions(path=[str(folder)])}
    if spark := {"pyspark", "py4j"} & set(versions):
        raise BundleError(f"the dependencies hold {', '.join(sorted(spark))}, which Spark brings itself.")
    return dict(sorted(versions.items()))


def list_licences(folder: Path) -> dict[str, str]:
    """List the licence of each package in ``folder`` by name.

    https://packaging.python.org/en/latest/specifications/core-metadata/#license-expression
    """
    licences = (distribution.metadata for distribution in distributions(path=[str(folder)]))
    return dict(sorted((metadata["Name"], _read_licence(metadata)) for metadata in licences))


def _read_licence(metadata: PackageMetadata) -> str:
    """Read the expression, else the classifiers, else the first line of the older free text."""
    fields = metadata.json
    expression, text = fields.get("license_expression"), str(fields.get("license") or "")
    classifiers = [str(field) for field in fields.get("classifier") or () if str(field).startswith("License :: ")]
    named = " OR ".join(
        classifier.rpartition(" :: ")[2] for classifier in classifiers if classifier != "License :: OSI Approved"
    )
    return str(expression or named or text.strip().partition("\n")[0])


def refuse_foreign(files: Mapping[str, Path], architecture: str) -> None:
    """Raise ``BundleError`` if a binary is for another architecture."""
    wrong = [name for name, path in sorted(files.items()) if read_machine(path) not in {None, MACHINES[architecture]}]
    if wrong:
        raise BundleError(f"not for {architecture}: {', '.join(wrong)}.")


def read_machine(path: Path) -> int | None:
    """Read the ``e_machine`` of an ELF file; None for any other file."""
    with path.open("rb") as file:
        header = file.read(20)
    return int.from_bytes(header[18:20], "little") if header[:4] == b"\x7fELF" else None
