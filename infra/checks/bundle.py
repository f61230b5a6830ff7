"""Check that the bundle exists, is up to date, and fits the EMR Serverless application."""

from collections.abc import Iterator

from infra.bundle.manifest import read_manifest
from infra.bundle.release import describe_mismatch
from infra.pipeline.artifact import find_dependencies
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError


def check_bundle(settings: Settings) -> Iterator[str]:
    """Refuse a missing or stale bundle, and one for another architecture or another Spark."""
    spark = settings.deployment.spark
    try:
        manifest = read_manifest(settings.bundle)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"
        return
    if reason := describe_mismatch(spark.release, manifest):
        yield reason
    try:
        find_dependencies(spark.architecture, manifest)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"
