"""Make the permissions boundary of a stage's roles and users: the most that any of them may do, whatever is attached.

https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
"""

from collections.abc import Iterator
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns, name_principal
from lakewriter.policy.catalog_statements import bound_catalog
from lakewriter.policy.checkpoint import locate_checkpoints
from lakewriter.policy.deployed_names import DeployedNames
from lakewriter.policy.division import LIMIT, divide
from lakewriter.policy.operator_statements import allow_stage
from lakewriter.policy.secrets import allow_secrets
from lakewriter.policy.sources import list_source_buckets
from lakewriter.policy.statements import Conditions, Statement, allow
from lakewriter.policy.table_bucket import bound_table_bucket
from lakewriter.spec.deployment import STACK_TAG, Deployment
from lakewriter.spec.specification import Spec

_OBJECTS: Final = (
    "s3:*Object*", "s3:ListBucket*", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload",
    "s3:GetBucketLocation", "s3:GetBucketTagging", "s3:GetLifecycleConfiguration",
)  # fmt: skip
_OWN_COPIES: Final = "s3:ObjectOwnerOverrideToBucketOwner"
_JOB_RUNS: Final = ("emr-serverless:*JobRun", "emr-serverless:GetApplication", "emr-serverless:StopApplication",
                    "emr-serverless:DeleteApplication")  # fmt: skip
_LOADS: Final = (
    "states:StartExecution", "states:StopExecution", "states:ListExecutions", "states:DescribeStateMachine*",
    "states:DescribeExecution", "states:GetExecutionHistory",
)  # fmt: skip
_LOGS: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")
_UNNAMED: Final = (
    "cloudwatch:PutMetricData", "emr-serverless:ListApplications", "lakeformation:GetDataAccess",
    "logs:*LogDelivery", "logs:ListLogDeliveries", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
    "logs:PutResourcePolicy", "xray:Put*", "xray:GetSampling*",
)  # fmt: skip
"""No resource bounds these actions."""
_RULE: Final = "rule/StepFunctionsGetEventsForEMRServerlessJobRule"


def make_boundary(spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames) -> list[Statement]:
    """Make the boundary as one policy; without room for each source's bucket, for reading in every bucket, and for the
    databases of two catalogs in one pattern.

    Raises ``SPEC_INVALID`` if it still is too long. A key that the stack makes is in it once ``arns`` has its ARN.
    """
    for exact in (True, False):
        statements = list(_list_statements(spec, deployment, arns, names, exact=exact))
        if len(divide({"Boundary": statements}, arns)) == 1:
            return statements
    raise SpecInvalidError(
        f"the permissions boundary of the stacks' roles is longer than IAM's {LIMIT} characters.",
        remedy="Divide the tables over several files, or give the parties fewer 'tables'.",
    )


def _list_statements(
    spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames, *, exact: bool
) -> Iterator[Statement]:
    yield from _bound_storage(spec, deployment, arns, names, exact=exact)
    yield from bound_catalog(spec, deployment, arns, exact=exact)
    yield from bound_table_bucket(spec)
    yield from _bound_keys(spec, deployment, arns)
    yield from allow_secrets(spec, deployment, arns)
    if spec.access.role_arn:
        yield allow("TakeDestinationRole", ["sts:AssumeRole"], [spec.access.role_arn])
    yield from _bound_loads(spec, deployment, arns, names)
    operating = list(allow_stage(arns, names)) if deployment.operators else []
    free = [statement for statement in operating if statement["Resource"] == ["*"] and "Condition" not in statement]
    # In one statement: a boundary has to be one policy.
    yield allow("Unnamed", [*_UNNAMED, *(action for statement in free for action in statement["Action"])], ["*"])
    yield from (statement for statement in operating if statement not in free)


def _bound_storage(
    spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames, *, exact: bool
) -> Iterator[Statement]:
    buckets = [spec.access.bucket]
    checkpoints = locate_checkpoints(spec)
    if checkpoints:
        buckets.append(checkpoints[0])
    if deployment.destroy_data:
        # The function that empties buckets denies writes first, by their policies.
        buckets.append(f"{names.begin(names.destination, 20)}*")
    emptying = ["s3:PutBucketPolicy"] if deployment.destroy_data else []
    bucket_arns = [arn for name in dict.fromkeys(buckets) for arn in (arns.bucket(name), arns.objects(name))]
    yield allow("Lake", [*_OBJECTS, *emptying], bucket_arns)
    if deployment.replication:
        copies = arns.objects(deployment.replication.bucket)
        read = [arns.bucket(spec.access.bucket), copies]
        yield allow("Replication", ["s3:GetReplicationConfiguration", "s3:Replicate*", _OWN_COPIES], read)
    jars = [jar.split("/")[2] for jar in deployment.jar_objects]
    sources = [*list_source_buckets(spec, deployment), *jars] if exact else ["*"]
    assets = deployment.name_assets(arns.account, arns.region)
    read = [arn for name in (*sources, assets) for arn in (arns.bucket(name), arns.objects(name))]
    yield allow("Sources", ["s3:GetObject", "s3:ListBucket"], list(dict.fromkeys(read)))


def _bound_keys(spec: Spec, deployment: Deployment, arns: Arns) -> Iterator[Statement]:
    named = [
        arns.key,
        deployment.existing.kms_key_arn,
        deployment.artifact_kms_key_arn,
        deployment.catalog_kms_key_arn,
        *deployment.earlier_kms_key_arns,
        *(source_bucket.kms_key_arn for source_bucket in deployment.source_buckets),
    ]
    keys = [key for key in named if key]
    if keys:
        # Glue encrypts metadata by kms:Encrypt; a statement of its own would be too long for some files.
        encrypt = ["kms:Encrypt"] if deployment.catalog_kms_key_arn else []
        yield allow(
            "Keys", ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*", *encrypt], list(dict.fromkeys(keys))
        )
    if deployment.replication and deployment.replication.kms_key_arn:
        yield allow("KeyOfCopies", ["kms:Encrypt"], [deployment.replication.kms_key_arn])


def _bound_loads(spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames) -> Iterator[Statement]:
    """Bound what the state machines, their schedule and their rules do: by the stack's tag, names and the roles."""
    applications = [arns.applications()]
    ours: Conditions = {"StringEquals": {f"aws:ResourceTag/{STACK_TAG}": names.pipeline}}
    requested: Conditions = {"StringEquals": {f"aws:RequestTag/{STACK_TAG}": names.pipeline}}
    roles = [arns.role(f"{deployment.role_path.lstrip('/')}{start}*") for start in names.identities]
    brought = deployment.existing.job_role_arn
    maintenance = spec.maintenance
    services = [name_principal("emr-serverless")]
    if maintenance and maintenance.optimizer_role:
        roles.append(maintenance.find_role_arn(arns.partition, arns.account))
        services.append(name_principal("glue"))
    passed: Conditions = {"StringEquals": {"iam:PassedToService": services}}
    logs = [*names.list_arns("LogGroups", arns)[:1], *names.list_arns("FunctionLogs", arns)]
    if maintenance and maintenance.makes_role:
        logs.append(arns.regional("logs", "log-group:/aws-glue/iceberg-*"))
    yield allow("JobRuns", _JOB_RUNS, applications, ours)
    if deployment.spark.plain_start:
        untagged: Conditions = {"Null": {f"aws:ResourceTag/{STACK_TAG}": "true"}}
        runs = [arns.regional("emr-serverless", "/applications/*/jobruns/*")]
        yield allow("UntaggedJobRuns", ["emr-serverless:GetJobRun", "emr-serverless:CancelJobRun"], runs, untagged)
    else:
        yield allow("TagJobRuns", ["emr-serverless:TagResource"], applications, requested)
    yield allow("PassRoles", ["iam:PassRole"], [*roles, *([brought] if brought else [])], passed)
    yield allow("JobRunEvents", ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
                [arns.regional("events", _RULE)])  # fmt: skip
    yield allow("Loads", _LOADS, names.list_arns("Machines", arns))
    yield allow("DeadLetters", ["sqs:SendMessage"], names.list_arns("Queues", arns))
    yield allow("Logs", _LOGS, logs)
