"""What synth accepts, AWS takes: values that it refuses are refused by their keys of lake.yaml, and others are not."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from infra.application import add_stacks, require_taken
from infra.checks import require_deployable
from infra.review.limits import read_limits
from infra.settings import Settings, read_defaults
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import LakeError
from tests.infra.checks.deployments import GOOD
from tests.infra.write_limits import make_limits
from tests.support.bundles import light_bundle

pytestmark = pytest.mark.synth

ACCOUNT, OTHER = "123456789012", "999999999999"
TOPIC = f"arn:aws:sns:eu-central-1:{ACCOUNT}:lake"
KEY = f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/0f1e2d3c"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/OnCall"
NETWORK = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
US = "eu-central-1", "us-east-1"
PODS = {"namespace": "airbyte", "service_account": "airbyte-admin"}
CLUSTER = f"arn:aws:eks:eu-west-1:{OTHER}:cluster/tools"
PROVIDER = f"arn:aws:iam::{OTHER}:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A1"


def host(identity: dict[str, Any]) -> dict[str, Any]:
    """A party that runs on a machine of one's own."""
    return {"account": ACCOUNT, "trust": [{"name": "host", "identity": identity, "paths": ["/own"]}]}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    # the key that is named; deployment
    ("alarms.email", {"alarms": {"email": "ops at example"}}),
    ("alarms.email", {"alarms": {"email": "Ops <ops@example.org>"}}),
    ("alarms.email", {"alarms": {"email": "ops@example"}}),
    ("alarms.email", {"alarms": {"email": "ops@example.org,on-call@example.org"}}),
    ("alarms.email", {"alarms": {"email": " ops@example.org"}}),
    ("alarms.email", {"alarms": {"email": "ops@@example.org"}}),
    ("alarms.email", {"alarms": {"email": "mailto:ops@example.org"}}),
    ("alarms.email", {"alarms": {"email": "ops.@example.org"}}),
    ("alarms.email", {"alarms": {"email": "ops@-example.org"}}),
    ("alarms.email", {"alarms": {"email": ""}}),
    ("alarms.email", {"alarms": {"email": f"{'o' * 320}@example.org"}}),
    ("alarms.topic_arn", {"alarms": {"topic_arn": TOPIC.replace(*US)}}),
    ("alarms.topic_arn", {"alarms": {"topic_arn": f"{TOPIC}.fifo"}}),
    ("alarms.topic_arn", {"alarms": {"topic_arn": "lake"}}),
    ("alarms.topic_arn", {"alarms": {"topic_arn": TOPIC.replace("arn:aws:", "arn:aws-cn:")}}),
    ("existing.kms_key_arn", {"existing": {"kms_key_arn": KEY.replace(*US)}, "encryption": "SSE-KMS"}),
    ("existing.kms_key_arn", {"existing": {"kms_key_arn": "alias/lake"}}),
    ("existing.kms_key_arn", {"existing": {"kms_key_arn": KEY.replace("key/0f1e2d3c", "alias/lake")}}),
    ("catalog_kms_key_arn", {"catalog_kms_key_arn": KEY.replace(*US)}),
    ("catalog_kms_key_arn", {"catalog_kms_key_arn": "alias/aws/glue"}),
    ("artifact_kms_key_arn", {"artifact_kms_key_arn": KEY.replace(*US)}),
    ("earlier_kms_key_arns.0", {"earlier_kms_key_arns": [KEY.replace(*US)]}),
    ("earlier_kms_key_arns.1", {"earlier_kms_key_arns": [KEY, KEY.replace(*US)]}),
    ("trust.0.identity.ec2", host({"ec2": ROLE.replace(ACCOUNT, OTHER)})),
    ("trust.0.identity.eks_pod_identity.cluster", host({"eks_pod_identity": PODS | {"cluster": CLUSTER}})),
    ("trust.0.identity.irsa.provider", host({"irsa": PODS | {"provider": PROVIDER}})),
    (
        "trust.0.identity.irsa.provider",
        host({"irsa": PODS | {"provider": PROVIDER.replace("arn:aws:", "arn:aws-cn:")}}),
    ),
    ("tags.aws:x", {"tags": {"aws:x": "a"}}),
    ("tags.AWS:cost", {"tags": {"AWS:cost": "a"}}),
    ("tags: 'Team', 'team'", {"tags": {"Team": "a", "team": "b"}}),
    ("tags: got 60", {"tags": {f"t{number}": "a" for number in range(60)}}),
    ("tags: got 48", {"tags": {f"t{number}": "a" for number in range(48)}}),
    ("tags.team", {"tags": {"team": "a&b"}}),
    ("tags.a&b", {"tags": {"a&b": "team"}}),
    ("tags.team", {"tags": {"team": ""}}),
    ("tags.team", {"tags": {"team": " "}}),
    ("tags.team", {"tags": {"team": "data "}}),
    ("tags.team", {"tags": {"team": "a" * 257}}),
    (f"tags.{'k' * 129}", {"tags": {"k" * 129: "a"}}),
    ("tags.team", {"tags": {"team": "données"}}),
    ("tags.équipe", {"tags": {"équipe": "data"}}),
    ("tags.team", {"tags": {"team": "data;crm"}}),
    ("tags.team", {"tags": {"team": "a,b"}}),
    ("role_path", {"role_path": f"/{'a' * 298}/"}),
    ("role_path", {"role_path": f"/{'a' * 161}/"}),
    ("role_path", {"role_path": "teams/data/"}),
    ("role_path", {"role_path": "/teams data/"}),
    ("network.subnet_ids.0", {"network": NETWORK | {"subnet_ids": ["private-a"]}}),
    ("network.subnet_ids.0", {"network": NETWORK | {"subnet_ids": ["subnet-XYZ"]}}),
    ("network.subnet_ids.1", {"network": NETWORK | {"subnet_ids": ["subnet-0a1b2c3d", "subnet-0a1b2c3"]}}),
    ("network.subnet_ids", {"network": NETWORK | {"subnet_ids": [f"subnet-{number:08x}" for number in range(17)]}}),
    ("network.security_group_ids.0", {"network": NETWORK | {"security_group_ids": ["default"]}}),
    ("network.security_group_ids.0", {"network": NETWORK | {"security_group_ids": ["sg-0A1B2C3D"]}}),
    ("network.security_group_ids", {"network": NETWORK | {"security_group_ids": [f"sg-{n:08x}" for n in range(6)]}}),
    ("operators.0", {"account": ACCOUNT, "operators": [ROLE.replace(ACCOUNT, OTHER)]}),
    ("operators.1", {"operators": [ROLE, ROLE.replace(ACCOUNT, OTHER)]}),
    ("operators.0", {"operators": [f"arn:aws:iam::{ACCOUNT}:root"]}),
    ("existing.job_role_arn", {"account": ACCOUNT, "existing": {"job_role_arn": ROLE.replace(ACCOUNT, OTHER)}}),
    (
        "permissions_boundary_arn",
        {"account": ACCOUNT, "permissions_boundary_arn": f"arn:aws:iam::{OTHER}:policy/Boundary"},
    ),
    ("account", {"account": "12345678901"}),
]
TAKEN: list[dict[str, Any]] = [
    {"alarms": {"email": "ops+lake@data.example.org"}, "tags": {f"t{number}": "a" for number in range(47)}},
    {"alarms": {"topic_arn": TOPIC}, "tags": {"cost:centre": "a/b c=1+2@x_-."}},
    {"alarms": {"topic_arn": TOPIC.replace(ACCOUNT, OTHER)}, "role_path": f"/{'a' * 160}/"},
    {"existing": {"kms_key_arn": KEY}, "encryption": "SSE-KMS", "account": ACCOUNT, "operators": [ROLE]},
    {"network": {"subnet_ids": ["subnet-0a1b2c3d4e5f60718"], "security_group_ids": ["sg-0a1b2c3d"]}},
    {"permissions_boundary_arn": "arn:aws:iam::aws:policy/PowerUserAccess", "account": ACCOUNT},
    host({"ec2": f"arn:aws:iam::{ACCOUNT}:role/tools/Host"}),
    host({"eks_pod_identity": PODS | {"cluster": CLUSTER.replace(OTHER, ACCOUNT)}}),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return light_bundle(tmp_path_factory.mktemp("bundle"), "x86_64")


@pytest.fixture
def list_problems(tmp_path: Path, bundle: Path) -> Callable[[dict[str, Any]], list[str]]:
    """What synth says of a deployment: while it reads the file, before it makes templates, and of these."""

    def make(deployment: dict[str, Any]) -> list[str]:
        path = tmp_path / "lake.yaml"
        path.write_text(yaml.safe_dump(GOOD | {"deployment": deployment}, allow_unicode=True), "utf-8")
        try:
            settings = Settings(load(path), "prod", bundle)
            require_deployable(settings)
            app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path / "cdk.out"))
            add_stacks(app, settings)
            # CDK's own validation says what is wrong of a template, without a key.
            with suppress(RuntimeError):
                app.synth()
            require_taken(tmp_path / "cdk.out", settings)
        except LakeError as error:
            return [error.message, *getattr(error, "problems", ())]
        return []

    return make


@pytest.mark.parametrize(("key", "deployment"), REFUSED, ids=[f"{key}-{n}" for n, (key, _) in enumerate(REFUSED)])
def test_refused_by_its_key(
    list_problems: Callable[[dict[str, Any]], list[str]], key: str, deployment: dict[str, Any]
) -> None:
    problems = list_problems(deployment)
    assert [problem for problem in problems if f"deployment.{key}" in problem], (key, problems)
    assert not any("CloudFormation-Validate" in problem for problem in problems)


@pytest.mark.parametrize("deployment", TAKEN, ids=lambda each: "-".join(each))
def test_taken(list_problems: Callable[[dict[str, Any]], list[str]], deployment: dict[str, Any]) -> None:
    assert list_problems(deployment) == []


def test_limits_are_those_of_the_models() -> None:
    assert json.loads(json.dumps(make_limits())) == read_limits()
