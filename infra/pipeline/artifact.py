"""Upload what a load needs as CDK assets: the job, its dependencies and its lake.yaml."""

import tempfile
from pathlib import Path
from typing import Final

import yaml
from aws_cdk import Annotations, AssetHashType
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from infra.bundle.archive import write_archive
from infra.bundle.manifest import Dependencies, Manifest, read_manifest
from infra.bundle.release import describe_mismatch, describe_unknown_release
from infra.settings import Settings
from infra.synthesizer import make_artifact_prefix
from lakewriter.deployable.lake_file import find_unshippable
from lakewriter.dialects.lake_yaml import Lake
from lakewriter.errors import SpecInvalidError

MACHINES: Final = {"X86_64": "x86_64", "ARM64": "aarch64"}
"""Python's name of each architecture of EMR Serverless."""


class Artifacts(Construct):
    """The URIs for spark-submit; ``readable_arns`` are what the job's role has to read: the artifacts of all releases.

    A running execution keeps the definition that it began with, so its next attempt and its new executors read the
    artifacts of an earlier release.
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_UpdateStateMachine.html
    """

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_)
        problems = find_unshippable(settings.lake)
        if problems:
            raise SpecInvalidError("lake.yaml cannot go to S3 with the job:", problems=problems)
        self.manifest: Manifest = read_manifest(settings.bundle)
        spark = settings.deployment.spark
        if reason := describe_mismatch(spark.release, self.manifest):
            raise SpecInvalidError(reason)
        if warning := describe_unknown_release(spark.release, settings.spec.access.region or "", self.manifest):
            Annotations.of(self).add_warning_v2("lakewriter:release", warning)
        dependencies = find_dependencies(spark.architecture, self.manifest)
        entry = self._add_file("Entry", settings.bundle / self.manifest.entry.name)
        job = self._add_file("Job", settings.bundle / self.manifest.archive.name)
        packages = Asset(
            self,
            "Dependencies",
            path=str(settings.bundle / dependencies.name),
            # A hash before compression: the compressed bytes depend on the builder's zlib.
            asset_hash=dependencies.contents,
            asset_hash_type=AssetHashType.CUSTOM,
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "lake.zip")
            write_archive(path, {"lake.yaml": render_lake_file(settings.lake).encode()})
            lake = self._add_file("Lake", path)
        jars = settings.deployment.jars
        files = [Path(jar) for jar in jars if "://" not in jar]
        # Each is an object of its own: a driver in an archive is on no class path.
        published = {str(file): self._add_file(f"Jar{number}", file) for number, file in enumerate(files)}
        self.jar_uris: tuple[str, ...] = tuple(
            published[str(Path(jar))].s3_object_url if "://" not in jar else jar for jar in jars
        )
        self.entry_uri: str = entry.s3_object_url
        self.job_uri: str = job.s3_object_url
        self.dependencies_uri: str = packages.s3_object_url
        self.lake_uri: str = lake.s3_object_url
        # By their endings: the stack's template is under the same prefix, and is not the job's to read.
        self.readable_arns: tuple[str, ...] = tuple(
            entry.bucket.arn_for_objects(f"{make_artifact_prefix(settings)}*.{ending}")
            for ending in ("py", "zip", *(["jar"] if files else []))
        )

    def _add_file(self, id_: str, path: Path) -> Asset:
        return Asset(self, id_, path=str(path))


def render_lake_file(lake: Lake) -> str:
    """Render the file with its stage merged in and without ``deployment``; secrets stay references."""
    data = {key: value for key, value in lake.data.items() if key != "deployment"}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


def find_dependencies(architecture: str, manifest: Manifest) -> Dependencies:
    """Find the archive for an architecture; ``SPEC_INVALID`` if the bundle was built without it."""
    machine = MACHINES[architecture]
    if machine not in manifest.dependencies:
        built = ", ".join(sorted(manifest.dependencies)) or "none"
        raise SpecInvalidError(
            f"deployment.spark.architecture is {architecture!r}, and the bundle has dependencies for {built}.",
            remedy=f"Run scripts/bundle --architecture {machine}.",
        )
    return manifest.dependencies[machine]
