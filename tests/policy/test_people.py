"""An operator's and a deployer's policies, held to what the commands and CloudFormation's handlers call."""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import cfnlint
import pytest

from infra.settings import ROOT
from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, make_documents
from tests.operate.test_rebuild import Table, table
from tests.support.iam import Policies, Request, simulate
from tests.support.product_calls import DEMO_BUCKET, Pattern
from tests.support.recording import Record, known_calls

__all__ = ["table"]

ARNS = Arns("aws", "123456789012", "us-east-1")
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:Loads-1"
DEMO = load(ROOT / "examples" / "demo" / "lake.yaml", stage="prod")


def documents(who: Who) -> dict[str, Document]:
    deployment = DEMO.deployment.model_copy(update={"encryption": "SSE-S3"})
    return make_documents(DEMO.spec, deployment, who, ARNS, stage="prod", state_machine=MACHINE)


def refused(calls: list[Pattern]) -> list[Pattern]:
    requests = [Request(action, resource, dict(context)) for action, resource, context in calls]
    found = simulate(requests, Policies(documents(Who.OPERATOR)))
    return [call for call, decision in zip(calls, found, strict=True) if not decision.allowed]


def run_everything(table: Table) -> Iterator[tuple[int, str]]:
    """Each command of an operator's, with something for it to do."""
    assert table.load("a") is None
    yield table.run("verify", "a")
    table.load("b", dies="settle")
    yield table.run("status")
    yield table.run("abandon", "b", "--reason", "r")
    yield table.run("reset", "events", "--no-cursor", "--reason", "r")
    yield table.run("rebuild", "events", "--reason", "r")


def is_of_loads(resource: str) -> bool:
    """Whether only loads write the object: data, and who writes a table or a folder."""
    shared = ("/_lakewriter/_writers/", "/_lakewriter/owners/")
    return "/_lakewriter/" not in resource or any(folder in resource for folder in shared)


def test_operator_may_do_what_the_commands_call(table: Table, aws: Any) -> None:
    record = Record()
    aws.observers.append(record.observe)
    try:
        ends = list(run_everything(table))
    finally:
        aws.observers.remove(record.observe)
    assert [verb for verb in ends if "AccessDenied" in verb[1]] == []
    # Loads are in it too, by which there is something to look at.
    of_loads = {"s3:PutObject"}
    calls = [call for call in record.seen if call.resource.startswith(f"arn:aws:s3:::{DEMO_BUCKET}")]
    beyond = [call for call in refused(calls) if not (call.action in of_loads and is_of_loads(call.resource))]
    assert beyond == []
    assert {call.action for call in calls} >= {"s3:ListBucket", "s3:GetObject", "s3:PutObject"}


def test_operator_reads_whatever_loads_read_and_writes_no_data() -> None:
    """Of all that the product calls at its destination: reads, records and withdrawals, and nothing else."""
    at_destination = (f"arn:aws:s3:::{DEMO_BUCKET}", "arn:aws:glue:")
    calls = [call for call in known_calls() if call.resource.startswith(at_destination)]
    denied = {(call.action, not is_of_loads(call.resource)) for call in refused(calls)}
    assert denied == {
        ("s3:PutObject", False),
        # HeadBucket of `lakewriter check`, and the whole catalog, for Iceberg alone
        ("s3:ListBucket", False),
        ("glue:GetCatalog", False),
        ("glue:CreateDatabase", False),
        ("glue:CreateTable", False),
        ("glue:UpdateTable", False),
        ("glue:BatchCreatePartition", False),
        # undo.drop_partitions is off
        ("glue:DeletePartition", False),
        # Loads set the optimizers of Iceberg tables, and `lakewriter check` looks at them as they do.
        ("glue:GetTableOptimizer", False),
        ("glue:CreateTableOptimizer", False),
        ("glue:UpdateTableOptimizer", False),
        ("glue:DeleteTableOptimizer", False),
    }


EXECUTION = MACHINE.replace(":stateMachine:", ":execution:") + ":load-1"
LOADS = [
    ("states:StartExecution", MACHINE, True),
    ("states:ListExecutions", MACHINE, True),
    ("states:StopExecution", EXECUTION, True),
    ("states:DescribeExecution", EXECUTION, True),
    ("states:StartExecution", f"{MACHINE}2", False),
    ("states:StopExecution", EXECUTION.replace("Loads-1", "Loads-2"), False),
    ("states:DeleteStateMachine", MACHINE, False),
    ("iam:PassRole", "arn:aws:iam::123456789012:role/Job", False),
]


def test_operator_starts_and_stops_loads_of_one_machine() -> None:
    found = simulate([Request(action, on) for action, on, _ in LOADS], Policies(documents(Who.OPERATOR)))
    assert [decision.allowed for decision in found] == [row[-1] for row in LOADS]


TYPES = (
    "S3::Bucket", "S3::BucketPolicy", "KMS::Key", "IAM::Role", "IAM::ManagedPolicy", "IAM::Policy", "IAM::User",
    "SecretsManager::Secret", "Glue::Database", "LakeFormation::PrincipalPermissions", "EMRServerless::Application",
    "Logs::LogGroup", "StepFunctions::StateMachine", "Scheduler::Schedule", "Scheduler::ScheduleGroup", "SQS::Queue",
    "SQS::QueuePolicy", "SNS::Topic", "SNS::TopicPolicy", "SNS::Subscription", "CloudWatch::Alarm",
    "CloudWatch::Dashboard", "Lambda::Function",
)  # fmt: skip
UNUSED = {
    "iam:*Group*": "No group is made.",
    "iam:*ServiceLinkedRole": "No service asks for one.",
    "iam:*LoginProfile": "The user has no password.",
    "glue:*Connection": "Federated databases alone have connections.",
    "kms:*Alias*": "The key has no alias.",
    "kms:UpdatePrimaryRegion": "The key is of one region.",
    "kms:RevokeGrant": "Services retire their own grants.",
    "kms:Encrypt": "CloudFormation encrypts nothing itself.",
    "kms:Decrypt": "The same.",
    "kms:GenerateDataKey": "The same.",
    "secretsmanager:*": "The secret is in one region, and its value is given.",
    "s3:*Object*": "Objects are not CloudFormation's.",
    "s3:REST.PUT.OBJECT": "The same.",
    "s3:ListBucket": "The same.",
    "s3:*BucketMetadata*": "The buckets have no metadata tables.",
    "s3:DeleteBucket*": "No such configuration is made, so none is deleted.",
    "lambda:*": "The function that empties buckets is in no VPC and has no layers.",
    "lakeformation:*": "Grants alone are made.",
    **dict.fromkeys(
        ("ec2:*", "ecr:*", "elasticfilesystem:*", "firehose:*", "s3files:*", "s3tables:*", "sso:*"),
        "Of options that no resource here has.",
    ),
}
"""What handlers list for options that the stacks do not use, with the reason."""


def read_handlers(kind: str) -> set[str]:
    """What a type's handlers call, by the schema of its own provider, as cfn-lint has it."""
    schemas = Path(str(cfnlint.__file__)).parent / "data" / "schemas"
    name = json.loads((schemas / "providers" / "us-east-1.json").read_text("utf-8"))[f"AWS::{kind}"]
    handlers = json.loads((schemas / "resources" / f"{name}.json").read_text("utf-8"))["handlers"]
    return {action for verb, each in handlers.items() if verb != "list" for action in each["permissions"]}


@pytest.mark.parametrize("kind", TYPES)
def test_deployer_may_do_what_cloudformations_handlers_list(kind: str) -> None:
    allowed = [
        action
        for name, document in documents(Who.DEPLOYER).items()
        if name.startswith("Execution")
        for statement in document["Statement"]
        for action in statement["Action"]
    ]
    called = read_handlers(kind)
    lacking = [action for action in called if not any(fnmatchcase(action, pattern) for pattern in allowed)]
    assert [action for action in lacking if not any(fnmatchcase(action, pattern) for pattern in UNUSED)] == []


ATTEMPTS = [
    # what CloudFormation may, and what it may not
    ("s3:CreateBucket", "arn:aws:s3:::acme-lake", {}, True),
    ("s3:PutBucketPolicy", "arn:aws:s3:::other", {}, False),
    ("s3:GetObject", "arn:aws:s3:::acme-lake/data/production/x", {}, False),
    ("s3:DeleteObject", "arn:aws:s3:::acme-lake/data/production/x", {}, False),
    ("iam:CreateRole", "arn:aws:iam::123456789012:role/lakewriter-flights-prod-destination-JobRole-A", {}, True),
    ("iam:CreateRole", "arn:aws:iam::123456789012:role/Admin", {}, False),
    ("iam:AttachRolePolicy", "arn:aws:iam::123456789012:role/Admin", {}, False),
    (
        "iam:PassRole", "arn:aws:iam::123456789012:role/lakewriter-flights-prod-destination-JobRole-A",
        {"iam:PassedToService": "ec2.amazonaws.com"}, False,
    ),
    ("glue:CreateDatabase", "arn:aws:glue:us-east-1:123456789012:database/supaflow_nyc_public", {}, True),
    ("glue:DeleteDatabase", "arn:aws:glue:us-east-1:123456789012:database/other", {}, False),
    ("emr-serverless:CreateApplication", "*", {"aws:RequestedRegion": "us-east-1"}, True),
    ("emr-serverless:CreateApplication", "*", {"aws:RequestedRegion": "eu-west-1"}, False),
    ("sts:AssumeRole", "arn:aws:iam::123456789012:role/cdk-hnb659fds-deploy-role-123456789012-us-east-1", {}, True),
    ("sts:AssumeRole", "arn:aws:iam::123456789012:role/Admin", {}, False),
]  # fmt: skip


def test_deployer_reaches_no_data_and_nobody_elses_roles() -> None:
    requests = [Request(action, on, context) for action, on, context, _ in ATTEMPTS]
    found = simulate(requests, Policies(documents(Who.DEPLOYER)))
    assert [decision.allowed for decision in found] == [row[-1] for row in ATTEMPTS]


@pytest.mark.parametrize("who", [Who.OPERATOR, Who.DEPLOYER])
def test_fits_into_policies(who: Who) -> None:
    found = documents(who)
    assert max(len(json.dumps(document, separators=(",", ":"))) for document in found.values()) <= 6144
