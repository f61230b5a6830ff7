"""What is attached to the role against what the file needs, read from IAM as far as IAM lets it be."""

import json

import pytest

from lakewriter.aws import Clients
from lakewriter.doctor.attached_policies import PolicyProbes
from lakewriter.doctor.probe import Finding, run_probes
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from tests.doctor.pipeline import ROLE, spec
from tests.support.server import StrictAws

ARNS = Arns("aws", "123456789012", "us-east-1")
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
PIPELINE = spec(glue=True, role_arn=ROLE)


@pytest.fixture
def role(aws: StrictAws, bucket: str) -> str:
    """The role of the pipeline, without a policy."""
    aws.role(ROLE)
    aws.client("iam").create_role(RoleName="LakeWriter", AssumeRolePolicyDocument="{}")
    return "LakeWriter"


def attach(aws: StrictAws, role: str, found: dict[str, Document]) -> None:
    """The first document inline, the others as managed policies."""
    iam = aws.client("iam")
    for number, (name, document) in enumerate(found.items()):
        text = json.dumps(document)
        if number == 0:
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=text)
        else:
            arn = iam.create_policy(PolicyName=name, PolicyDocument=text)["Policy"]["Arn"]
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)


def probed(wanted: Spec, deployment: Deployment | None = None) -> Finding:
    probes = PolicyProbes(wanted, deployment or Deployment(), Clients(wanted.access), "role").list_probes()
    return next(run_probes(probes))


def needed(deployment: Deployment | None = None, arns: Arns = ARNS) -> dict[str, Document]:
    return make_documents(PIPELINE, deployment or Deployment(), Who.LOADER, arns)


def test_what_the_file_needs_is_attached(aws: StrictAws, role: str) -> None:
    attach(aws, role, needed())
    found = probed(PIPELINE)
    assert (found.status, found.message) == (
        "ok",
        "role 'LakeWriter' has what the file needs on its destination, and no more.",
    )


def test_key_that_a_stack_made(aws: StrictAws, role: str) -> None:
    deployment = Deployment(encryption="SSE-KMS")
    attach(aws, role, needed(deployment, Arns("aws", "123456789012", "us-east-1", KEY)))
    assert probed(PIPELINE, deployment).status == "ok"


def test_policies_of_an_older_file(aws: StrictAws, role: str) -> None:
    older = PIPELINE.model_copy(update={"tables": (PIPELINE.tables[0].model_copy(update={"name": "planes"}),)})
    attach(aws, role, make_documents(older, Deployment(), Who.LOADER, ARNS))
    found = probed(PIPELINE)
    table = "arn:aws:glue:us-east-1:123456789012:table/nyc_public"
    assert found.status == "warning"
    assert f"role 'LakeWriter' lacks glue:GetDatabase on {table}/flights, " in found.message
    assert f"and 3 more; it may do more than the file needs: glue:GetDatabase on {table}/planes, " in found.message
    assert "`lakewriter policy`" in found.remedy


def test_what_is_elsewhere_is_not_compared(aws: StrictAws, role: str) -> None:
    logs = [{"Effect": "Allow", "Action": "logs:PutLogEvents", "Resource": "*"}]
    artifacts = [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::artifacts/*"}]
    more = {"Version": "2012-10-17", "Statement": logs + artifacts}
    attach(aws, role, needed() | {"Run": more})
    assert probed(PIPELINE).status == "ok"


DENIED = [
    # denied action; words of the message
    ("iam:GetRole", "role 'LakeWriter': iam:GetRole on LakeWriter was denied"),
    ("iam:GetPolicyVersion", "iam:GetPolicyVersion on arn:aws:iam::123456789012:policy/Glue"),
]


@pytest.mark.parametrize(("action", "words"), DENIED)
def test_iam_that_may_not_be_read(aws: StrictAws, role: str, action: str, words: str) -> None:
    attach(aws, role, needed())
    aws.deny(action)
    found = probed(PIPELINE)
    assert found.status == "skipped"
    assert words in found.message
    assert "iam:ListAttachedRolePolicies" in found.remedy


def test_role_of_another_account(aws: StrictAws, bucket: str) -> None:
    other = ROLE.replace("123456789012", "999999999999")
    aws.role(other)
    found = probed(spec(role_arn=other))
    assert (found.status, "NoSuchEntity" in found.message) == ("skipped", True)


UNNAMED = (
    "skipped",
    "the file names no role that writes: CloudFormation names the role that the stacks make.",
    "For a role of your own, set iam_role_arn or deployment.existing.job_role_arn; for the stacks' role, have "
    "CloudFormation detect the drift of the destination's stack.",
)


def test_credentials_of_no_role(aws: StrictAws, bucket: str) -> None:
    found = probed(spec())
    assert (found.status, found.message, found.remedy) == UNNAMED


def test_administrator_who_asks_is_not_the_job(aws: StrictAws, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "AWSReservedSSO_Administrator_0123456789abcdef"
    arn = f"arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/{name}"
    aws.role(arn)
    iam, sts = aws.client("iam"), aws.client("sts")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}", Path="/aws-reserved/sso.amazonaws.com/")
    everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}], "Version": "2012-10-17"}
    attach(aws, name, {"Administrator": everything})
    given = sts.assume_role(RoleArn=arn, RoleSessionName="ada")["Credentials"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", given["SessionToken"])
    found = probed(spec(glue=True))
    assert (found.status, found.message, found.remedy) == UNNAMED


def test_role_that_is_brought(aws: StrictAws, role: str) -> None:
    brought = Deployment.model_validate({"existing": {"job_role_arn": ROLE}})
    attach(aws, role, make_documents(spec(), brought, Who.JOB, ARNS))
    assert probed(spec(), brought).status == "ok"


def test_only_aws_has_such_policies(aws: StrictAws, bucket: str) -> None:
    wanted = spec(endpoint=aws.url)
    assert PolicyProbes(wanted, Deployment(), Clients(wanted.access), "identity").list_probes() == []
