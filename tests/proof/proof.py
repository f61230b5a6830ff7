"""The steps of a proof, from an account without the stacks to one without them again, by boto3 and the product."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import click
import yaml
from botocore.exceptions import ClientError
from click.testing import CliRunner

from infra.application import add_stacks
from infra.checks import require_deployable
from infra.settings import Settings, read_defaults
from lakewriter.cli.main import main
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import join_key
from tests.infra.claims import FIELDS, read_claims
from tests.proof.transcript import Transcript

DONE = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
CAPABILITIES = ["CAPABILITY_NAMED_IAM"]
_MOST_LOOKS = 30
"""How often logs are looked for: they arrive within minutes."""


UNPROVEN = {
    name: "set deployment.spark.plain_start" for row in read_claims(FIELDS) if row.is_unproven for name in row.names
}
"""Fields of a job run of which only one page says that Step Functions sends them, with what to do without them."""


def explain(reason: str) -> str:
    """Add to a failure what to do where an unproven claim about AWS turns out to be wrong."""
    refused = re.search(r"SCHEMA_VALIDATION_FAILED|not supported by Step Functions|ValidationException", reason)
    field_name = re.search(rf"\b({'|'.join(UNPROVEN)})\b", reason)
    if not refused or not field_name:
        return reason
    return (
        f"{reason} So Step Functions does not send {field_name[0]}: {UNPROVEN[field_name[0]]}, and see "
        "'Fields of emr-serverless:startJobRun.sync' in docs/aws-claims.md."
    )


class ProofError(Exception):
    """A step did not do what it is to prove."""


@dataclass
class Proof:
    """One proof. ``find_machine`` says which state machine is the stack's; an emulator has to be told of it first.

    ``lake`` is the content of a lake.yaml with ``deployment.artifact_bucket``, ``stage`` one that nobody uses, and
    ``role_arn`` that of the role that CloudFormation works with.
    """

    lake: dict[str, Any]
    stage: str
    bundle: Path
    folder: Path
    transcript: Transcript
    role_arn: str | None = None
    find_machine: Callable[[Mapping[str, str]], str] = lambda outputs: outputs["StateMachineArn"]
    poll_seconds: float = 10
    make_client: Callable[[Any], Any] = boto3.Session().client
    outputs: dict[str, str] = field(default_factory=dict)
    reads_logs: bool = False
    """On an emulator, whose loads run on this machine, no log arrives."""

    def run(self) -> None:
        """Run every step, and destroy what was made whatever became of them."""
        self._begin("check", self.check)
        try:
            # The claims that every load hangs on are answered first: by the state machine's making, and by one job run.
            self._begin("deploy", self.deploy)
            self._begin("canary", lambda: self.load("proof-canary", canary=True))
            if self.reads_logs:
                self._begin("logs", self.read_logs)
            self._begin("load", lambda: self.load("proof-load"))
            self._begin("deploy under a load", self.deploy_under_a_load)
            self._begin("undo", self.undo)
            self._begin("fields of streams", self.ask_fields_of_streams)
        finally:
            self._begin("destroy", self.destroy)

    def _begin(self, step: str, do: Callable[[], None]) -> None:
        self.transcript.step = step
        began = time.monotonic()
        do()
        click.echo(f"{step}: done in {time.monotonic() - began:.0f} s")

    @property
    def settings(self) -> Settings:
        """The file as it is now."""
        path = self.folder / "lake.yaml"
        path.write_text(yaml.safe_dump(self.lake, sort_keys=False), "utf-8")
        return Settings.load(path, stage=self.stage, bundle=self.bundle)

    def check(self) -> None:
        """Find account and artifact bucket, and refuse an account that has the stacks already."""
        self.transcript.account = self.make_client("sts").get_caller_identity()["Account"]
        settings = self.settings
        if settings.protected or not settings.deployment.artifact_bucket:
            raise ProofError(
                f"stage {self.stage!r}: expected protect: false and an artifact_bucket, of a stage to throw away"
            )
        require_deployable(settings)
        self.make_client("s3").head_bucket(Bucket=settings.deployment.artifact_bucket)
        there = [stack for stack in settings.stack_names if self._describe(stack)]
        if there:
            raise ProofError(
                f"{', '.join(there)} is there: expected an account without the stacks, which the proof destroys"
            )

    def deploy(self) -> None:
        """Synthesise, publish, and make or change both stacks by the URLs of their templates."""
        settings = self.settings
        folder = self.folder / f"cdk.out.{len(list(self.folder.glob('cdk.out.*')))}"
        app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(folder))
        add_stacks(app, settings)
        app.synth()
        published = self._call("publish", str(folder), "--region", settings.spec.access.region, "--json")
        cloudformation = self.make_client("cloudformation")
        for stack in settings.stack_names:
            call = cloudformation.update_stack if self._describe(stack) else cloudformation.create_stack
            role = {"RoleARN": self.role_arn} if self.role_arn else {}
            try:
                call(StackName=stack, TemplateURL=published["templates"][stack], Capabilities=CAPABILITIES, **role)
            except ClientError as error:
                if "No updates are to be performed" not in str(error):
                    raise
            status = self._follow(stack)
            if status not in DONE:
                raise ProofError(f"{stack}: {status}. {explain(self._find_failure(stack))}".rstrip())
            outputs = self._describe(stack).get("Outputs", [])
            self.outputs |= {each["OutputKey"]: each["OutputValue"] for each in outputs}

    def load(self, name: str, **given: Any) -> None:
        """Run one execution to its end."""
        execution = self._start(name, **given)
        self._finish(execution)

    def read_logs(self) -> None:
        """Find a line of the job's in its log group, with a right that operators have."""
        logs, group = self.make_client("logs"), self.outputs["JobLogGroup"]
        for _ in range(_MOST_LOOKS):
            if logs.filter_log_events(logGroupName=group, limit=1)["events"]:
                return
            time.sleep(self.poll_seconds)
        raise ProofError(
            f"{group}: no line of the canary's has arrived. See 'logs:CreateLogGroup' and EMR Serverless in "
            "tests/infra/aws_claims.csv, and the role's policy."
        )

    def deploy_under_a_load(self) -> None:
        """Deploy a change that makes a new application while a load runs, which goes on with the old one."""
        before = self.outputs["ApplicationId"]
        execution = self._start("proof-during")
        spark = self.lake["deployment"].setdefault("spark", {})
        spark["idle_stop_minutes"] = spark.get("idle_stop_minutes", 5) + 1
        self.deploy()
        if self.outputs["ApplicationId"] == before:
            raise ProofError("the change made no new application")
        self._finish(execution)
        runs = self.make_client("emr-serverless").list_job_runs(applicationId=before)["jobRuns"]
        if len(runs) < 3:
            raise ProofError(f"the load ran elsewhere: the application that it began with had {len(runs)} job runs")

    def undo(self) -> None:
        """Take the last load out of its tables again, and find the others whole."""
        lake = str(self.folder / "lake.yaml")
        self._call("undo", lake, "proof-during", "--reason", "a proof", "--stage", self.stage, "--json")
        self._call("verify", lake, "proof-load", "--stage", self.stage, "--json")

    def ask_fields_of_streams(self) -> None:
        """Deploy the file's loads as a stream, which nobody starts: Step Functions takes its fields, or names one.

        A field that it does not take is said, and stops nothing: loads that end send none of these.
        """
        as_it_is, access = self.lake, self.settings.spec.access
        folder = join_key(access.bucket, access.prefix, "_checkpoints")
        self.lake = {"checkpoint": f"s3://{folder}", **json.loads(json.dumps(as_it_is))}
        deployment = self.lake["deployment"]
        deployment.pop("schedule", None)
        deployment["spark"] = {**deployment.get("spark", {}), "mode": "STREAMING", "plain_start": False}
        try:
            require_deployable(self.settings)
            self.deploy()
        except SpecInvalidError as error:
            click.echo(f"fields of streams: not asked, for this file cannot be a stream. {error.message}")
        except ProofError as error:
            if not any(f"does not send {name}:" in str(error) for name in UNPROVEN):
                raise
            click.echo(f"fields of streams: {error}")
        finally:
            self.lake = as_it_is

    def destroy(self) -> None:
        """Empty the bucket that the proof made, and delete both stacks."""
        settings = self.settings
        bucket = settings.spec.access.bucket
        if self._describe(settings.stack_names[0]):
            self._empty(bucket)
        for stack in reversed(settings.stack_names):
            if not self._describe(stack):
                continue
            self.make_client("cloudformation").delete_stack(
                StackName=stack, **({"RoleARN": self.role_arn} if self.role_arn else {})
            )
            status = self._follow(stack)
            if status not in {"GONE", "DELETE_COMPLETE"}:
                raise ProofError(f"{stack}: {status}")

    def _empty(self, bucket: str) -> None:
        pages = self.make_client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
        for page in pages:
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            keys = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
            if keys:
                self.make_client("s3").delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})

    def _start(self, name: str, **given: Any) -> str:
        machine = self.find_machine(self.outputs)
        started = self.make_client("stepfunctions").start_execution(
            stateMachineArn=machine, name=name, input=json.dumps(given)
        )
        return str(started["executionArn"])

    def _finish(self, execution: str) -> None:
        states = self.make_client("stepfunctions")
        status = self._wait(lambda: states.describe_execution(executionArn=execution)["status"], "RUNNING")
        if status != "SUCCEEDED":
            ended = states.describe_execution(executionArn=execution)
            reason = f"{ended.get('error')}: {ended.get('cause')}"
            raise ProofError(f"{execution}: {status}, {explain(reason)}")

    def _describe(self, stack: str) -> dict[str, Any]:
        """Describe a stack; empty if there is none."""
        try:
            found = self.make_client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return {}
        return dict(found[0])

    def _find_failure(self, stack: str) -> str:
        """Find the first reason that CloudFormation gives for what failed, which the later ones follow from."""
        events = self.make_client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        failed = [each for each in reversed(events) if each["ResourceStatus"].endswith("_FAILED")]
        return next((each["ResourceStatusReason"] for each in failed if "ResourceStatusReason" in each), "")

    def _follow(self, stack: str) -> str:
        """Wait until CloudFormation has done with a stack, and return its status then."""
        return self._wait(lambda: str(self._describe(stack).get("StackStatus", "GONE")), "_IN_PROGRESS")

    def _wait(self, read: Callable[[], str], while_it_ends_with: str) -> str:
        while (state := read()).endswith(while_it_ends_with):
            time.sleep(self.poll_seconds)
        return state

    def _call(self, *arguments: str) -> dict[str, Any]:
        answer = CliRunner().invoke(main, list(arguments))
        if answer.exit_code:
            raise ProofError(f"lakewriter {' '.join(arguments[:2])}: exit code {answer.exit_code}: {answer.output}")
        return dict(json.loads(answer.stdout))
