"""An operator's policies, held to what the commands call; a deployer's are in ``test_escalations``."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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
BOUNDARY = "arn:aws:iam::123456789012:policy/lakewriter-flights-prod-boundary"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:LoadsStateMachine1A2B-1"
HANDOVER, WATCH = (
    MACHINE.replace("LoadsStateMachine1A2B-1", name) for name in ("ReleasesHandover1A2B-1", "SilenceWatch1A2B-1")
)
MACHINES = [MACHINE, HANDOVER, WATCH]
EXECUTION = MACHINE.replace(":stateMachine:", ":execution:") + ":load-1"
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
DEMO = load(ROOT / "examples" / "demo" / "lake.yaml", stage="prod")


PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
STACK = "lakewriter-flights-prod-pipeline"
OURS: dict[str, Any] = {"aws:ResourceTag/LakewriterStack": STACK}
APPLICATION = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00a"
HERE: dict[str, Any] = {"aws:RequestedRegion": "us-east-1"}
QUEUE = f"arn:aws:sqs:us-east-1:123456789012:{STACK}-DeadLetters-1A2B3C4D5E6F"
RECORD = f"arn:aws:s3:::{DEMO_BUCKET}/data/production/_lakewriter/flights/tables/a/state.json"
LOG = "arn:aws:logs:us-east-1:123456789012:log-group:"
CALLS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "cloudformation describe-stacks": [
        ("cloudformation:DescribeStacks", f"arn:aws:cloudformation:us-east-1:123456789012:stack/{STACK}/1", {})
    ],
    "stepfunctions list-executions": [("states:ListExecutions", MACHINE, {})],
    "stepfunctions describe-execution": [("states:DescribeExecution", EXECUTION, {})],
    "stepfunctions get-execution-history": [("states:GetExecutionHistory", EXECUTION, {})],
    "stepfunctions start-execution": [("states:StartExecution", MACHINE, {})],
    "stepfunctions stop-execution": [("states:StopExecution", EXECUTION, {})],
    "emr-serverless list-job-runs": [("emr-serverless:ListJobRuns", APPLICATION, OURS)],
    "emr-serverless get-job-run": [("emr-serverless:GetJobRun", f"{APPLICATION}/jobruns/00b", OURS)],
    "emr-serverless cancel-job-run": [("emr-serverless:CancelJobRun", f"{APPLICATION}/jobruns/00b", OURS)],
    "logs filter-log-events": [
        ("logs:FilterLogEvents", f"{LOG}{STACK}-JobLogs-1A2B3C", {}),
        ("logs:FilterLogEvents", f"{LOG}/aws/vendedlogs/states/lakewriter-flights-prod-1a2b", {}),
    ],
    "service-quotas get-service-quota": [
        (
            "servicequotas:GetServiceQuota",
            "arn:aws:servicequotas:us-east-1:123456789012:emr-serverless/L-D05C8A75",
            {},
        )
    ],
    "sqs get-queue-url": [("sqs:GetQueueUrl", QUEUE, {})],
    "sqs receive-message": [
        ("sqs:ReceiveMessage", QUEUE, {}),
        # The queue is under the bucket's key.
        ("kms:Decrypt", KEY, {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}),
    ],
    "sqs delete-message": [("sqs:DeleteMessage", QUEUE, {})],
    "scheduler get-schedule": [
        (
            "scheduler:GetSchedule",
            "arn:aws:scheduler:us-east-1:123456789012:schedule/lakewriter-flights-p-G/lakewriter-flights-p-S",
            {},
        )
    ],
    "cloudtrail lookup-events": [("cloudtrail:LookupEvents", "*", HERE)],
    "s3api list-object-versions": [
        (
            "s3:ListBucketVersions",
            f"arn:aws:s3:::{DEMO_BUCKET}",
            {"s3:prefix": RECORD.partition(f"{DEMO_BUCKET}/")[2]},
        )
    ],
    "s3api copy-object": [("s3:GetObjectVersion", RECORD, {}), ("s3:PutObject", RECORD, {})],
}
"""What each command of the page asks for, in the demo's stage: the pages of the services' actions, such as
https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsstepfunctions.html, and
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html."""
COMMANDS = {"abandon", "rebuild", "reset", "status", "verify"}
"""Of lakewriter's own that the page names: those of an operator, which are below."""
OF_OTHERS = {"adopt", "airbyte", "check", "docs", "queries", "run"}
"""Those of whoever may write, or that ask for no right."""


def find_commands() -> tuple[set[str], set[str]]:
    """What the page tells an operator to run: of AWS's command line, and of lakewriter's."""
    text = " ".join(PAGE.split())
    return (
        set(re.findall(r"(?:\$ |`)aws ([a-z0-9-]+ [a-z0-9-]+)", text)),
        set(re.findall(r"(?:\$ |`)lakewriter ([a-z]+)", text)),
    )


def test_operator_may_run_each_command_of_the_runbook() -> None:
    of_aws, own = find_commands()
    assert (of_aws, own) == (set(CALLS), COMMANDS | OF_OTHERS)
    asked = [call for calls in CALLS.values() for call in calls]
    requests = [Request(action, resource, context) for action, resource, context in asked]
    root = {"Sid": "Root", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
            "Action": "kms:*", "Resource": "*"}  # fmt: skip
    keyed = {"Version": "2012-10-17", "Statement": [root]}
    held = documents(Who.OPERATOR, encryption="SSE-KMS")
    decisions = simulate(requests, [Policies(held, keyed if on == KEY else None) for _, on, _ in asked])
    assert [call for call, decision in zip(asked, decisions, strict=True) if not decision.allowed] == []


def test_operator_may_call_nothing_of_a_stage_that_the_runbook_has_not() -> None:
    """Each action of the documents that are not about the destination is some command's."""
    called = {action for calls in CALLS.values() for action, *_ in calls}
    held = documents(Who.OPERATOR, encryption="SSE-KMS")
    allowed = {action for name in ("Loads", "Stage") for each in held[name]["Statement"] for action in each["Action"]}
    assert allowed - called == set()


def test_operator_reaches_no_other_stage() -> None:
    others: dict[str, Any] = {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-dev-pipeline"}
    asked = [
        ("emr-serverless:CancelJobRun", f"{APPLICATION}/jobruns/00b", others),
        ("emr-serverless:CancelJobRun", f"{APPLICATION}/jobruns/00b", {}),
        ("logs:FilterLogEvents", f"{LOG}lakewriter-flights-dev-pipeline-JobLogs-1", {}),
        ("logs:FilterLogEvents", f"{LOG}payments", {}),
        ("sqs:DeleteMessage", QUEUE.replace("-prod-", "-dev-"), {}),
        ("cloudformation:DescribeStacks", "arn:aws:cloudformation:us-east-1:123456789012:stack/payments/1", {}),
        ("s3:ListBucketVersions", f"arn:aws:s3:::{DEMO_BUCKET}", {"s3:prefix": "data/production/supaflow_nyc/"}),
        ("s3:DeleteObjectVersion", RECORD, {}),
    ]
    found = simulate([Request(action, on, context) for action, on, context in asked], Policies(documents(Who.OPERATOR)))
    assert [call for call, decision in zip(asked, found, strict=True) if decision.allowed] == []


def documents(who: Who, **changed: Any) -> dict[str, Document]:
    update = {"encryption": "SSE-S3", "permissions_boundary_arn": BOUNDARY} | changed
    deployment = DEMO.deployment.model_copy(update=update)
    arns = replace(ARNS, key=KEY) if deployment.encryption == "SSE-KMS" else ARNS
    return make_documents(DEMO.spec, deployment, who, arns, stage="prod", state_machines=MACHINES)


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
        # a check with the rights of the person who deploys
        ("glue:GetDataCatalogEncryptionSettings", False),
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
        # Where orphan files are deleted, which the role of loads does.
        ("glue:GetTables", False),
    }


LOADS = [
    ("states:StartExecution", MACHINE, True),
    ("states:ListExecutions", MACHINE, True),
    ("states:StopExecution", EXECUTION, True),
    ("states:DescribeExecution", EXECUTION, True),
    *(
        (action, machine, True)
        for machine in (HANDOVER, WATCH)
        for action in ("states:StartExecution", "states:ListExecutions")
    ),
    *(
        (action, f"{machine.replace(':stateMachine:', ':execution:')}:1a2b", True)
        for machine in (HANDOVER, WATCH)
        for action in ("states:DescribeExecution", "states:GetExecutionHistory")
    ),
    ("states:StartExecution", f"{HANDOVER}2", False),
    ("states:StartExecution", f"{MACHINE}2", False),
    ("states:StopExecution", EXECUTION.replace("1A2B-1", "1A2B-2"), False),
    ("states:DeleteStateMachine", MACHINE, False),
    ("iam:PassRole", "arn:aws:iam::123456789012:role/Job", False),
]


def test_operator_starts_and_stops_loads_of_the_stages_machines() -> None:
    """Within the boundary, too, which the deployer gives to every role of the stacks."""
    boundary = documents(Who.DEPLOYER, operators=("arn:aws:iam::123456789012:role/OnCall",))["Boundary"]
    requests = [Request(action, on) for action, on, _ in LOADS]
    for bound in (None, boundary):
        decisions = simulate(requests, Policies(documents(Who.OPERATOR), boundary=bound))
        assert [decision.allowed for decision in decisions] == [row[-1] for row in LOADS]


@pytest.mark.parametrize("who", [Who.OPERATOR, Who.DEPLOYER])
def test_fits_into_policies(who: Who) -> None:
    found = documents(who)
    assert max(len(json.dumps(document, separators=(",", ":"))) for document in found.values()) <= 6144
