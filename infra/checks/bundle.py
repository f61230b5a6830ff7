"""Whether the bundle is there, fresh, and fits the application that is to run it."""

from collections.abc import Iterator

from infra.bundle.manifest import read_manifest
from infra.bundle.release import refused
from infra.pipeline.artifact import dependencies_for
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError


def bundle(settings: Settings) -> Iterator[str]:
    """No bundle, a stale one, one for another architecture, or a release without the Spark it was built for."""
    spark = settings.deployment.spark
    try:
        manifest = read_manifest(settings.bundle)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"
        return
    if reason := refused(spark.release, manifest):
        yield reason
    try:
        dependencies_for(spark.architecture, manifest)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"
