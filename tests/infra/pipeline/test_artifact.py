"""The assets of a load: where they lie, what is in them, and bundles that do not fit."""

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from infra.pipeline.artifact import Artifacts
from infra.settings import Settings
from infra.synthesizer import make_artifact_prefix
from lakewriter.errors import SpecInvalidError
from tests.infra.conftest import SettingsFor
from tests.infra.pipeline.conftest import LAKE, Synthesised
from tests.infra.pipeline.executions import definition_of, resolved
from tests.infra.pipeline.templates import statements
from tests.support.bundles import light_bundle

ASSETS = r"s3://cdk-hnb659fds-assets-123456789012-us-east-1/lakewriter-flights-prod/[0-9a-f]{64}\."


def assembled(folder: Path, settings: Settings) -> tuple[Artifacts, Path]:
    """The construct in a stack of its own, and the assembly."""
    app = cdk.App(outdir=str(folder))
    stack = cdk.Stack(
        app,
        "pipeline",
        env=cdk.Environment(account="123456789012", region="us-east-1"),
        synthesizer=cdk.DefaultStackSynthesizer(bucket_prefix=make_artifact_prefix(settings)),
    )
    artifacts = Artifacts(stack, "Artifacts", settings=settings)
    for name in ("entry", "job", "dependencies", "lake"):
        cdk.CfnOutput(stack, name, value=getattr(artifacts, f"{name}_uri"))
    cdk.CfnOutput(stack, "arns", value=cdk.Fn.join(" ", list(artifacts.readable_arns)))
    return artifacts, Path(app.synth().directory)


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory, settings_of: Callable[..., Settings]) -> Path:
    """Made with a stage and an account, which the job does not read."""
    settings = settings_of(account="123456789012", stages={"prod": {"limits": {"parallel_tables": 4}}})
    return assembled(tmp_path_factory.mktemp("assembly"), settings)[1]


def outputs(assembly: Path) -> dict[str, str]:
    """Text with the partition as in commercial regions."""
    template = json.loads((assembly / "pipeline.template.json").read_text())
    return {name: _resolved(each["Value"]) for name, each in template["Outputs"].items()}


def _resolved(value: Any) -> str:
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return {"AWS::Partition": "aws"}[value["Ref"]]
    separator, parts = value["Fn::Join"]
    return str(separator).join(map(_resolved, parts))


@pytest.mark.synth
def test_uris_are_objects_of_a_folder_of_the_bootstrap_bucket(assembly: Path) -> None:
    found = outputs(assembly)
    assert re.fullmatch(rf"{ASSETS}py", found["entry"])
    assert all(re.fullmatch(rf"{ASSETS}zip", found[name]) for name in ("job", "dependencies", "lake"))
    folder = "arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1/lakewriter-flights-prod"
    assert found["arns"].split() == [f"{folder}/*.py", f"{folder}/*.zip"]


@pytest.mark.synth
def test_lake_zip_holds_the_merged_file_without_its_deployment(assembly: Path) -> None:
    name = outputs(assembly)["lake"].rpartition("/")[2]
    with zipfile.ZipFile(assembly / f"asset.{name}") as archive:
        assert archive.namelist() == ["lake.yaml"]
        content = yaml.safe_load(archive.read("lake.yaml"))
    assert content == LAKE | {"limits": {"parallel_tables": 4}}


@pytest.mark.synth
def test_names_stay_the_same_from_another_folder(
    tmp_path: Path, assembly: Path, settings_of: Callable[..., Settings]
) -> None:
    settings = settings_of(account="123456789012", stages={"prod": {"limits": {"parallel_tables": 4}}})
    bundle = Path(shutil.copytree(settings.bundle, tmp_path / "bundle"))
    again = assembled(tmp_path / "again", Settings(settings.lake, settings.stage, bundle))[1]
    assert outputs(again) == outputs(assembly)


@pytest.mark.synth
def test_bundle_without_the_architecture_is_refused(tmp_path: Path, settings_for: SettingsFor) -> None:
    bundle = light_bundle(tmp_path, "x86_64")
    settings = settings_for(LAKE | {"deployment": {"spark": {"architecture": "ARM64"}}}, bundle=bundle)
    with pytest.raises(SpecInvalidError) as refused:
        Artifacts(cdk.Stack(), "Artifacts", settings=settings)
    assert refused.value.message == (
        "deployment.spark.architecture is 'ARM64', and the bundle has dependencies for x86_64."
    )
    assert refused.value.remedy == "Run scripts/bundle --architecture aarch64."


@pytest.mark.synth
def test_architecture_chooses_the_dependencies(tmp_path: Path, settings_for: SettingsFor) -> None:
    bundle = light_bundle(tmp_path / "bundle")
    names = set()
    for architecture in ("X86_64", "ARM64"):
        settings = settings_for(LAKE | {"deployment": {"spark": {"architecture": architecture}}}, bundle=bundle)
        names.add(outputs(assembled(tmp_path / architecture, settings)[1])["dependencies"])
    assert len(names) == 2


@pytest.mark.synth
@pytest.mark.parametrize(("release", "warnings"), [("emr-spark-8.1.0", 0), ("emr-spark-8.2.0", 1)])
def test_newer_release_is_annotated(
    tmp_path: Path, settings_of: Callable[..., Settings], release: str, warnings: int
) -> None:
    artifacts, _ = assembled(tmp_path, settings_of(spark={"release": release}))
    found = [each for each in artifacts.node.metadata if each.type == "aws:cdk:warning"]
    assert len(found) == warnings


JAR = "s3://acme-jars/drivers/mysql.jar"


@pytest.mark.synth
def test_jars_go_with_the_job(synthesised: Synthesised, tmp_path: Path) -> None:
    """A file beside lake.yaml as an object of its own, and those that are in S3 already."""
    driver = tmp_path / "postgresql.jar"
    driver.write_bytes(b"a jar")
    template = synthesised(
        jars=[str(driver), JAR],
        spark={"conf": {"spark.jars": "s3://acme-jars/other.jar"}},
    )
    published, *others = read_conf(template)["spark.jars"].split(",")
    assert re.fullmatch(ASSETS.replace("123456789012", re.escape("${AWS::AccountId}")) + "jar", published)
    assert others == [JAR, "s3://acme-jars/other.jar"]
    read = [
        resolved(each, {"AWS::Partition": "aws", "AWS::AccountId": "123456789012"})
        for each in statements(template)["ReadArtifacts"]["Resource"]
    ]
    assert [each.rpartition(".")[2] for each in read] == ["jar", "py", "zip"]
    assert "spark.jars" not in read_conf(synthesised())


def read_conf(template: Any) -> dict[str, str]:
    """Spark's properties of a load."""
    run = json.loads(definition_of(template))["States"]["RunJob"]["Parameters"]
    return dict(run["ConfigurationOverrides"]["ApplicationConfiguration"][0]["Properties"])
