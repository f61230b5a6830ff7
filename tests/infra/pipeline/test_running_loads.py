"""A deployment while loads of the release before run: each call of the definition that they began with stays allowed.

An execution keeps its definition, and with it the application of its own release:
https://docs.aws.amazon.com/step-functions/latest/apireference/API_UpdateStateMachine.html. The role's policies are
those of the release that was deployed last. The simulator has each action's condition keys:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonemrserverless.html.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Who, make_documents
from tests.infra.pipeline.conftest import SettingsOf, Synthesised
from tests.infra.pipeline.executions import JOB_ROLE, resolved
from tests.infra.pipeline.templates import job_run, properties
from tests.infra.pipeline.test_releases import NEW, STACK
from tests.support.iam import ACCOUNT, Policies, Request, simulate

pytestmark = pytest.mark.synth

APPLICATIONS = f"arn:aws:emr-serverless:us-east-1:{ACCOUNT}:/applications"
OLD = f"{APPLICATIONS}/00old"
RUN = f"{OLD}/jobruns/00run"
PRESENT = f"{APPLICATIONS}/00present"
OURS = {"aws:ResourceTag/LakewriterStack": STACK}
OTHERS: dict[str, str | list[str]] = {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-dev-pipeline"}
REQUESTED: dict[str, str | list[str]] = {"aws:RequestTag/LakewriterStack": STACK, "aws:TagKeys": ["LakewriterStack"]}
RULE = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/StepFunctionsGetEventsForEMRServerlessJobRule"
OUTCOME = "arn:aws:s3:::acme-lake/data/production/_lakewriter/flights/runs/a.json"
TO_EMR = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
CHANGES = {"nothing": {}, "stream": {"spark": {"mode": "STREAMING"}}} | NEW
"""``deployment`` of the release that is deployed meanwhile."""


def list_calls(application: Mapping[str, Any], run: Mapping[str, Any]) -> list[Request]:
    """List an execution's calls by the tags of its application and job run."""
    return [
        Request("emr-serverless:StartJobRun", OLD, application),
        Request("emr-serverless:TagResource", RUN, REQUESTED),
        Request("emr-serverless:GetJobRun", RUN, run),
        Request("emr-serverless:CancelJobRun", RUN, run),
        Request("iam:PassRole", JOB_ROLE, TO_EMR),
        *(Request(f"events:{action}", RULE) for action in ("PutTargets", "PutRule", "DescribeRule")),
        Request("s3:GetObject", OUTCOME),
    ]


CALLS = list_calls(OURS, OURS)


def read_policies(template: Mapping[str, Any]) -> Policies:
    """Read the inline policies of the state machine's role, in a stack whose present application is ``PRESENT``."""
    answers = {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT, "AWS::Region": "us-east-1", "Arn": PRESENT}
    documents = {}
    for policy in properties(template, "IAM::Policy"):
        if policy["PolicyName"].startswith("LoadPermissions"):
            statements = policy["PolicyDocument"]["Statement"]
            documents[policy["PolicyName"]] = {
                "Version": "2012-10-17",
                "Statement": [resolve_whole(each, answers) for each in statements],
            }
    return Policies(documents)


def resolve_whole(value: Any, answers: Mapping[str, str]) -> Any:
    """Replace the references of a statement, those within lists too."""
    if isinstance(value, list):
        return [resolve_whole(each, answers) for each in value]
    if isinstance(value, dict) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
        return {key: resolve_whole(each, answers) for key, each in value.items()}
    return resolved(value, answers)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_calls_of_a_running_load_stay_allowed(synthesised: Synthesised, change: dict[str, Any]) -> None:
    decisions = simulate(CALLS, read_policies(synthesised(**change)))
    assert [(call.action, decision.result) for call, decision in zip(CALLS, decisions, strict=True)] == [
        (call.action, "Allowed") for call in CALLS
    ]
    assert {name for decision in decisions for name in decision.ignored} == set()


def test_applications_and_runs_of_others_stay_denied(synthesised: Synthesised) -> None:
    calls = [
        # Of another stage, and of other teams, which have no such tag.
        *(
            Request(f"emr-serverless:{action}", resource, tags)
            for tags in (OTHERS, {})
            for action, resource in (("GetJobRun", RUN), ("CancelJobRun", RUN), ("StartJobRun", OLD))
        ),
        # A tag of this stack would make a resource of others this stack's.
        Request("emr-serverless:TagResource", OLD, OTHERS | REQUESTED),
        Request("emr-serverless:TagResource", OLD, REQUESTED),
        Request("emr-serverless:TagResource", RUN, OURS | {"aws:RequestTag/LakewriterStack": "x"}),
        Request("emr-serverless:UntagResource", RUN, OURS),
        Request("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", TO_EMR),
    ]
    decisions = simulate(calls, read_policies(synthesised()))
    assert [decision.result for decision in decisions] == ["ImplicitlyDenied"] * len(calls)


def test_job_runs_have_the_tags_of_their_stack(synthesised: Synthesised) -> None:
    tags = job_run(synthesised(tags={"team": "flights", "LakewriterStack": "mine"}))["Parameters"]["Tags"]
    assert tags == {
        "team": "flights",
        "LakewriterPipeline": "flights",
        "LakewriterStage": "prod",
        "LakewriterStack": STACK,
    }


PLAIN: list[tuple[str, str, Mapping[str, str | list[str]], bool]] = [
    # action, resource, tags, whether it is allowed
    ("StartJobRun", PRESENT, OURS, True),
    ("GetJobRun", f"{PRESENT}/jobruns/00run", {}, True),
    ("CancelJobRun", f"{PRESENT}/jobruns/00run", {}, True),
    ("StartJobRun", OLD, {}, False),
    ("GetJobRun", RUN, {}, False),
    ("CancelJobRun", RUN, {}, False),
    ("CancelJobRun", RUN, OTHERS, False),
    ("TagResource", PRESENT, OURS | REQUESTED, False),
]


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
def test_runs_without_tags_are_followed_by_the_application_alone(
    synthesised: Synthesised, settings_of: SettingsOf, boundary: bool, mode: str
) -> None:
    deployment: dict[str, Any] = {
        "spark": {"plain_start": True, "mode": mode},
        "operators": [f"arn:aws:iam::{ACCOUNT}:role/OnCall"],
        "permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/lake-boundary",
    }
    template = synthesised(**deployment)
    policies = read_policies(template)
    if boundary:
        settings = settings_of(**deployment)
        arns = Arns("aws", ACCOUNT, "us-east-1")
        documents = make_documents(settings.spec, settings.deployment, Who.DEPLOYER, arns, stage=settings.stage)
        policies = replace(policies, boundary=documents["Boundary"])
    requests = [Request(f"emr-serverless:{action}", resource, tags) for action, resource, tags, _ in PLAIN]
    assert [decision.allowed for decision in simulate(requests, policies)] == [row[-1] for row in PLAIN]
    operators = [each for each in properties(template, "IAM::ManagedPolicy") if "Runs for" in each["Description"]]
    assert len(operators) == 1
    assert "FollowRunsOfApplication" in str(operators)
