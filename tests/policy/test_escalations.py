"""A deployer is no administrator: what each escalation would begin with is refused to CloudFormation's role.

Ways from https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html#access_policies_boundaries-delegate
and https://rhinosecuritylabs.com/aws/aws-privilege-escalation-methods-mitigation/: policies, boundaries, roles that are
passed on, functions, keys, tags, and what belongs to others.
"""

from typing import Any

import pytest

from infra.settings import ROOT
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns
from lakewriter.policy.deployer_statements import allow_key_administration
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.policy.statements import make_document
from lakewriter.spec.access import SecretText
from lakewriter.spec.trust import HostIdentity, Party, Trust
from tests.support.iam import ACCOUNT, Policies, Request, simulate

ARNS = Arns("aws", ACCOUNT, "us-east-1")
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-boundary"
EVERYTHING = {
    "permissions_boundary_arn": BOUNDARY,
    "destroy_data": True,
    "iam_user": Party(paths=("crm",)),
    "encryption": "SSE-KMS",
}
DEMO = load(ROOT / "examples" / "demo" / "lake.yaml", stage="prod")
EXECUTION_ROLE = (
    f"arn:aws:sts::{ACCOUNT}:assumed-role/cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-us-east-1/AWSCloudFormation"
)


def deployer(*names: str, **deployment: Any) -> dict[str, Document]:
    changed = DEMO.deployment.model_copy(update=EVERYTHING | deployment)
    documents = make_documents(DEMO.spec, changed, Who.DEPLOYER, ARNS, stage="prod")
    return {name: document for name, document in documents.items() if name.rstrip("23456789") in names}


def test_a_deployer_reads_the_parameters_of_all_external_ids() -> None:
    """CloudFormation reads them for each deployment, those that are about to go included."""
    moving = Trust(
        vendor="supaflow",
        external_id=SecretText("${ssm:/lake/id}"),
        earlier_external_ids=(SecretText("${ssm:/lake/id-2026}"), SecretText("acme-2025")),
    )
    documents = deployer("Execution", trust=(moving,)).values()
    [found] = [each["Resource"] for one in documents for each in one["Statement"] if each["Sid"] == "ReadParameters"]
    assert found[1:] == [regional("ssm", "parameter/lake/id"), regional("ssm", "parameter/lake/id-2026")]


HOST = f"arn:aws:iam::{ACCOUNT}:role/Host"
MACHINE = Trust(name="host", identity=HostIdentity(ec2=HOST), paths=("host",))
OF_STAGE = {"iam:PolicyARN": f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-destination-HostRoleS3-A"}
ON_HOST: list[tuple[str, str, dict[str, Any], bool]] = [
    # a machine's role that has the boundary gets the stage's policies, and nothing else is done with it
    ("iam:AttachRolePolicy", HOST, OF_STAGE | {"iam:PermissionsBoundary": BOUNDARY}, True),
    ("iam:DetachRolePolicy", HOST, OF_STAGE | {"iam:PermissionsBoundary": BOUNDARY}, True),
    ("iam:AttachRolePolicy", HOST, OF_STAGE, False),
    ("iam:AttachRolePolicy", f"{HOST}2", OF_STAGE | {"iam:PermissionsBoundary": BOUNDARY}, False),
    ("iam:AttachRolePolicy", HOST, {"iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess",
                                    "iam:PermissionsBoundary": BOUNDARY}, False),
    ("iam:PutRolePolicy", HOST, {"iam:PermissionsBoundary": BOUNDARY}, False),
    ("iam:UpdateAssumeRolePolicy", HOST, {}, False),
    ("iam:DeleteRole", HOST, {}, False),
]  # fmt: skip


def test_a_deployer_attaches_the_stages_policies_to_a_machines_role() -> None:
    requests = [Request(action, resource, context) for action, resource, context, _ in ON_HOST]
    decisions = simulate(requests, Policies(deployer("Execution", trust=(MACHINE,))))
    assert [decision.allowed for decision in decisions] == [row[-1] for row in ON_HOST]


ROLE = f"arn:aws:iam::{ACCOUNT}:role/lakewriter-flights-prod-destination-JobRole-A"
USER = ROLE.replace(":role/", ":user/")
POLICY = ROLE.replace(":role/", ":policy/")
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
BOUNDED: dict[str, Any] = {"iam:PermissionsBoundary": BOUNDARY}
OTHER_BOUNDARY: dict[str, Any] = {"iam:PermissionsBoundary": ADMINISTRATOR}
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
HERE: dict[str, Any] = {"aws:RequestedRegion": "us-east-1"}
THERE: dict[str, Any] = {"aws:RequestedRegion": "eu-west-1"}
OURS: dict[str, Any] = {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-prod-pipeline"}
THEIRS: dict[str, Any] = {"aws:ResourceTag/LakewriterStack": "lakewriter-shop-prod-pipeline"}
CLAIM: dict[str, Any] = {
    "aws:RequestTag/LakewriterStack": "lakewriter-flights-prod-pipeline",
    "aws:TagKeys": ["LakewriterStack"],
}


def regional(service: str, resource: str) -> str:
    return f"arn:aws:{service}:us-east-1:{ACCOUNT}:{resource}"


ESCALATIONS: list[tuple[str, str, dict[str, Any]]] = [
    # policies of its own roles
    ("iam:AttachRolePolicy", ROLE, BOUNDED | {"iam:PolicyARN": ADMINISTRATOR}),
    ("iam:AttachUserPolicy", USER, BOUNDED | {"iam:PolicyARN": ADMINISTRATOR}),
    ("iam:AttachRolePolicy", ROLE, {"iam:PolicyARN": POLICY}),
    ("iam:PutRolePolicy", ROLE, {}),
    ("iam:PutRolePolicy", ROLE, OTHER_BOUNDARY),
    ("iam:PutUserPolicy", USER, {}),
    ("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/Admins", {}),
    ("iam:SetDefaultPolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/Admins", {}),
    # boundaries
    ("iam:CreateRole", ROLE, {}),
    ("iam:CreateRole", ROLE, OTHER_BOUNDARY),
    ("iam:CreateUser", USER, {}),
    ("iam:DeleteRolePermissionsBoundary", ROLE, BOUNDED),
    ("iam:DeleteUserPermissionsBoundary", USER, BOUNDED),
    ("iam:PutRolePermissionsBoundary", ROLE, OTHER_BOUNDARY),
    ("iam:CreatePolicyVersion", BOUNDARY, {}),
    ("iam:DeletePolicy", BOUNDARY, {}),
    ("iam:SetDefaultPolicyVersion", BOUNDARY, {}),
    ("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/lakewriter-flights-prod-execution", {}),
    # identities of others
    ("iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", BOUNDED),
    ("iam:UpdateAssumeRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/Admin", {}),
    ("iam:CreateAccessKey", f"arn:aws:iam::{ACCOUNT}:user/admin", {}),
    ("iam:CreateLoginProfile", USER, {}),
    ("iam:AddUserToGroup", f"arn:aws:iam::{ACCOUNT}:group/Admins", {}),
    ("iam:CreateServiceLinkedRole", f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/x.amazonaws.com/X",
     {"iam:AWSServiceName": "x.amazonaws.com"}),
    # roles that are passed on
    ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", {"iam:PassedToService": "lambda.amazonaws.com"}),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "cloudformation.amazonaws.com"}),
    ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", {}),
    # functions, queues, logs, state machines, secrets, parameters of others
    ("lambda:UpdateFunctionCode", regional("lambda", "function:payments"), {}),
    ("sqs:DeleteQueue", regional("sqs", "payments"), {}),
    ("sns:SetTopicAttributes", regional("sns", "payments"), {}),
    ("logs:DeleteLogGroup", regional("logs", "log-group:payments"), {}),
    ("events:PutTargets", regional("events", "rule/payments"), {}),
    ("states:UpdateStateMachine", regional("states", "stateMachine:Payments"), OURS),
    ("states:UpdateStateMachine", regional("states", "stateMachine:LoadsStateMachine1-A"), THEIRS),
    ("states:TagResource", regional("states", "stateMachine:LoadsStateMachine1-A"), CLAIM | THEIRS),
    ("emr-serverless:DeleteApplication", regional("emr-serverless", "/applications/00a"), {}),
    ("emr-serverless:TagResource", regional("emr-serverless", "/applications/00a"), CLAIM | THEIRS),
    ("emr-serverless:CreateApplication", "*", {}),
    ("secretsmanager:GetSecretValue", regional("secretsmanager", "secret:payments-AbCdEf"), {}),
    ("secretsmanager:GetSecretValue", regional("secretsmanager", "secret:VendorUserKey-A-AbCdEf"), THEIRS),
    ("ssm:GetParameters", regional("ssm", "parameter/payments"), {}),
    ("glue:DeleteDatabase", regional("glue", "database/payments"), {}),
    ("glue:PutResourcePolicy", regional("glue", "catalog"), {}),
    # keys
    ("kms:PutKeyPolicy", KEY, HERE),
    ("kms:ScheduleKeyDeletion", KEY, HERE),
    ("kms:CreateGrant", KEY, HERE),
    ("kms:Decrypt", KEY, HERE),
    ("kms:CreateKey", "*", THERE),
    ("kms:TagResource", KEY, HERE | CLAIM),
    # data
    ("s3:GetObject", "arn:aws:s3:::acme-lake/data/production/x", {}),
    ("s3:PutObject", "arn:aws:s3:::acme-lake/data/production/x", {}),
    ("s3:PutBucketPolicy", "arn:aws:s3:::payments", {}),
    ("lakeformation:PutDataLakeSettings", "*", HERE),
]  # fmt: skip
"""Action, resource, and what the request carries."""


def test_at_least_forty_escalations_are_refused() -> None:
    requests = [Request(action, resource, context, EXECUTION_ROLE) for action, resource, context in ESCALATIONS]
    # Of keys, the policy that CDK gives each one: the account's IAM policies decide.
    root = {"Sid": "Account", "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:*", "Resource": "*"}  # fmt: skip
    own, of_key = deployer("Execution"), make_document([root])
    policies = [Policies(own, of_key if resource == KEY else None) for _, resource, _ in ESCALATIONS]
    decisions = simulate(requests, policies)
    assert [row for row, decision in zip(ESCALATIONS, decisions, strict=True) if decision.allowed] == []
    assert len(ESCALATIONS) >= 40


NEEDED: list[tuple[str, str, dict[str, Any]]] = [
    ("iam:CreateRole", ROLE, BOUNDED),
    ("iam:PutRolePolicy", ROLE, BOUNDED),
    ("iam:AttachRolePolicy", ROLE, BOUNDED | {"iam:PolicyARN": POLICY}),
    ("iam:AttachRolePolicy", ROLE,
     BOUNDED | {"iam:PolicyARN": "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"}),
    ("iam:CreatePolicy", POLICY, {}),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "events.amazonaws.com"}),
    ("iam:CreateServiceLinkedRole",
     f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/ops.emr-serverless.amazonaws.com/AWSServiceRoleForAmazonEMRServerless",
     {"iam:AWSServiceName": "ops.emr-serverless.amazonaws.com"}),
    ("events:PutRule", regional("events", "rule/lakewriter-flights-p-ReleasesDeployed-A"), {}),
    ("cloudformation:DescribeStacks", regional("cloudformation", "stack/lakewriter-flights-prod-destination/a"), {}),
    ("states:UpdateStateMachine", regional("states", "stateMachine:LoadsStateMachine1-A"), OURS),
    # What was made without the tag.
    ("states:TagResource", regional("states", "stateMachine:LoadsStateMachine1-A"), CLAIM),
    ("emr-serverless:CreateApplication", "*", CLAIM),
    ("kms:CreateKey", "*", HERE),
]  # fmt: skip


def test_what_a_deployment_needs_is_allowed() -> None:
    requests = [Request(action, resource, context, EXECUTION_ROLE) for action, resource, context in NEEDED]
    decisions = simulate(requests, Policies(deployer("Execution")))
    assert [row for row, decision in zip(NEEDED, decisions, strict=True) if not decision.allowed] == []


def test_the_keys_own_policy_lets_cloudformation_administer_it() -> None:
    """And nobody else: https://docs.aws.amazon.com/kms/latest/developerguide/policy-evaluation.html."""
    policy = make_document([allow_key_administration(DEMO.deployment, ARNS)])
    other = f"arn:aws:sts::{ACCOUNT}:assumed-role/Other/session"
    foreign = "arn:aws:sts::999999999999:assumed-role/cdk-hnb659fds-cfn-exec-role-999999999999-us-east-1/session"
    rows = [
        ("kms:PutKeyPolicy", EXECUTION_ROLE, ACCOUNT, True),
        ("kms:Decrypt", EXECUTION_ROLE, ACCOUNT, False),
        ("kms:PutKeyPolicy", other, ACCOUNT, False),
        ("kms:PutKeyPolicy", foreign, "999999999999", False),
    ]
    requests = [Request(action, KEY, {"kms:CallerAccount": caller}, by) for action, by, caller, _ in rows]
    decisions = simulate(requests, Policies(resource=policy))
    assert [decision.allowed for decision in decisions] == [row[-1] for row in rows]


ANYTHING: dict[str, Document] = {
    "Any": make_document([{"Sid": "Any", "Effect": "Allow", "Action": "*", "Resource": "*"}])
}
BEYOND: list[tuple[str, str, dict[str, Any]]] = [
    ("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/admin", {}),
    ("iam:PutRolePolicy", ROLE, BOUNDED),
    ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", {"iam:PassedToService": "emr-serverless.amazonaws.com"}),
    ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/Admin", {}),
    ("s3:GetObject", "arn:aws:s3:::payments/x", {}),
    ("s3:PutBucketPolicy", "arn:aws:s3:::payments", {}),
    ("glue:GetTable", regional("glue", "table/payments/x"), {}),
    ("glue:PutResourcePolicy", regional("glue", "catalog"), {}),
    ("kms:Decrypt", KEY, {}),
    ("secretsmanager:GetSecretValue", regional("secretsmanager", "secret:payments-AbCdEf"), {}),
    ("lambda:InvokeFunction", regional("lambda", "function:payments"), {}),
    ("states:StartExecution", regional("states", "stateMachine:Payments"), {}),
    ("emr-serverless:CancelJobRun", regional("emr-serverless", "/applications/00a/jobruns/00b"), THEIRS),
]
"""What a role of the stacks could not do if it were given every right."""


def test_boundary_is_the_most_of_every_role() -> None:
    (boundary,) = deployer("Boundary").values()
    requests = [Request(action, resource, context) for action, resource, context in BEYOND]
    decisions = simulate(requests, Policies(ANYTHING, boundary=boundary))
    assert [row for row, decision in zip(BEYOND, decisions, strict=True) if decision.allowed] == []
    own = [
        Request("s3:PutObject", "arn:aws:s3:::acme-lake/data/production/x"),
        Request("emr-serverless:StartJobRun", regional("emr-serverless", "/applications/00a"), OURS),
    ]
    assert [decision.allowed for decision in simulate(own, Policies(ANYTHING, boundary=boundary))] == [True, True]


def test_without_a_boundary_nothing_is_printed() -> None:
    with pytest.raises(SpecInvalidError) as caught:
        deployer("Execution", permissions_boundary_arn=None)
    assert str(caught.value).startswith(
        "SPEC_INVALID: deployment.permissions_boundary_arn: expected the ARN of a permissions boundary"
    )
    assert BOUNDARY in str(caught.value.remedy)
