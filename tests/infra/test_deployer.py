"""CloudFormation's role may make every resource of every example and of generated files, and the roles that it makes
stay within their boundary.

What CloudFormation's handlers call is in the schemas of the types' own providers, as cfn-lint has them:
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html#schema-properties-handlers
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cfnlint
import pytest
import yaml

from infra.application import add_stacks
from infra.settings import ROOT, Settings, read_defaults
from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, make_documents
from tests.infra.checks.test_examples import DEPLOYED, stages_of, text_of
from tests.infra.destination.test_table_bucket import lake as in_table_bucket
from tests.infra.generated import generate_file, generate_stream
from tests.infra.pipeline.executions import JOB_ROLE
from tests.infra.pipeline.test_running_loads import resolve_whole
from tests.support.bundles import light_bundle
from tests.support.iam import ACCOUNT, Policies, Request, simulate_known
from tests.support.sample import IS_NIGHTLY

pytestmark = pytest.mark.synth

REGION = "us-east-1"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/lake-boundary"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
EXAMPLES = DEPLOYED if IS_NIGHTLY else ()
GENERATED = range(60) if IS_NIGHTLY else (0, 26)
"""The first asks for everything, the other for e-mail with S3's own keys; scripts/nightly takes all, and every
example."""


@dataclass(frozen=True)
class Deployed:
    """One file with the templates of its two stacks."""

    settings: Settings
    templates: Mapping[str, Mapping[str, Any]]

    @property
    def documents(self) -> dict[str, Document]:
        region = self.settings.spec.access.region or REGION
        arns = Arns("aws", ACCOUNT, region, KEY)
        return make_documents(
            self.settings.spec, self.settings.deployment, Who.DEPLOYER, arns, stage=self.settings.stage
        )


def list_contents(
    examples: Iterable[str] = EXAMPLES, generated: Iterable[int] = GENERATED
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each example's folder, last stage and content, those of generated files, and of a stream; with a boundary, and
    under names that differ."""
    for number, name in enumerate(examples):
        content = yaml.safe_load(text_of(name))
        content["pipeline"] = f"{content['pipeline']}{number}"
        content["deployment"]["permissions_boundary_arn"] = BOUNDARY
        yield str(Path(name).parent), (stages_of(name) or ["prod"])[-1], content
    for number in generated:
        yield "examples", "dev", generate_file(number, BOUNDARY)
    yield "examples", "dev", generate_stream(BOUNDARY)
    network = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
    yield (
        "examples",
        "dev",
        in_table_bucket({"permissions_boundary_arn": BOUNDARY, "encryption": "SSE-KMS", "network": network}),
    )


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> list[Deployed]:
    """All in one synth, each beside the files that it names."""
    return synthesize(tmp_path_factory.mktemp("deployer"), list_contents())


def synthesize(folder: Path, contents: Iterable[tuple[str, str, dict[str, Any]]]) -> list[Deployed]:
    """Synthesise files, in one app."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    bundle = light_bundle(folder / "bundle")
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(folder / "cdk.out"))
    with pytest.MonkeyPatch.context() as environment:
        files = []
        for number, (place, stage, content) in enumerate(contents):
            for variable in re.findall(r"\$\{env:(\w+)\}", json.dumps(content)):
                environment.setenv(variable, "acme-2026")
            path = folder / place / f"{number}.yaml"
            path.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
            stages = content["deployment"].get("stages") or {}
            settings = Settings(load(path, stage=stage if stage in stages else None), stage, bundle)
            add_stacks(app, settings)
            files.append(settings)
        assembly = Path(app.synth().directory)
    return [
        Deployed(
            each, {name: json.loads((assembly / f"{name}.template.json").read_text()) for name in each.stack_names}
        )
        for each in files
    ]


def list_arns(kind: str, logical: str, stack: str, deployed: Deployed, properties: Mapping[str, Any]) -> list[str]:
    """What CloudFormation calls the resource, shortened as the service asks for."""
    region = deployed.settings.spec.access.region or REGION
    name, path = f"{stack}-{logical}-1A2B3C4D5E6F", deployed.settings.deployment.role_path

    def regional(service: str, resource: str) -> str:
        return f"arn:aws:{service}:{region}:{ACCOUNT}:{resource}"

    def shorten(length: int) -> str:
        return name if len(name) <= length else f"{stack[:24]}-{logical[: length - 38]}-1A2B3C4D5E6F"

    database = properties.get("DatabaseInput", {}).get("Name", "supaflow_eu_shop")
    in_glue = [regional("glue", each) for each in (f"database/{database}", f"table/{database}/a", "catalog")]
    table_bucket = [str(deployed.settings.spec.table_bucket)]
    made: dict[str, list[str]] = {
        **dict.fromkeys(("S3Tables::Namespace", "S3Tables::TableBucket"), table_bucket),
        "S3::Bucket": [f"arn:aws:s3:::{properties.get('BucketName') or shorten(63).lower()}"],
        "IAM::Role": [f"arn:aws:iam::{ACCOUNT}:role{path}{shorten(64)}",
                      f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/ops.emr-serverless.amazonaws.com/X"],
        "IAM::User": [f"arn:aws:iam::{ACCOUNT}:user{path}{shorten(64)}"],
        "IAM::ManagedPolicy": [f"arn:aws:iam::{ACCOUNT}:policy{path}{shorten(128)}"],
        "SecretsManager::Secret": [regional("secretsmanager", f"secret:{logical}-1A2B3C-AbCdEf")],
        "Glue::Database": in_glue,
        # Also of databases that are there already.
        **dict.fromkeys(("LakeFormation::PrincipalPermissions", "LakeFormation::Tag", "LakeFormation::TagAssociation"),
                        in_glue),
        "EMRServerless::Application": [
            regional("emr-serverless", "/applications/00a"), "arn:aws:iam::123456789012:role/aws-service-role/"
            "ops.emr-serverless.amazonaws.com/AWSServiceRoleForAmazonEMRServerless",
            *(regional("ec2", each) for each in ("network-interface/eni-1", "subnet/subnet-0a1b2c3d"))],
        "Logs::LogGroup": [regional("logs", f"log-group:{name}"), regional("logs", f"log-group:{name}:log-stream:a")],
        "StepFunctions::StateMachine": [regional("states", f"stateMachine:{logical}-1A2B3C4D5E6F")],
        "Scheduler::ScheduleGroup": [regional("scheduler", f"schedule-group/{shorten(64)}"),
                                     regional("scheduler", f"schedule/{shorten(64)}/a")],
        "Scheduler::Schedule": [regional("scheduler", f"schedule/{shorten(64)}/{shorten(64)}")],
        "SQS::Queue": [regional("sqs", shorten(80))],
        "SNS::Topic": [regional("sns", shorten(256))],
        "CloudWatch::Alarm": [regional("cloudwatch", f"alarm:{shorten(255)}")],
        "CloudWatch::Dashboard": [f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/{logical}-1A2B3C4D5E6F"],
        "Lambda::Function": [regional("lambda", f"function:{shorten(64)}")],
        "Budgets::Budget": [f"arn:aws:budgets::{ACCOUNT}:budget/{properties.get('Budget', {}).get('BudgetName')}"],
        "Events::Rule": [regional("events", f"rule/{shorten(64)}")],
        "KMS::Key": [regional("kms", f"key/{logical}")],
    }  # fmt: skip
    # The deployer may do nothing for a type that has no row: it is made in templates, and nobody has looked at it.
    return [] if kind in OF or kind == "CDK::Metadata" or kind.startswith("Custom::") else made[kind]


OF = {
    "S3::BucketPolicy": "S3::Bucket", "IAM::Policy": "IAM::Role", "IAM::AccessKey": "IAM::User",
    "SQS::QueuePolicy": "SQS::Queue", "SNS::TopicPolicy": "SNS::Topic", "SNS::Subscription": "SNS::Topic",
}  # fmt: skip
"""Types whose calls are on another type's resources."""
UNUSED = {
    "iam:*Group*": "No group is made.",
    "iam:*LoginProfile": "The user has no password.",
    "iam:Delete*PermissionsBoundary": "Every role and user keeps its boundary.",
    "iam:GetRole": "The roles are the stacks' own.",
    "glue:*Connection": "Federated databases alone have connections.",
    "kms:*": "No resource asks for a key of the caller's; the calls of keys themselves are in a test of their own.",
    "secretsmanager:*Regions*": "The secret is in one region.",
    "secretsmanager:GetRandomPassword": "Its value is given.",
    "s3:*Object*": "Objects are not CloudFormation's.",
    "s3:REST.PUT.OBJECT": "The same.",
    "s3:ListBucket": "The same.",
    "s3:*BucketMetadata*": "The buckets have no metadata tables.",
    "S3::Bucket s3tables:*": "The same.",
    "s3:DeleteBucket?*": "No such configuration is made, so none is deleted.",
    "s3:PutBucketReplication": "The call asks for s3:PutReplicationConfiguration.",
    "billing:GetBillingViewData": "The budget is of the account's own costs, not of a billing view.",
    "logs:*ResourcePolicy": "The log groups have no policies of their own.",
    "logs:*IndexPolicy": "They have no field indexes.",
    "logs:*DataProtectionPolicy": "They mask nothing.",
    "lambda:*": "The function that empties buckets is in no VPC, and has no layers and no aliases.",
    "emr-serverless:UpdateApplication": "An application is never updated.",
    **dict.fromkeys(
        ("ec2:Describe*", "ecr:*", "elasticfilesystem:*", "firehose:*", "s3files:*", "s3tables:*Replication*", "sso:*"),
        "Of options that no resource here has.",
    ),
}
"""What handlers list for options that the stacks do not use, with the reason. A lacking call beyond these fails."""
KEPT_APART = {"s3:DeleteBucketPolicy", "s3:DeleteBucket"}
NO_SCHEMA = {"IAM::AccessKey": {"iam:CreateAccessKey", "iam:DeleteAccessKey", "iam:ListAccessKeys"}}
"""A type whose provider lists nothing."""
NETWORK = "ec2:CreateNetworkInterface"
OF_USERS = "iam:*User*"


def read_handlers(kind: str) -> set[str]:
    """What a type's handlers call, but for listing all of the account's."""
    schemas = Path(str(cfnlint.__file__)).parent / "data" / "schemas"
    name = json.loads((schemas / "providers" / f"{REGION}.json").read_text("utf-8"))[f"AWS::{kind}"]
    handlers = json.loads((schemas / "resources" / f"{name}.json").read_text("utf-8")).get("handlers") or {}
    called = {action for verb, each in handlers.items() if verb != "list" for action in each["permissions"]}
    return called or NO_SCHEMA[kind]


def list_requests(deployed: Deployed) -> dict[tuple[str, str], list[Request]]:
    """By type and action, the ways to ask for it: on each ARN, for what is new and for what is there."""
    found: dict[tuple[str, str], list[Request]] = {}
    services = ("states", "scheduler", "events", "emr-serverless", "lambda")
    for stack, template in deployed.templates.items():
        arns: dict[str, list[str]] = {}
        for logical, each in template["Resources"].items():
            kind = each["Type"].removeprefix("AWS::")
            arns.setdefault(kind, []).extend(list_arns(kind, logical, stack, deployed, each.get("Properties", {})))
        for kind in {each["Type"].removeprefix("AWS::") for each in template["Resources"].values()} - {"CDK::Metadata"}:
            if kind.startswith("Custom::") or kind == "KMS::Key":
                continue
            places = [
                *arns.get(OF.get(kind, kind), []),
                *arns.get(kind, []),
                *arns.get("IAM::Role", []),
                *arns.get("IAM::User", []),
                "*",
            ]
            given: dict[str, Any] = {
                "iam:PermissionsBoundary": BOUNDARY,
                "iam:PolicyARN": next(iter(arns.get("IAM::ManagedPolicy", [])), ""),
                "iam:AWSServiceName": "ops.emr-serverless.amazonaws.com",
                "aws:RequestedRegion": deployed.settings.spec.access.region or REGION,
                "aws:CalledViaLast": "ops.emr-serverless.amazonaws.com",
                "iam:PassedToService": services[0] + ".amazonaws.com",
            }  # fmt: skip
            requested: dict[str, Any] = {"aws:RequestTag/LakewriterStack": stack, "aws:TagKeys": ["LakewriterStack"]}
            existing: dict[str, Any] = {"aws:ResourceTag/LakewriterStack": stack}
            handled = read_handlers(kind)
            if "IAM::User" not in arns:
                handled = {action for action in handled if not fnmatchcase(action, OF_USERS)}
            for action in handled:
                found.setdefault((kind, action), []).extend(
                    Request(action, place, given | tags)
                    for place in dict.fromkeys(places)
                    for tags in (requested, existing)
                )
    return found


def test_cloudformation_may_make_every_resource(deployed: list[Deployed]) -> None:
    """At least one resource of each type, of each file."""
    kinds: set[str] = set()
    lacking: dict[str, set[tuple[str, str]]] = {}
    for each in deployed:
        execution = {name: document for name, document in each.documents.items() if name.startswith("Execution")}
        asked = list_requests(each)
        kinds |= {kind for kind, _ in asked}
        flat = [(called, request) for called, requests in asked.items() for request in requests]
        decisions = simulate_known([request for _, request in flat], Policies(execution))
        allowed = {
            called for (called, _), decision in zip(flat, decisions, strict=True) if decision and decision.allowed
        }
        lacking[each.settings.spec.pipeline] = {
            (kind, action)
            for kind, action in asked.keys() - allowed
            if action in KEPT_APART
            or (
                not any(fnmatchcase(text, pattern) for pattern in UNUSED for text in (action, f"{kind} {action}"))
                and not (action == NETWORK and each.settings.deployment.network is None)
            )
        }
    assert {name: sorted(found) for name, found in lacking.items() if found} == {}
    assert len(kinds) >= 23


def list_key_requests(deployed: Deployed) -> Iterator[tuple[str, Request, Policies]]:
    """Every call of a key's handlers, on each key of the stacks, under the policies of CloudFormation's role and the
    key's own; the making has no key yet."""
    execution = {name: document for name, document in deployed.documents.items() if name.startswith("Execution")}
    region = deployed.settings.spec.access.region or REGION
    role = f"cdk-{deployed.settings.deployment.qualifier}-cfn-exec-role-{ACCOUNT}-{region}"
    answers = {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT, "AWS::Region": region}
    context: dict[str, str | list[str]] = {"aws:RequestedRegion": region, "kms:CallerAccount": ACCOUNT}
    for template in deployed.templates.values():
        for logical, each in template["Resources"].items():
            if each["Type"] != "AWS::KMS::Key":
                continue
            policy = resolve_whole(each["Properties"]["KeyPolicy"], answers)
            tags = [tag["Key"] for tag in each["Properties"].get("Tags", [])]
            arn = f"arn:aws:kms:{region}:{ACCOUNT}:key/{logical}"
            for action in sorted(read_handlers("KMS::Key")):
                making = action == "kms:CreateKey"
                tagging: dict[str, str | list[str]] = {"aws:TagKeys": tags} if action == "kms:TagResource" else {}
                caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/AWSCloudFormation"
                request = Request(action, "*" if making else arn, context | tagging, caller)
                yield logical, request, Policies(execution, None if making else policy)


def test_cloudformation_administers_every_key_that_it_makes(deployed: list[Deployed]) -> None:
    for file in deployed:
        rows = list(list_key_requests(file))
        decisions = simulate_known([request for _, request, _ in rows], [policies for *_, policies in rows])
        refused = [
            (logical, request.action)
            for (logical, request, _), decision in zip(rows, decisions, strict=True)
            if not decision or not decision.allowed
        ]
        assert refused == []
    made = {name.rstrip("0123456789ABCDEF") for file in deployed for name, *_ in list_key_requests(file)}
    assert made == {"Key", "AlarmsEmailKey"}


def test_every_role_and_user_has_the_boundary(deployed: list[Deployed]) -> None:
    identities = [
        (name, logical, each["Properties"].get("PermissionsBoundary"))
        for file in deployed
        for name, template in file.templates.items()
        for logical, each in template["Resources"].items()
        if each["Type"] in {"AWS::IAM::Role", "AWS::IAM::User"}
    ]
    assert len(identities) >= 15
    assert [row for row in identities if row[2] != BOUNDARY] == []


def list_allowed(deployed: Deployed) -> Iterator[tuple[str, str, str]]:
    """Every action with every resource that the stacks' policies allow, references in them resolved."""
    region = deployed.settings.spec.access.region or REGION
    machine = f"arn:aws:states:{region}:{ACCOUNT}:stateMachine:LoadsStateMachine1-A"
    answers = {
        "AWS::Partition": "aws",
        "AWS::AccountId": ACCOUNT,
        "AWS::Region": region,
        "Arn": machine,
        "Name": "LoadsStateMachine1-A",
        "JobLogs": f"{deployed.settings.stack_names[1]}-JobLogs-1A2B3C4D5E6F",
    }
    for template in deployed.templates.values():
        for logical, each in template["Resources"].items():
            if each["Type"] not in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"}:
                continue
            for statement in each["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Deny":
                    continue
                resolved = resolve_whole(statement, answers)
                # The job's role is another stack's output.
                for action in _listed(resolved["Action"]):
                    for resource in filter(lambda each: each != JOB_ROLE, _listed(resolved["Resource"])):
                        yield f"{logical}/{statement.get('Sid')}", action, str(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_no_permission_of_a_role_is_beyond_the_boundary(deployed: list[Deployed]) -> None:
    """By text: each pattern of a role's is within one of the boundary's, where the template has the resource's ARN."""
    beyond: set[tuple[str, str, str]] = set()
    for each in deployed:
        bounds = each.documents["Boundary"]["Statement"]
        for name, action, resource in list_allowed(each):
            within = [
                bound
                for bound in bounds
                if any(fnmatchcase(action, pattern) for pattern in bound["Action"])
                and (
                    any(fnmatchcase(resource, pattern.replace("[", "[[]")) for pattern in bound["Resource"])
                    or not resource.startswith("arn:aws:" + action.split(":")[0])
                )
            ]
            if not within:
                beyond.add((name, action, resource))
    assert sorted(beyond) == []
