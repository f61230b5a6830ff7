"""Which Spark and Python an EMR release brings, by its line: what a bundle built for them can run on.

https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark810-release.html
"""

from dataclasses import dataclass
from typing import Final

from infra.bundle.manifest import Manifest


@dataclass(frozen=True)
class Line:
    """Both as ``major.minor``; ``python`` is the one that a job gets unless it brings an image of its own."""

    spark: str
    python: str


LINES: Final = {
    "emr-spark-8.1": Line("4.1", "3.11"),
    "emr-spark-8.0": Line("4.0", "3.11"),
    "emr-7": Line("3.5", "3.9"),
    "emr-6": Line("3.5 or older", "3.7"),
}


def line_of(release: str) -> Line | None:
    """The line of a release label such as ``emr-spark-8.1.0``; None for one that came out later than this table."""
    return next((line for prefix, line in LINES.items() if release.startswith(f"{prefix}.")), None)


def refused(release: str, manifest: Manifest) -> str | None:
    """Why the bundle cannot run on a known release; None where it can, or where nobody knows yet."""
    line, wanted = line_of(release), Line(manifest.spark, manifest.python)
    if line is None or line == wanted:
        return None
    fitting = ", ".join(f"{prefix}.*" for prefix, each in LINES.items() if each == wanted)
    return (
        f"deployment.spark.release {release!r} has Spark {line.spark} and Python {line.python}; "
        f"the job needs Spark {wanted.spark} and Python {wanted.python}: {fitting}."
    )


def unproven(release: str, manifest: Manifest) -> str | None:
    """A warning for a release that is not known; the job itself refuses to start where it does not fit."""
    if line_of(release) is not None:
        return None
    return (
        f"deployment.spark.release {release!r} is newer than this version knows; "
        f"a load fails at its start unless the release has Spark {manifest.spark} and Python {manifest.python}."
    )
