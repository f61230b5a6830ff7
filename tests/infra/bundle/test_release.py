"""Releases against a bundle for Python 3.11 and Spark 4.1; their versions are those of the EMR release guide."""

import pytest

from infra.bundle.manifest import Manifest, read_manifest
from infra.bundle.release import describe_mismatch, describe_unknown_release
from tests.support.bundles import light_bundle


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """What a bundle says of itself."""
    return read_manifest(light_bundle(tmp_path_factory.mktemp("bundle")))


@pytest.mark.parametrize(
    ("release", "has"),
    [
        ("emr-spark-8.1.0", None),
        ("emr-spark-8.1.3", None),
        ("emr-spark-8.2.0", None),
        ("emr-spark-8.10.0", None),
        ("emr-spark-8.0.0", "Spark 4.0 and Python 3.11 or 3.13"),
        ("emr-7.13.0", "Spark 3.5 and Python 3.9"),
        ("emr-6.15.0", "Spark 3.5 or older and Python 3.7"),
    ],
)
def test_known_release_without_the_needed_spark_is_refused(manifest: Manifest, release: str, has: str | None) -> None:
    expected = has and (
        f"deployment.spark.release '{release}' has {has}; the job needs Spark 4.1 and Python 3.11: emr-spark-8.1.*."
    )
    assert describe_mismatch(release, manifest) == expected


@pytest.mark.parametrize(("python", "fits"), [("3.11", True), ("3.12", False), ("3.13", True)])
def test_bundle_may_be_for_each_python_of_a_release(manifest: Manifest, python: str, fits: bool) -> None:
    other = manifest.model_copy(update={"python": python})
    assert (describe_mismatch("emr-spark-8.1.0", other) is None) is fits


@pytest.mark.parametrize(
    ("release", "region", "warned"),
    [
        ("emr-spark-8.1.0", "us-east-1", ""),
        ("emr-spark-8.2.0", "us-east-1", "Tests run with Spark 4.1.1, for emr-spark-8.1."),
        ("emr-spark-9.0.0", "us-east-1", "is newer than this version knows"),
        # "except Middle East (Bahrain) and Middle East (UAE)", of 8.0.0
        ("emr-spark-8.1.0", "me-south-1", "may not be offered in 'me-south-1'"),
        ("emr-spark-8.1.0", "me-central-1", "may not be offered in 'me-central-1'"),
        ("emr-spark-8.1.0", "eusc-de-east-1", "may not be offered in 'eusc-de-east-1'"),
        ("emr-spark-8.1.0", "us-iso-east-1", "may not be offered in 'us-iso-east-1'"),
        # one of later
        ("emr-spark-8.1.0", "eu-north-9", "may not be offered in 'eu-north-9'"),
        ("emr-spark-8.1.0", "us-gov-west-1", ""),
        ("emr-spark-8.1.0", "cn-north-1", ""),
    ],
)
def test_release_that_may_not_be_there_is_warned_of(manifest: Manifest, release: str, region: str, warned: str) -> None:
    warning = describe_unknown_release(release, region, manifest) or ""
    assert (bool(warning), warned in warning) == (bool(warned), True)
