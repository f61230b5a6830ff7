"""The pipeline's stack beside a destination of its own: a bucket, perhaps a key, and a role."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from infra.bundle.build import build
from infra.pipeline.stack import PipelineStack
from infra.settings import Settings, read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.pipeline.deployments import ALL, HOURLY

LAKE: dict[str, Any] = {
    "pipeline": "flights",
    "destination": {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": "acme-lake",
        "bucket_region": "us-east-1",
        "s3_path_prefix": "data/production",
        "destination_prefix": "nyc",
    },
    "source_root": "s3://acme-landing",
    "tables": [{"table": "flights", "read": {"format": "parquet", "path": "flights"}}],
}


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job with no dependencies."""
    folder = tmp_path_factory.mktemp("bundle")
    build(folder, fetch=lambda *_: None)
    return folder


class Data(cdk.Stack):
    """Stands for the destination's stack."""

    def __init__(self, scope: cdk.App, id_: str, *, settings: Settings) -> None:
        region = None if settings.spec.access.endpoint else settings.spec.access.region
        super().__init__(scope, id_, env=cdk.Environment(region=region))
        brought = settings.deployment.existing.job_role_arn
        keyed = settings.deployment.encryption == "SSE-KMS"
        self.bucket = s3.Bucket.from_bucket_name(self, "Bucket", "acme-lake")
        self.key = kms.Key(self, "Key", enable_key_rotation=True) if keyed else None
        self.job_role: iam.IRole = (
            iam.Role.from_role_arn(self, "Job", brought, mutable=False)
            if brought
            else iam.Role(self, "Job", assumed_by=iam.ServicePrincipal("emr-serverless.amazonaws.com"))
        )


SettingsOf = Callable[..., Settings]
"""``settings_of(stage="prod", *, endpoint=None, **deployment)``."""

Synthesised = Callable[..., dict[str, Any]]
"""The same for the stack's template."""


def add_stack(app: cdk.App, settings: Settings) -> PipelineStack:
    """The stack under test, in an app of its own."""
    data = Data(app, "data", settings=settings)
    return PipelineStack(
        app, f"{settings.name}-pipeline", settings=settings, bucket=data.bucket, key=data.key, job_role=data.job_role
    )


@pytest.fixture(scope="session")
def settings_of(settings_for: SettingsFor, bundle: Path) -> SettingsOf:
    def make(stage: str = "prod", *, endpoint: str | None = None, **deployment: Any) -> Settings:
        destination = LAKE["destination"] | ({"custom_s3_endpoint": endpoint} if endpoint else {})
        lake = LAKE | {"destination": destination, "deployment": deployment}
        return settings_for(lake, stage=stage, bundle=bundle)

    return make


@pytest.fixture(scope="session")
def synthesised(settings_of: SettingsOf) -> Synthesised:

    def make(stage: str = "prod", **deployment: Any) -> dict[str, Any]:
        app = cdk.App(context=read_defaults(), analytics_reporting=False)
        template: dict[str, Any] = Template.from_stack(add_stack(app, settings_of(stage, **deployment))).to_json()
        return template

    return make


@pytest.fixture(scope="session")
def plain(synthesised: Synthesised) -> dict[str, Any]:
    """A schedule, and the defaults."""
    return synthesised(schedule=HOURLY)


@pytest.fixture(scope="session")
def full(synthesised: Synthesised) -> dict[str, Any]:
    """All that can be asked for."""
    return synthesised(**ALL)


@pytest.fixture(scope="session")
def streaming(synthesised: Synthesised) -> dict[str, Any]:
    """No schedule, in a stage that is thrown away, under a role that was brought."""
    return synthesised(
        "dev",
        spark={"mode": "STREAMING", "architecture": "ARM64", "attempts": 10},
        existing={"job_role_arn": "arn:aws:iam::123456789012:role/Spark"},
        alarms={"topic_arn": "arn:aws:sns:us-east-1:123456789012:lake"},
    )
