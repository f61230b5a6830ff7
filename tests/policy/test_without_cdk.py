"""The commands of docs/without-cdk.md, as they are printed, under the policies that the page has its reader print."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.policy.statements import make_document
from tests.deploy.lakes import demo, written
from tests.docs.fences import list_fences
from tests.docs.shell import read_commands, split_commands
from tests.support.iam import ACCOUNT, Policies, Request, simulate

PAGE = "docs/without-cdk.md"
BUCKET = "acme-artifacts"
BUCKETS_KEY, KEY = (f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{number}-2222-3333-4444-555555555555" for number in (1, 2))
ROOT: Document = make_document(
    [{"Sid": "Root", "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*",
      "Resource": "*"}]
)  # fmt: skip
"""The policy of a key that leaves it to the account's IAM."""
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


def print_documents(folder: Path, **deployment: Any) -> dict[str, Document]:
    """What the page has its reader print, of the file with its bucket."""
    content = demo()
    content["deployment"] |= {
        "artifact_bucket": BUCKET,
        "permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-boundary",
        **deployment,
    }
    lake = load(written(folder / "lake.yaml", content), stage="prod")
    arns = Arns("aws", ACCOUNT, "us-east-1", BUCKETS_KEY)
    return make_documents(lake.spec, lake.deployment, Who.DEPLOYER, arns, stage="prod")


@pytest.fixture
def policies(tmp_path: Path) -> Policies:
    """What the page's person has."""
    return Policies({"Bootstrap": print_documents(tmp_path)["Bootstrap"]})


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


OTHERS: list[tuple[str, str, dict[str, str]]] = [
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


THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
KEYED = [
    # the document, the action, by way of what, whether it is allowed with the key in the file
    ("Bootstrap", "kms:GenerateDataKey", THROUGH_S3, True),
    ("Bootstrap", "kms:Decrypt", THROUGH_S3, True),
    ("Bootstrap", "kms:Decrypt", {}, False),
    ("Bootstrap", "kms:PutKeyPolicy", {}, False),
    ("Execution", "kms:Decrypt", THROUGH_S3, True),
    ("Execution", "kms:GenerateDataKey", THROUGH_S3, False),
    ("Execution", "kms:Decrypt", {}, False),
    ("Boundary", "kms:Decrypt", THROUGH_S3, True),
]


@pytest.mark.parametrize("named", [True, False])
def test_artifacts_under_a_key_of_yours(tmp_path: Path, named: bool) -> None:
    given = {"artifact_kms_key_arn": KEY} if named else {}
    documents = print_documents(tmp_path, **given)
    requests = [Request(action, KEY, context) for _, action, context, _ in KEYED]
    held = [
        Policies({key: value for key, value in documents.items() if key.startswith(name)}, ROOT) for name, *_ in KEYED
    ]
    assert [decision.allowed for decision in simulate(requests, held)] == [row[-1] and named for row in KEYED]
