"""An account that CDK never bootstrapped: assets by ``lakewriter publish``, stacks by their templates' URLs alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from botocore.exceptions import EndpointConnectionError
from click.testing import CliRunner

from infra.application import add_stacks
from infra.settings import Settings, read_defaults
from lakewriter.cli.main import main
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import LakeError
from lakewriter.operate import publishing
from lakewriter.operate.publishing import Asset
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Who, make_documents
from tests.deploy.lakes import STACKS, STAGE, demo, written
from tests.support.bundles import light_bundle
from tests.support.cloudformation import our_templates, resource
from tests.support.iam import ACCOUNT, Policies, Request, simulate
from tests.support.state_machine import JobRuns, client, step_functions

pytestmark = pytest.mark.synth

BUCKET = "acme-artifacts"
ARTIFACT = re.compile(r"s3://([^/\s]+)/([^\s,#]+)")
TERRAFORM = Path(__file__).parents[2] / "examples" / "terraform" / "main.tf"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-boundary"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = demo()
    content["deployment"]["artifact_bucket"] = BUCKET
    return written(tmp_path_factory.mktemp("lake") / "lake.yaml", content)


@pytest.fixture(scope="module")
def assembly(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assembly")
    bundle = light_bundle(folder / "bundle", "x86_64")
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(folder / "cdk.out"))
    add_stacks(app, Settings(load(lake, stage=STAGE), STAGE, bundle))
    return Path(app.synth().directory)


@pytest.fixture(scope="module")
def published(assembly: Path) -> Iterator[list[dict[str, Any]]]:
    """What two publications print, one after the other."""
    with step_functions(JobRuns()), our_templates():
        client("s3").create_bucket(Bucket=BUCKET)
        command = ["publish", str(assembly), "--region", "us-east-1", "--json"]
        answers = [CliRunner().invoke(main, command) for _ in range(2)]
        assert [answer.exit_code for answer in answers] == [0, 0], answers[0].output
        yield [json.loads(answer.stdout) for answer in answers]


def test_templates_ask_for_no_bootstrap(assembly: Path) -> None:
    for stack in STACKS:
        template = json.loads((assembly / f"{stack}.template.json").read_text("utf-8"))
        assert ("Rules" in template, "BootstrapVersion" in json.dumps(template)) == (False, False)
        assert "cdk-hnb659fds" not in json.dumps(template)


def test_what_is_there_is_not_uploaded_again(published: list[dict[str, Any]]) -> None:
    first, second = published
    assert (first["present"], second["uploaded"], second["bytes"]) == (0, 0, 0)
    assert first["uploaded"] == second["present"] == len(client("s3").list_objects_v2(Bucket=BUCKET)["Contents"])
    assert sorted(first["templates"]) == sorted(STACKS)


def test_stacks_are_made_of_the_urls_and_find_their_artifacts(published: list[dict[str, Any]]) -> None:
    """As examples/terraform does, and ``aws cloudformation create-stack --template-url``."""
    for stack in STACKS:
        url = published[0]["templates"][stack]
        client("cloudformation").create_stack(StackName=stack, TemplateURL=url, Capabilities=["CAPABILITY_NAMED_IAM"])
    definition = json.loads(resource(STACKS[1], "LoadsStateMachine40117ABB").definition)
    driver = definition["States"]["RunJob"]["Parameters"]["JobDriver"]["SparkSubmit"]
    found = ARTIFACT.findall(f"{driver['EntryPoint']} {driver['SparkSubmitParameters']}")
    sizes = [client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] for bucket, key in found]
    assert ({bucket for bucket, _ in found}, len(sizes), min(sizes) > 0) == ({BUCKET}, 4, True)


def test_terraform_asks_for_what_is_printed(published: list[dict[str, Any]]) -> None:
    text = TERRAFORM.read_text("utf-8").replace("${var.name}", "lakewriter-flights-prod")
    assert sorted(re.findall(r'templates\["([^"]+)"\]', text)) == sorted(published[0]["templates"])
    assert sorted(re.findall(r'^  name +=+ "([^"]+)"', text, re.M)) == sorted(STACKS)


def test_folder_without_an_assembly(tmp_path: Path) -> None:
    with step_functions(JobRuns()):
        answer = CliRunner().invoke(main, ["publish", str(tmp_path), "--region", "us-east-1"])
    assert (answer.exit_code, "expected an assembly, such as cdk.out" in answer.stderr) == (2, True)


ROLE = f"arn:aws:iam::{ACCOUNT}:role/lakewriter-deployment"
STACK = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/lakewriter-flights-prod-pipeline/a"
WITH = {"cloudformation:RoleArn": ROLE}
TO_CLOUDFORMATION = {"iam:PassedToService": "cloudformation.amazonaws.com"}
CALLS = [
    (Request("s3:PutObject", f"arn:aws:s3:::{BUCKET}/lakewriter-flights-prod/a.zip"), True),
    (Request("s3:PutObject", f"arn:aws:s3:::{BUCKET}/lakewriter-other-prod/a.zip"), False),
    (Request("cloudformation:CreateChangeSet", STACK, WITH), True),
    (Request("cloudformation:UpdateStack", STACK, WITH), True),
    # with the person's own rights, or with a role of others
    (Request("cloudformation:UpdateStack", STACK), False),
    (Request("cloudformation:UpdateStack", STACK, {"cloudformation:RoleArn": f"{ROLE}-2"}), False),
    (Request("cloudformation:UpdateStack", STACK.replace("flights", "other"), WITH), False),
    (Request("iam:PassRole", ROLE, TO_CLOUDFORMATION), True),
    (Request("iam:PassRole", ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}), False),
    (Request("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", TO_CLOUDFORMATION), False),
]


def test_deployer_without_a_bootstrap(lake: Path) -> None:
    whole = load(lake, stage=STAGE)
    deployment = whole.deployment.model_copy(update={"permissions_boundary_arn": BOUNDARY})
    arns = Arns("aws", ACCOUNT, "us-east-1", f"arn:aws:kms:us-east-1:{ACCOUNT}:key/a")
    documents = make_documents(whole.spec, deployment, Who.DEPLOYER, arns, stage=STAGE)
    found = simulate([call for call, _ in CALLS], Policies({"Bootstrap": documents["Bootstrap"]}))
    assert [decision.allowed for decision in found] == [allowed for _, allowed in CALLS]
    assert "cdk-hnb659fds" not in json.dumps(documents)


def test_bucket_that_does_not_answer(tmp_path):
    """A failed connection is told as such, and not taken for an object that is not there."""

    class Silent:
        def head_object(self, **_: str) -> None:
            raise EndpointConnectionError(endpoint_url="https://s3.example.com")

    asset = Asset(tmp_path / "a.zip", BUCKET, "a.zip", ACCOUNT)
    with pytest.raises(LakeError) as caught:
        publishing._exists(Silent(), asset, "us-east-1")
    assert "s3:GetObject on s3://acme-artifacts/a.zip" in str(caught.value)
