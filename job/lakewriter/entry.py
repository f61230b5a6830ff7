"""Start the job under spark-submit: first compare what the bundle was built for with what it runs on.

Until then only the standard library is imported, and the syntax is one that older Pythons read.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path

MARK = "lakewriter-bundle.json"
REMEDY = "Run scripts/bundle for the application's release and architecture, and deploy again."


def read_mark(folders: list[str]) -> dict[str, str] | None:
    """Return the mark of the dependencies on the path; None where there are none."""
    marks = (Path(folder, MARK) for folder in folders)
    return next((json.loads(mark.read_text("utf-8")) for mark in marks if mark.is_file()), None)


def find_difference(built: dict[str, str] | None, *, python: str, machine: str) -> str | None:
    """Return the first thing that differs from the build; Spark comes last, as another Python cannot import it."""
    if built is None:
        return f"no {MARK} is on the path: the dependencies were not unpacked, or PYTHONPATH does not name them."
    if python != built["python"]:
        return f"the bundle was built for Python {built['python']}, and this is Python {python}."
    if machine != built["architecture"]:
        return f"the bundle was built for {built['architecture']}, and this is {machine}."
    spark = _read_spark_version()
    if spark != built["spark"]:
        return f"the bundle was built for Spark {built['spark']}, and this is {f'Spark {spark}' if spark else 'none'}."
    return None


def _read_spark_version() -> str | None:
    """Read Spark's version as ``major.minor``; Amazon's builds add a suffix."""
    try:
        from pyspark.version import __version__
    except ImportError:
        return None
    match = re.match(r"\d+\.\d+", __version__)
    return match[0] if match else __version__


def run() -> None:
    """Start the command line where the bundle fits this machine, otherwise exit with code 2."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    difference = find_difference(read_mark(sys.path), python=python, machine=platform.machine())
    if difference:
        sys.stderr.write(f"SPEC_INVALID: {difference} {REMEDY}\n")
        sys.exit(2)
    from lakewriter.cli.main import main

    main(prog_name="lakewriter")


if __name__ == "__main__":
    run()
