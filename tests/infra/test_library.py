"""The stacks as constructs of an app of somebody's own: who makes a bucket that several pipelines share."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

from infra.library import LakewriterDestination, LakewriterPipeline
from infra.settings import read_defaults
from lakewriter.errors import SpecInvalidError
from tests.infra.destination.lakes import lake, of_type
from tests.infra.test_guests import guest
from tests.support.bundles import light_bundle

pytestmark = pytest.mark.synth


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """Two files of one bucket, and what both constructs are given besides."""
    stages: dict[str, Any] = {"stages": {"prod": {}}, "alarms": {"email": "data@example.org"}, "encryption": "SSE-KMS"}
    for name, content in (("first", lake(stages)), ("second", guest(deployment=stages))):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return {"stage": "prod", "bundle": light_bundle(tmp_path / "bundle", "x86_64")}


def test_two_that_make_one_bucket_are_refused(files: dict[str, Any], tmp_path: Path) -> None:
    app = cdk.App()
    LakewriterDestination(app, lake=tmp_path / "first.yaml", **files)
    with pytest.raises(SpecInvalidError) as caught:
        LakewriterDestination(app, lake=tmp_path / "second.yaml", **files)
    assert "the destinations of 'flights' and 'crm' both make the bucket 'acme-lake'" in str(caught.value)
    assert "as its 'host'" in str(caught.value.remedy)


def test_a_host_knows_its_guests(files: dict[str, Any], tmp_path: Path) -> None:
    app = cdk.App()
    first = LakewriterDestination(app, lake=tmp_path / "first.yaml", **files)
    with pytest.raises(SpecInvalidError) as caught:
        LakewriterDestination(app, lake=tmp_path / "second.yaml", host=first, **files)
    assert "makes the bucket 'acme-lake' without knowing of 'crm'" in str(caught.value)


def test_a_guest_of_another_destinations_bucket(files: dict[str, Any], tmp_path: Path) -> None:
    app = cdk.App()
    first = LakewriterDestination(app, lake=tmp_path / "first.yaml", guests=[tmp_path / "second.yaml"], **files)
    second = LakewriterDestination(app, lake=tmp_path / "second.yaml", host=first, **files)
    pipelines = [LakewriterPipeline(app, destination=each) for each in (first, second)]
    host, hosted, *loads = (Template.from_stack(each).to_json() for each in (first, second, *pipelines))
    assert (len(of_type(host, "KMS::Key")), of_type(hosted, "KMS::Key"), of_type(hosted, "S3::Bucket")) == (1, {}, {})
    assert "crm/production" in str(of_type(host, "S3::BucketPolicy"))
    # the topic of its alarms is under the host's key, whose policy admits it
    assert "lakewriter-crm-prod-pipeline-*" in str(of_type(host, "KMS::Key"))
    assert [of_type(each, "KMS::Key") for each in loads] == [{}, {}]


def test_the_review_of_a_stage_of_the_app(files: dict[str, Any], tmp_path: Path) -> None:
    """Beside the stage's templates: its warnings, and the findings that are acknowledged in the app's report."""
    app = cdk.App(context=read_defaults(), outdir=str(tmp_path / "cdk.out"), analytics_reporting=False)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stages = [cdk.Stage(app, name) for name in ("Prod", "Lab")]
    made = []
    for stage, name in zip(stages, ("first", "second"), strict=True):
        bucket = {} if name == "first" else {"s3_bucket_name": "acme-lab"}
        content = yaml.safe_load((tmp_path / f"{name}.yaml").read_text("utf-8"))
        content["destination"] |= bucket
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content), "utf-8")
        destination = LakewriterDestination(stage, lake=tmp_path / f"{name}.yaml", **files)
        LakewriterPipeline(stage, destination=destination)
        made.append(destination)
    folder = app.synth().directory
    for destination in made:
        destination.write_review(folder)
    texts = {
        path.parent.name: path.read_text("utf-8")
        for path in sorted((tmp_path / "cdk.out").glob("assembly-*/review.md"))
    }
    assert [(name, text.splitlines()[0]) for name, text in texts.items()] == [
        ("assembly-Lab", "# Lakewriter: pipeline crm, stage prod"),
        ("assembly-Prod", "# Lakewriter: pipeline flights, stage prod"),
    ]
    for text in texts.values():
        assert "> **Note:** Nobody will be called if loads of" in text
        assert "A vendor's form holds this key too" in text or "IAM5" in text
        assert "| Without a load |" in text
