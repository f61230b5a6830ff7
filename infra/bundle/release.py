"""Compare a bundle's Spark and Python with those of an EMR release.

https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark810-release.html
"""

from dataclasses import dataclass
from typing import Final

from infra.bundle.manifest import Manifest
from lakewriter.spec.installing import TESTED_RELEASE, TESTED_SPARK


@dataclass(frozen=True)
class Line:
    """Spark and the Pythons of a line of releases as ``major.minor``, the default first."""

    spark: str
    pythons: tuple[str, ...]


LINES: Final = {
    "emr-spark-8.1": Line("4.1", ("3.11", "3.13")),
    "emr-spark-8.0": Line("4.0", ("3.11", "3.13")),
    "emr-7": Line("3.5", ("3.9",)),
    "emr-6": Line("3.5 or older", ("3.7",)),
}


WITH_SPARK_4: Final = frozenset({
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-1",
    "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1",
    "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-gov-east-1", "us-gov-west-1", "us-west-1", "us-west-2",
})  # fmt: skip
"""Regions of the partitions whose pages have ``emr-spark-8.0.0``, in which EMR Serverless is offered, but for the two
that the page excepts, Bahrain and the UAE. What is true of a later release, or of a later region, is not written down.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.0.0.html
"""


def find_line(release: str) -> Line | None:
    """Find the line of a release label such as ``emr-spark-8.1.0``; None if it is newer than this table."""
    return next((line for prefix, line in LINES.items() if release.startswith(f"{prefix}.")), None)


def describe_mismatch(release: str, manifest: Manifest) -> str | None:
    """Say why the bundle cannot run on a known release; None if it can, or if the release is unknown."""
    line = find_line(release)
    if line is None or _fits(line, manifest):
        return None
    fitting = ", ".join(f"{prefix}.*" for prefix, line in LINES.items() if _fits(line, manifest))
    return (
        f"deployment.spark.release {release!r} has Spark {line.spark} and Python {' or '.join(line.pythons)}; "
        f"the job needs Spark {manifest.spark} and Python {manifest.python}: {fitting}."
    )


def _fits(line: Line, manifest: Manifest) -> bool:
    return line.spark == manifest.spark and manifest.python in line.pythons


def describe_unknown_release(release: str, region: str, manifest: Manifest) -> str | None:
    """Warn of an unknown release, or of one that the region may not have; the job itself refuses to start on a release
    that does not fit."""
    if region and region not in WITH_SPARK_4 and release.startswith("emr-spark-8."):
        return (
            f"deployment.spark.release {release!r} may not be offered in {region!r}: no page says that emr-spark-8.0.0 "
            "was. The deployment fails then; look it up under the release's 'Regional Availability' first."
        )
    if find_line(release) is not None:
        return None
    return (
        f"deployment.spark.release {release!r} is newer than this version knows; "
        f"a load fails at its start unless the release has Spark {manifest.spark} and Python {manifest.python}. "
        f"Tests run with Spark {TESTED_SPARK}, for {TESTED_RELEASE}."
    )
