"""The demo's stacks as CloudFormation makes them of the synthesized templates: every policy, its values resolved."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
import pytest

from infra.application import add_stacks
from infra.settings import Settings, read_defaults
from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.statements import Document
from tests.deploy.lakes import STAGE, demo, deployed, written
from tests.support.bundles import light_bundle
from tests.support.cloudformation import find_resource, our_templates, resource
from tests.support.iam import Policies, Request
from tests.support.server import StrictAws

_HASH = re.compile(r"[0-9A-F]{8}(-[A-Za-z0-9]{12})?$|-[A-Za-z0-9]{12}$")
_UNDER_ROLE = re.compile(r"^Roles\w+RolePermissions")


@dataclass(frozen=True)
class Role:
    """One role: what is attached to it, by name, and who may take it."""

    arn: str
    documents: Mapping[str, Document]
    trust: Document

    def request(self, action: str, resource: str, context: Mapping[str, str]) -> Request:
        """A call by a session of it."""
        session = self.arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/session"
        return Request(action, resource, context, session)


@dataclass(frozen=True)
class Stacks:
    """All policies of one file; roles by their logical ids, those of the pipeline under names without a hash."""

    roles: Mapping[str, Role]
    bucket_policy: Document
    key_policy: Document
    names: Mapping[str, str]
    """ARNs by what they are of."""

    def policies(self, role: str, resource: str) -> Policies:
        """What decides on a call of the role's: its own policies, and those of bucket or key."""
        if resource.startswith("arn:aws:s3:::acme-lake"):
            return Policies(self.roles[role].documents, self.bucket_policy)
        return Policies(self.roles[role].documents, self.key_policy if ":kms:" in resource else None)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job with no dependencies to speak of."""
    return light_bundle(tmp_path_factory.mktemp("bundle"), "x86_64")


@pytest.fixture(scope="module")
def stacks(aws_server: StrictAws, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Stacks:
    """Production, where the job's role writes by itself, as does a party that runs loads elsewhere."""
    return _made(aws_server, bundle, deployed(tmp_path_factory.mktemp("lake")))


@pytest.fixture(scope="module")
def taking(aws_server: StrictAws, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Stacks:
    """A job that takes a role at its destination, and reads its external id and a password for its source."""
    content = demo()
    content["deployment"]["stages"][STAGE] = {"destination": {"external_id": "${ssm:/lake/external-id}"}}
    secret = "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:warehouse-AbCdEf}"
    content["tables"][1]["read"]["options"]["fs.s3a.proxy.password"] = secret
    content["source_root"] = "s3://acme-landing/flights"
    return _made(aws_server, bundle, written(tmp_path_factory.mktemp("lake") / "lake.yaml", content))


def _made(aws: StrictAws, bundle: Path, lake: Path) -> Stacks:
    """Only one file's stacks are there at a time."""
    app = cdk.App(context=read_defaults(), analytics_reporting=False)
    settings = Settings(load(lake, stage=STAGE), STAGE, bundle)
    add_stacks(app, settings)
    folder = Path(app.synth().directory)
    aws.reset()
    # What CDK's bootstrap leaves, and every template asks for.
    aws.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="32", Type="String")
    with our_templates():
        for stack in settings.stack_names:
            body = (folder / f"{stack}.template.json").read_text("utf-8")
            aws.client("cloudformation").create_stack(StackName=stack, TemplateBody=body)
        return _read(aws, *settings.stack_names)


def _read(aws: StrictAws, destination: str, pipeline: str) -> Stacks:
    roles = {}
    for role in aws.client("iam").list_roles()["Roles"]:
        name = named(role["RoleName"].removeprefix(f"{destination}-").removeprefix(f"{pipeline}-"))
        documents = dict(_documents(aws, role["RoleName"], destination, pipeline))
        roles[name] = Role(role["Arn"], documents, role["AssumeRolePolicyDocument"])
    keys = aws.client("kms").list_keys()["Keys"]
    machine = find_resource(pipeline, "LoadsStateMachine").arn
    execution = machine.replace(":stateMachine:", ":execution:")
    names = {
        "application": find_resource(pipeline, "Application").attributes["Arn"],
        "machine": machine,
        "execution": f"{execution}:nightly",
        "execution of another": f"{execution}0:nightly",
        "handover": find_resource(pipeline, "ReleasesHandover").arn,
        "dead letters": resource(pipeline, "DeadLetters").queue_arn,
    }
    return Stacks(
        roles,
        resource(destination, "BucketPolicy").properties["PolicyDocument"],
        json.loads(aws.client("kms").get_key_policy(KeyId=keys[0]["KeyId"], PolicyName="default")["Policy"])
        if keys
        else {},
        names | ({"key": keys[0]["KeyArn"]} if keys else {}),
    )


def _documents(aws: StrictAws, role: str, *stacks: str) -> Iterator[tuple[str, Document]]:
    """Inline and managed, under the names that they have within their role."""
    iam = aws.client("iam")
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        yield named(name), iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        version = iam.get_policy_version(PolicyArn=policy["PolicyArn"], VersionId="v1")["PolicyVersion"]
        name = policy["PolicyName"]
        for stack in stacks:
            name = name.removeprefix(f"{stack}-")
        yield named(name), version["Document"]


def named(name: str) -> str:
    """Without the hashes of CDK and the ends of CloudFormation, and without the role that a policy is under."""
    return _UNDER_ROLE.sub("", _HASH.sub("", name))
