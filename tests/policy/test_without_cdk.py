"""The commands of docs/without-cdk.md, as they are printed, under the policies that the page has its reader print."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Who, make_documents
from tests.deploy.lakes import demo, written
from tests.docs.fences import list_fences
from tests.docs.shell import read_commands, split_commands
from tests.support.iam import ACCOUNT, Policies, Request, simulate

PAGE = "docs/without-cdk.md"
BUCKET = "acme-artifacts"
OF_DEPLOY = ("DescribeStacks", "CreateChangeSet", "DescribeChangeSet", "ExecuteChangeSet")
"""What ``aws cloudformation deploy`` calls of CloudFormation, beside uploading the template:
https://github.com/aws/aws-cli/blob/develop/awscli/customizations/cloudformation/deployer.py. tests/interop runs it."""


@dataclass(frozen=True)
class Command:
    """One command, with its words and options; ``operation`` is blank for one that is not of AWS's command line."""

    operation: str
    options: dict[str, str]
    words: list[str]


def list_commands() -> Iterator[Command]:
    """The commands of the page that call AWS."""
    for fence in list_fences():
        if fence.page != PAGE or fence.language != "console":
            continue
        for words in split_commands(read_commands(fence.code, fence.language)):
            options = {
                word: "" if following.startswith("--") else following
                for word, following in zip(words, [*words[1:], "--"], strict=True)
                if word.startswith("--")
            }
            if words[0] == "aws":
                yield Command(" ".join(words[1:3]), options, words)
            elif words[:2] == ["lakewriter", "publish"]:
                yield Command("", options, words)


def list_requests(command: Command) -> Iterator[Request]:
    """What the command asks for."""
    folder = "lakewriter-flights-prod"
    if not command.operation:
        for name in ("0a.py", "0b.zip", "lakewriter-flights-prod-pipeline-0c.json"):
            yield from ask_upload(BUCKET, f"{folder}/{name}")
        return
    stack = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/{command.options['--stack-name']}/1a2b"
    if command.operation == "cloudformation update-termination-protection":
        yield Request("cloudformation:UpdateTerminationProtection", stack)
        return
    assert command.operation == "cloudformation deploy"
    prefix = command.options.get("--s3-prefix")
    yield from ask_upload(command.options["--s3-bucket"], f"{f'{prefix}/' if prefix else ''}0d1e2f.template")
    role = command.options.get("--role-arn")
    for operation in OF_DEPLOY:
        given = {"cloudformation:RoleArn": role} if role and operation == "CreateChangeSet" else {}
        yield Request(f"cloudformation:{operation}", stack, given)
    if role:
        yield Request("iam:PassRole", role, {"iam:PassedToService": "cloudformation.amazonaws.com"})


def ask_upload(bucket: str, key: str) -> Iterator[Request]:
    """Ask for an object, and put it where it is not there; CloudFormation reads a template as its caller."""
    yield from (Request(f"s3:{action}Object", f"arn:aws:s3:::{bucket}/{key}") for action in ("Get", "Put"))


@pytest.fixture
def policies(tmp_path: Any) -> Policies:
    """What the page's person has: the document ``Bootstrap`` of the file with its bucket."""
    content = demo()
    content["deployment"] |= {
        "artifact_bucket": BUCKET,
        "permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-boundary",
    }
    lake = load(written(tmp_path / "lake.yaml", content), stage="prod")
    arns = Arns("aws", ACCOUNT, "us-east-1")
    documents = make_documents(lake.spec, lake.deployment, Who.DEPLOYER, arns, stage="prod")
    return Policies({"Bootstrap": documents["Bootstrap"]})


def test_deployer_may_run_each_command_of_the_page(policies: Policies) -> None:
    commands = list(list_commands())
    operations = [command.operation for command in commands]
    deploy, protect = "cloudformation deploy", "cloudformation update-termination-protection"
    assert operations == ["", deploy, deploy, protect]
    requests = [(command, request) for command in commands for request in list_requests(command)]
    decisions = simulate([request for _, request in requests], policies)
    refused = [
        (" ".join(command.words), request.action)
        for (command, request), decision in zip(requests, decisions, strict=True)
        if not decision.allowed
    ]
    assert refused == []


OTHERS = [
    # what neither the page nor the stage asks for
    ("s3:PutObject", f"arn:aws:s3:::{BUCKET}/0d1e2f.template", {}),
    ("s3:PutObject", f"arn:aws:s3:::{BUCKET}/lakewriter-flights-dev/0d1e2f.template", {}),
    ("cloudformation:UpdateTerminationProtection", "stack/lakewriter-flights-dev-destination/1a2b", {}),
    ("cloudformation:UpdateTerminationProtection", "stack/payments/1a2b", {}),
    ("cloudformation:CreateChangeSet", "stack/lakewriter-flights-prod-pipeline/1a2b", {}),
]


def test_deployer_reaches_nothing_of_others(policies: Policies) -> None:
    start = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:"
    requests = [
        Request(action, resource if resource.startswith("arn:") else f"{start}{resource}", context)
        for action, resource, context in OTHERS
    ]
    assert [decision.allowed for decision in simulate(requests, policies)] == [False] * len(OTHERS)
