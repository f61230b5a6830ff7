"""A transcript has no secret in it, and each call of a proof is one that its policies allow.

transcript.json is what ``scripts/prove`` writes on the emulator. ``scripts/nightly proof`` runs it again, and compares.
"""

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Who, make_documents
from tests.deploy.lakes import written
from tests.proof.proof import Proof, ProofError, explain
from tests.proof.prove import ARTIFACTS, EMULATED
from tests.proof.transcript import EXAMPLE, Transcript, compare, mask
from tests.support.bundles import light_bundle
from tests.support.iam import ACCOUNT, Policies, Request, simulate

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("transcript.json").read_text("utf-8"))
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-proof-dev-boundary"
MACHINE = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:loads"
STEPS = ["check", "deploy", "canary", "load", "deploy under a load", "undo", "fields of streams", "destroy"]


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("SecretAccessKey", "wJalr", "<secret>"),
        ("SessionToken", "FwoG", "<secret>"),
        ("AccessKeyId", "AKIA", "<secret>"),
        ("ExternalId", "acme", "<secret>"),
        ("SecretArn", "arn:aws:secretsmanager:a", "arn:aws:secretsmanager:a"),
        ("Body", b"rows", "<left out>"),
        ("Key", "data/a.parquet", "data/a.parquet"),
        ("Text", "x" * 400, "x" * 300 + " [...]"),
        ("Credentials", {"AccessKeyId": "AKIA", "Expiration": 1}, {"AccessKeyId": "<secret>", "Expiration": 1}),
    ],
)
def test_secrets_and_bodies_are_left_out(name: str, value: Any, masked: Any) -> None:
    assert mask({name: value}) == {name: masked}


def test_calls_are_noted_with_their_answers_and_errors(tmp_path: Path) -> None:
    transcript = Transcript()
    transcript.step = "check"
    with mock_aws(), transcript.record():
        s3 = boto3.client("s3", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        s3.create_bucket(Bucket="acme")
        for _ in range(3):
            with pytest.raises(s3.exceptions.ClientError):
                s3.head_object(Bucket="acme", Key="of-999999999999")
    transcript.account = "999999999999"
    transcript.write(tmp_path / "proof.json")
    text = (tmp_path / "proof.json").read_text("utf-8")
    calls = json.loads(text)["calls"]
    assert [(call["operation"], call["status"], call.get("times", 1)) for call in calls] == [
        ("CreateBucket", "OK", 1),
        ("HeadObject", "404", 3),
    ]
    assert ("999999999999" in text, f"of-{EXAMPLE}" in text) == (False, True)


def test_secrets_are_masked_wherever_they_stand(tmp_path: Path) -> None:
    """A key that one answer calls a secret is in the text of another call; others are secret by their looks."""
    transcript = Transcript()
    values = {
        "session": "AKIAIOSFODNN7EXAMPLE", "secret": "wJalrXUtnFEMI/K7MDENG", "external id": "acme-loads-90b3",
        "url": "https://a.s3.amazonaws.com/k?X-Amz-Signature=fe5f80f77d5fa3beca&X-Amz-Date=1",
        "proxy": "http://ann:pa55word@proxy:3128", "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.dozjgNryP4J3jVmN",
        "pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----", "by its name": "hunter2hunter2",
    }  # fmt: skip
    with mock_aws(), transcript.record():
        session = boto3.Session(values["session"], values["secret"], region_name="us-east-1")
        transcript.step = "check"
        ssm = session.client("ssm")
        ssm.put_parameter(Name="/a", Type="String", Value=json.dumps(values))
        sts = session.client("sts")
        role = f"arn:aws:iam::{ACCOUNT}:role/a"
        sts.assume_role(RoleArn=role, RoleSessionName="proof", ExternalId=values["external id"])
        made = session.client("secretsmanager")
        made.create_secret(Name="a", SecretString=values["by its name"])
        ssm.get_parameter(Name="/a")
    transcript.write(tmp_path / "proof.json")
    text = (tmp_path / "proof.json").read_text("utf-8")
    left = ["AKIA", "wJalr", "acme-loads", "fe5f80", "pa55word", "dozjgN", "MIIEvQ", "hunter2"]
    assert [secret for secret in left if secret in text] == []
    assert "X-Amz-Date=1" in text


def _call(operation: str, status: str = "OK") -> dict[str, Any]:
    return {"step": "load", "service": "s", "operation": operation, "status": status, "answer": {}}


def _describe(status: str) -> dict[str, Any]:
    return _call("DescribeExecution") | {"answer": {"status": status}}


RUN, ENDED, FAILED = (_describe(status) for status in ("RUNNING", "SUCCEEDED", "FAILED"))


@pytest.mark.parametrize(
    ("recorded", "replayed", "differences"),
    [
        ([_call("HeadObject", "404"), RUN, RUN, ENDED], [_call("HeadObject", "404"), ENDED], []),
        ([_call("PutObject"), _call("PutObject")], [_call("PutObject")], []),
        ([_call("PutObject")], [_call("PutObject", "AccessDenied")], [
            "-load: s:PutObject OK", "+load: s:PutObject AccessDenied",
        ]),
        ([ENDED], [FAILED], [
            "-load: s:DescribeExecution OK, SUCCEEDED", "+load: s:DescribeExecution OK, FAILED",
        ]),
        ([_call("PutObject"), ENDED], [ENDED], ["-load: s:PutObject OK"]),
    ],
)  # fmt: skip
def test_proofs_are_compared_call_by_call(recorded: Any, replayed: Any, differences: list[str]) -> None:
    assert compare(recorded, replayed) == differences


@pytest.mark.parametrize(
    ("reason", "advised"),
    [
        ("Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: The field \"Tags\" is not supported by Step "
         "Functions at /States/RunJob/Parameters'", "plain_start"),
        ("EMRServerless.ValidationException: unknown field Mode", "plain_start"),
        ("SCHEMA_VALIDATION_FAILED: The field \"DiskEncryptionConfiguration\" is not supported", "plain_start"),
        ("SCHEMA_VALIDATION_FAILED: The field \"Foo\" is not supported by Step Functions", None),
        ("AccessDenied: not allowed to tag. Tags", None),
    ],
)  # fmt: skip
def test_field_that_is_refused_is_explained(reason: str, advised: str | None) -> None:
    """By what the row of the field says."""
    advice = explain(reason).removeprefix(reason)
    assert advised in advice if advised else advice == ""


REFUSALS = [
    ("UPDATE_ROLLBACK_COMPLETE. So Step Functions does not send Mode: set deployment.spark.plain_start", True),
    ("UPDATE_ROLLBACK_COMPLETE. AccessDenied", False),
]


@pytest.mark.parametrize(("reason", "goes_on"), REFUSALS)
def test_a_field_of_streams_that_is_refused_stops_no_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, goes_on: bool
) -> None:
    asked = []

    class Refused(Proof):
        def deploy(self) -> None:
            asked.append(self.settings.deployment.spark.mode)
            raise ProofError(reason)

    content = json.loads(json.dumps(EMULATED))
    proof = Refused(content, "dev", light_bundle(tmp_path / "bundle"), tmp_path, Transcript())
    with nullcontext() if goes_on else pytest.raises(ProofError):
        proof.ask_fields_of_streams()
    assert (asked, proof.lake) == (["STREAMING"], content)
    assert ("fields of streams: " in capsys.readouterr().out) == goes_on


@pytest.mark.parametrize("arrived", [True, False])
def test_a_proof_in_an_account_looks_for_the_canarys_log(tmp_path: Path, arrived: bool) -> None:
    with mock_aws():
        logs = boto3.client("logs", "us-east-1")
        logs.create_log_group(logGroupName="job")
        logs.create_log_stream(logGroupName="job", logStreamName="driver")
        now = round(time.time() * 1000)
        if arrived:
            event = {"timestamp": now, "message": "done"}
            logs.put_log_events(logGroupName="job", logStreamName="driver", logEvents=[event])
        proof = Proof({}, "dev", tmp_path, tmp_path, Transcript(), outputs={"JobLogGroup": "job"}, poll_seconds=0)
        proof.make_client = lambda service: boto3.client(service, "us-east-1")
        if arrived:
            proof.read_logs()
            return
        with pytest.raises(ProofError) as caught:
            proof.read_logs()
    assert "job: no line of the canary's has arrived." in str(caught.value)


def test_recorded_proof_has_every_step() -> None:
    assert list(dict.fromkeys(call["step"] for call in RECORDED["calls"])) == STEPS


def ask(call: dict[str, Any]) -> Request | None:
    """What a recorded call asks IAM for; None for those of the account's owner and of the product itself."""
    given = call["parameters"]
    match call["service"], call["operation"]:
        case "s3", ("HeadObject" | "PutObject") as operation if given["Bucket"] == ARTIFACTS:
            action = "GetObject" if operation == "HeadObject" else operation
            return Request(f"s3:{action}", f"arn:aws:s3:::{ARTIFACTS}/{given['Key']}")
        case "s3", "HeadBucket":
            return Request("s3:ListBucket", f"arn:aws:s3:::{given['Bucket']}")
        case "cloudformation", operation:
            role = {"cloudformation:RoleArn": given["RoleARN"]} if "RoleARN" in given else {}
            arn = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/{given['StackName']}/a"
            return Request(f"cloudformation:{operation}", arn, role)
        case "stepfunctions", "StartExecution":
            return Request("states:StartExecution", given["stateMachineArn"])
        case "stepfunctions", "DescribeExecution":
            return Request("states:DescribeExecution", given["executionArn"])
    return None


def test_recorded_calls_are_allowed_to_who_deploys_and_who_operates(tmp_path: Path) -> None:
    content = json.loads(json.dumps(EMULATED))
    content["deployment"]["permissions_boundary_arn"] = BOUNDARY
    whole = load(written(tmp_path / "lake.yaml", content), stage="dev")
    arns = Arns("aws", ACCOUNT, "us-east-1")
    deployer = make_documents(whole.spec, whole.deployment, Who.DEPLOYER, arns, stage="dev")
    operator = make_documents(whole.spec, whole.deployment, Who.OPERATOR, arns, stage="dev", state_machines=[MACHINE])
    asked = [request for call in RECORDED["calls"] if (request := ask(call))]
    policies = Policies({"Bootstrap": deployer["Bootstrap"], **operator})
    found = simulate(asked, policies)
    refused = {
        (request.action, request.resource) for request, each in zip(asked, found, strict=True) if not each.allowed
    }
    assert refused == set()
    assert {request.action for request in asked} == {
        "s3:GetObject", "s3:PutObject", "s3:ListBucket", "cloudformation:DescribeStacks", "cloudformation:CreateStack",
        "cloudformation:UpdateStack", "cloudformation:DeleteStack", "states:StartExecution", "states:DescribeExecution",
    }  # fmt: skip
