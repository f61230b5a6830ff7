"""One deployment from nothing to nothing; every test looks at one moment of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.settings import ROOT
from tests.deploy.lakes import DESTINATION, STAGE, deployed, from_outputs
from tests.deploy.remains import Remains, remains
from tests.support.bundles import light_bundle
from tests.support.cdk import Cdk, cdk
from tests.support.cloudformation import unprotect
from tests.support.server import StrictAws


@dataclass(frozen=True)
class Deployment:
    """Two deployments of one assembly: what the CLI printed, and the outputs of both stacks."""

    cli: Cdk
    aws: StrictAws
    bundle: Path
    first: str
    again: str
    events: tuple[list[Any], list[Any]]
    """What CloudFormation told of both stacks after either."""
    outputs: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Load:
    """A load by ``python -m lakewriter run``, from a file that knows nothing but the outputs."""

    report: dict[str, Any]
    calls: list[tuple[str, str, int]]
    """``(action, resource, status)``."""
    keys: set[tuple[str, str]]
    """Each service, and the access key of a call to it."""
    objects: list[str]


@dataclass(frozen=True)
class Destruction:
    """Two attempts: as the stacks were deployed, and with the protection taken off."""

    refused: tuple[int, str]
    done: tuple[int, str]
    before: Remains
    after: Remains


@pytest.fixture(scope="module")
def deployment(aws_server: StrictAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The demo's production, from an account that CDK has never seen."""
    aws_server.reset()
    folder = tmp_path_factory.mktemp("deploy")
    bundle = light_bundle(folder / "bundle", "x86_64")
    with cdk(folder / "work" / "cdk.out") as cli:
        cli.synth(f"stage={STAGE}", f"lake={deployed(folder)}", f"bundle={bundle}")
        cli.bootstrap()
        first, outputs = cli.deploy()
        told = stack_events(aws_server, list(outputs))
        again, _ = cli.deploy()
        events = (told, stack_events(aws_server, list(outputs)))
        yield Deployment(cli, aws_server, bundle, first, again, events, outputs)


@pytest.fixture(scope="module")
def load(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Through the role and the external id that the stack gave out, each role trusting whom it was deployed with."""
    aws = deployment.aws
    trust_as_deployed(aws)
    lake = from_outputs(tmp_path_factory.mktemp("elsewhere"), deployment.outputs[DESTINATION])
    aws.history.clear()
    aws.calls.clear()
    report = run(lake, aws)
    keys = {(call.service, call.access_key) for call, _ in aws.history}
    return Load(report, list(aws.calls), keys, list(aws.objects("acme-lake")))


@pytest.fixture(scope="module")
def destruction(deployment: Deployment, load: Load) -> Destruction:
    before = remains(deployment.aws)
    refused = deployment.cli.destroy()
    unprotect(DESTINATION)
    done = deployment.cli.destroy()
    return Destruction(refused, done, before, remains(deployment.aws))


def stack_events(aws: StrictAws, stacks: list[str]) -> list[Any]:
    """Everything that happened to them so far."""
    client = aws.client("cloudformation")
    return [client.describe_stack_events(StackName=stack)["StackEvents"] for stack in stacks]


def trust_as_deployed(aws: StrictAws) -> None:
    """Let STS hold callers to the trust policies that CloudFormation has made."""
    ours = [role for role in aws.client("iam").list_roles()["Roles"] if role["RoleName"].startswith(DESTINATION)]
    for role in ours:
        for statement in role["AssumeRolePolicyDocument"]["Statement"]:
            principal = statement["Principal"].get("AWS")
            if principal:
                aws.role(role["Arn"], statement["Condition"]["StringEquals"]["sts:ExternalId"], principal)


def run(lake: Path, aws: StrictAws) -> dict[str, Any]:
    """Its report."""
    done = subprocess.run(
        [sys.executable, "-m", "lakewriter", "run", str(lake), "--job-id", "first", "--json"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        | {
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
