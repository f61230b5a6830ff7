"""Check what only the machine that synthesizes has: the bundle of the job, and the variables of external ids."""

from collections.abc import Iterator

from infra.bundle.manifest import read_manifest
from infra.bundle.release import describe_mismatch
from infra.pipeline.artifact import find_dependencies
from infra.settings import Settings
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID


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


def check_external_ids(settings: Settings) -> Iterator[str]:
    """Refuse external ids that STS would refuse; the value of ``${env:NAME}`` is known only here."""
    for number, trust in enumerate(settings.deployment.trust):
        for index, secret in enumerate(trust.external_ids):
            name = f"earlier_external_ids.{index - 1}" if index else "external_id"
            key = f"deployment.trust.{number}.{name}"
            try:
                value = settings.read_external_id(secret)
            except LakeError as error:
                yield f"{key}: {error.message} {error.remedy}".strip()
                continue
            if secret.reference and secret.reference[0] == "env" and not EXTERNAL_ID.fullmatch(value):
                yield (
                    f"{key}: {secret.text} holds {value!r}; expected {ALPHABET}. "
                    "Take the external id as the vendor shows it."
                )
