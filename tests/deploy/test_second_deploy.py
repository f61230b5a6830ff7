"""A release that is deployed while a load of the release before it waits for its next attempt.

An execution keeps the definition that it began with:
https://docs.aws.amazon.com/step-functions/latest/apireference/API_UpdateStateMachine.html
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra.application import add_stacks
from infra.bundle.build import build
from infra.settings import Settings, read_defaults
from lakewriter.dialects.lake_yaml import load
from tests.deploy.lakes import PIPELINE, STACKS, STAGE, demo, written
from tests.infra.pipeline.executions import DONE, arguments, failed
from tests.support.call import ACCOUNT
from tests.support.cloudformation import REGION, our_templates, resource
from tests.support.iam import Decision, Policies, Request, simulate
from tests.support.state_machine import JobRuns, client, step_functions

pytestmark = pytest.mark.synth

OUTCOMES = "data/production/_lakewriter/flights/runs"
ARTIFACT = re.compile(r"s3://([^/\s]+)/([^\s,#]+)")


def synthesise(folder: Path, release: int) -> Path:
    """A release whose dependencies and lake.yaml are others than those of any other release."""

    def fetch(_requirements: Path, _architecture: str, to: Path) -> None:
        (to / "package.py").write_text(f"RELEASE = {release}\n", "utf-8")

    build(folder / "bundle", ["x86_64"], fetch=fetch)
    lake = written(folder / "lake.yaml", demo() | {"limits": {"parallel_tables": release}})
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(folder / "cdk.out"))
    add_stacks(app, Settings(load(lake, stage=STAGE), STAGE, folder / "bundle"))
    return Path(app.synth().directory)


def deploy(assembly: Path, *, first: bool) -> None:
    """What the CDK command line does with an assembly: publish its assets, then make or change its stacks."""
    for stack in STACKS:
        manifest = json.loads((assembly / f"{stack}.assets.json").read_text("utf-8"))
        for asset in manifest["files"].values():
            body = (assembly / asset["source"]["path"]).read_bytes()
            for to in asset["destinations"].values():
                bucket = to["bucketName"].replace("${AWS::AccountId}", ACCOUNT).replace("${AWS::Region}", REGION)
                client("s3").create_bucket(Bucket=bucket)
                client("s3").put_object(Bucket=bucket, Key=to["objectKey"], Body=body)
        body = (assembly / f"{stack}.template.json").read_text("utf-8")
        call = client("cloudformation").create_stack if first else client("cloudformation").update_stack
        call(StackName=stack, TemplateBody=body)


@dataclass
class Story:
    """An execution of two attempts: StartJobRun's parameters of each, and what S3 has for the second."""

    attempts: list[Mapping[str, Any]] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    next_release: list[str] = field(default_factory=list)
    status: str = ""


def list_artifacts(driver: Mapping[str, Any]) -> list[tuple[str, str]]:
    submit = driver["SparkSubmit"]
    return ARTIFACT.findall(f"{submit['EntryPoint']} {submit['SparkSubmitParameters']}")


def read_job_policies() -> dict[str, Any]:
    """The documents attached to the job's role as they are deployed now."""
    iam = client("iam")
    [role] = [each for each in iam.list_roles()["Roles"] if "-JobRole" in each["RoleName"]]
    documents = {}
    for policy in iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]:
        arn = policy["PolicyArn"]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]
        documents[policy["PolicyName"]] = found["Document"]
    return documents


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("releases")
    first, second = (synthesise(folder / str(number), number) for number in (1, 2))
    runs, story = JobRuns(), Story()

    def run_job(parameters: Mapping[str, Any]) -> str:
        story.attempts.append(parameters)
        done = len(story.attempts) == 2
        outcome = DONE if done else failed("TIMEOUT", transient=True)
        key = f"{OUTCOMES}/{arguments(parameters)[-1]}.json"
        client("s3").put_object(Bucket="acme-lake", Key=key, Body=json.dumps(outcome).encode())
        return "SUCCESS" if done else "FAILED"

    def deploy_meanwhile(seconds: int) -> None:
        story.waited.append(seconds)
        if story.attempts:
            deploy(second, first=False)

    with step_functions(runs), our_templates():
        client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="32", Type="String")
        deploy(first, first=True)
        runs.job, runs.meanwhile = run_job, deploy_meanwhile
        # CloudFormation's machine is in a part of moto that does not execute.
        machine = client("stepfunctions").create_state_machine(
            name="loads",
            definition=resource(PIPELINE, "LoadsStateMachine40117ABB").definition,
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/Loads",
        )
        execution = client("stepfunctions").start_execution(
            stateMachineArn=machine["stateMachineArn"], name="waiting", input="{}"
        )["executionArn"]
        while story.status in ("", "RUNNING"):
            story.status = client("stepfunctions").describe_execution(executionArn=execution)["status"]
        artifacts = list_artifacts(story.attempts[1]["JobDriver"])
        story.bodies = [client("s3").get_object(Bucket=bucket, Key=key)["Body"].read() for bucket, key in artifacts]
        requests = [Request("s3:GetObject", f"arn:aws:s3:::{bucket}/{key}") for bucket, key in artifacts]
        folder_of_all = f"{artifacts[0][0]}/{PIPELINE.removesuffix('-pipeline')}"
        others = [f"{folder_of_all}/template.json", f"{folder_of_all}-2/x.zip", f"{artifacts[0][0]}/x.zip"]
        requests += [Request("s3:GetObject", f"arn:aws:s3:::{each}") for each in others]
        story.decisions = simulate(requests, Policies(read_job_policies()))
        states = json.loads(resource(PIPELINE, "LoadsStateMachine40117ABB").definition)["States"]
        story.next_release = [key for _, key in list_artifacts(states["RunJob"]["Parameters"]["JobDriver"])]
        yield story


def test_retry_runs_the_release_that_its_execution_began_with(story: Story) -> None:
    assert (story.status, story.waited) == ("SUCCEEDED", [10, 60])
    began, retried = (list_artifacts(attempt["JobDriver"]) for attempt in story.attempts)
    assert began == retried
    # Entry point and job are the same in both releases, dependencies and lake.yaml are not.
    assert [key in story.next_release for _, key in began] == [True, True, False, False]


def test_artifacts_of_the_release_before_are_there(story: Story) -> None:
    assert [len(body) > 0 for body in story.bodies] == [True] * 4


def test_job_role_may_read_the_release_before_and_nothing_beside(story: Story) -> None:
    assert [decision.allowed for decision in story.decisions] == [True] * 4 + [False] * 3
