"""What a load needs on S3: the job, its dependencies and its lake.yaml, as assets named after their contents."""

import tempfile
from pathlib import Path
from typing import Final

from aws_cdk import Annotations, AssetHashType
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from infra.bundle.archive import write_archive
from infra.bundle.manifest import Dependencies, Manifest, read_manifest
from infra.bundle.release import refused, unproven
from infra.pipeline.lake_file import shippable, shipped
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError

MACHINES: Final = {"X86_64": "x86_64", "ARM64": "aarch64"}
"""What EMR Serverless calls an architecture, and what Python calls it."""


class Artifacts(Construct):
    """URIs as Spark takes them; ``object_arns`` are what the job's role has to read."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_)
        problems = shippable(settings.lake)
        if problems:
            raise SpecInvalidError("lake.yaml cannot go to S3 with the job:", problems=problems)
        self.manifest: Manifest = read_manifest(settings.bundle)
        spark = settings.deployment.spark
        if reason := refused(spark.release, self.manifest):
            raise SpecInvalidError(reason)
        if warning := unproven(spark.release, self.manifest):
            Annotations.of(self).add_warning_v2("lakewriter:release", warning)
        dependencies = dependencies_for(spark.architecture, self.manifest)
        entry = self._file("Entry", settings.bundle / self.manifest.entry.name)
        job = self._file("Job", settings.bundle / self.manifest.archive.name)
        packages = Asset(
            self,
            "Dependencies",
            path=str(settings.bundle / dependencies.name),
            # Not of the file's bytes, which depend on the zlib of whoever built it.
            asset_hash=dependencies.contents,
            asset_hash_type=AssetHashType.CUSTOM,
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "lake.zip")
            write_archive(path, {"lake.yaml": shipped(settings.lake).encode()})
            lake = self._file("Lake", path)
        self.entry_uri: str = entry.s3_object_url
        self.job_uri: str = job.s3_object_url
        self.dependencies_uri: str = packages.s3_object_url
        self.lake_uri: str = lake.s3_object_url
        self.object_arns: tuple[str, ...] = tuple(
            asset.bucket.arn_for_objects(asset.s3_object_key) for asset in (entry, job, packages, lake)
        )

    def _file(self, id_: str, path: Path) -> Asset:
        return Asset(self, id_, path=str(path))


def dependencies_for(architecture: str, manifest: Manifest) -> Dependencies:
    """The archive for an application's architecture; ``SPEC_INVALID`` where the bundle was built without it."""
    machine = MACHINES[architecture]
    if machine not in manifest.dependencies:
        built = ", ".join(sorted(manifest.dependencies)) or "none"
        raise SpecInvalidError(
            f"deployment.spark.architecture is {architecture!r}, and the bundle has dependencies for {built}.",
            remedy=f"Run scripts/bundle --architecture {machine}.",
        )
    return manifest.dependencies[machine]
