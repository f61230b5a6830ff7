"""Every command of AWS's command line that a page prints, under the policies of the person who is to run it."""

import re
from pathlib import Path
from typing import Any

import pytest

from infra.settings import ROOT
from lakewriter.policy.role_documents import Document
from tests.policy.test_people import CALLS
from tests.policy.test_without_cdk import print_documents
from tests.support.iam import ACCOUNT, Policies, Request, simulate

COMMAND = re.compile(r"(?:\$ |`|^)aws ([a-z0-9-]+ [a-z0-9-]+)", re.M)
STACK = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/lakewriter-flights-prod-destination/1a2b"
ROLE: dict[str, Any] = {"cloudformation:RoleArn": f"arn:aws:iam::{ACCOUNT}:role/lakewriter-deployment"}
EITHER, PUBLISHES = ("with a bootstrap", "without"), ("without",)
BY_DEPLOYER: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    # what the command asks for on the stage's stack, and the ways to deploy in which its person has it
    "cloudformation describe-stacks": ("DescribeStacks", {}, EITHER),
    "cloudformation describe-stack-events": ("DescribeStackEvents", {}, EITHER),
    "cloudformation describe-stack-resource": ("DescribeStackResource", {}, EITHER),
    # With a bootstrap, scripts/cdk destroy does it by the bootstrap's roles.
    "cloudformation delete-stack": ("DeleteStack", ROLE, PUBLISHES),
    "cloudformation update-termination-protection": ("UpdateTerminationProtection", {}, PUBLISHES),
}
ELSEWHERE = {
    "cloudformation deploy": "tests/policy/test_without_cdk.py has its calls.",
}
BY_OWNER = {
    "budgets create-budget": "A budget is of the whole account.",
    "ce update-cost-allocation-tags-status": "Tags for cost are of the whole account, or its organisation.",
    "cloudformation detect-stack-drift": "CloudFormation reads every resource of the stack with the caller's rights.",
    "eks create-pod-identity-association": "The cluster is its owner's.",
    "emr-serverless delete-application": "It is kept after its stack has gone; the next deployment deletes it.",
    "glue get-partitions": "Whoever moves tables reads both catalogs.",
    "glue update-table-optimizer": "Optimizers are of a table's owner, once no file asks for them.",
    "kms list-keys": "Keys are listed over the whole account.",
    "s3api create-bucket": "The bucket of artifacts is there before the policies that name it.",
    "s3api head-object": "Whoever restores a bucket from its replica reads both.",
}
"""Commands of who has further rights, each with the reason."""


def list_commands() -> dict[str, set[str]]:
    """By command, the pages that print it."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    named: dict[str, set[str]] = {}
    for page in pages:
        for command in COMMAND.findall(" ".join(re.split(r"(?<=\\)\n", page.read_text("utf-8")))):
            named.setdefault(command, set()).add(page.name)
    return named


def test_every_command_of_a_page_is_somebodys() -> None:
    of_operators = set(CALLS)
    told = of_operators | set(BY_DEPLOYER) | set(ELSEWHERE) | set(BY_OWNER)
    assert set(list_commands()) - told == set()
    assert (set(BY_DEPLOYER) | set(ELSEWHERE) | set(BY_OWNER)) - set(list_commands()) == set()


@pytest.fixture(params=EITHER)
def bootstrap(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Document]:
    """The document of who deploys, by the way to deploy."""
    given = {"artifact_bucket": None} if request.param == EITHER[0] else {}
    return request.param, print_documents(tmp_path, **given)["Bootstrap"]


def test_deployer_may_run_each_command(bootstrap: tuple[str, Document]) -> None:
    way, document = bootstrap
    rows = list(BY_DEPLOYER.values())
    requests = [Request(f"cloudformation:{action}", STACK, context) for action, context, _ in rows]
    decisions = simulate(requests, Policies({"Bootstrap": document}))
    allowed = [decision.allowed for decision in decisions]
    assert allowed == [way in ways for *_, ways in rows]
