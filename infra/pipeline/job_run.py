"""Make StartJobRun's parameters, and allow the job's role its artifacts, logs and key.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.application import Application
from infra.pipeline.artifact import Artifacts
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.deployable.workers import compute_tasks_memory, find_overhead
from lakewriter.policy.arns import name_services
from lakewriter.policy.sources import allow_key_of_objects
from lakewriter.policy.statements import Statement
from lakewriter.spec.access import TRUSTED, find_origin, is_trusted
from lakewriter.spec.deployment import CANARY, STACK_TAG, Spark
from lakewriter.spec.specification import Limits, Spec

MOST_RESTARTS: Final = 10
"""The most restarts in an hour that EMR Serverless allows a streaming job."""

_LIFETIME: Final = ("Mode", "ExecutionTimeoutMinutes", "RetryPolicy")
"""The fields that tell a stream from a load that ends."""
_PACKAGES: Final = "./dependencies"

# Java converts timestamps from databases and ORC to its own time zone, which Spark's session time zone does not change.
_UTC: Final = "-Duser.timezone=UTC"
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def make_job_run(
    settings: Settings, application: Application, role: iam.IRole, artifacts: Artifacts, key: kms.IKey | None
) -> dict[str, Any]:
    """Make the parameters except the client token and the entry point's arguments, which differ by attempt."""
    spark = settings.deployment.spark
    archives = f"{artifacts.dependencies_uri}#dependencies,{artifacts.lake_uri}#lake"
    # By the stack's tag the state machine's role may follow and cancel the run in a later release too. The others
    # are for cost: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/tagging.html
    tags = {
        **settings.deployment.tags,
        "LakewriterPipeline": settings.spec.pipeline,
        "LakewriterStage": settings.stage,
        STACK_TAG: Stack.of(application).stack_name,
    }
    return {
        "Name": settings.name,
        "ApplicationId": application.application_id,
        "ExecutionRoleArn": role.role_arn,
        **({} if spark.plain_start else {"Tags": tags}),
        **_make_lifetime(spark),
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": artifacts.entry_uri,
                "SparkSubmitParameters": f"--py-files {artifacts.job_uri} --archives {archives}",
            }
        },
        "ConfigurationOverrides": {
            **_encrypt_disks(spark, key),
            "ApplicationConfiguration": [
                {"Classification": "spark-defaults", "Properties": _make_conf(settings, artifacts)}
            ],
        },
    }


def _encrypt_disks(spark: Spark, key: kms.IKey | None) -> dict[str, Any]:
    """Return the override that encrypts the workers' disks with the key; CloudFormation's application has no such
    property. https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/disk-encryption-cmk.html"""
    if key is None or spark.plain_start:
        return {}
    return {"DiskEncryptionConfiguration": {"EncryptionKeyArn": key.key_arn}}


def _trust_servers(spec: Spec) -> dict[str, str]:
    """Return the property that lets the job send secrets to servers that the file names: who deploys it trusts them.
    The session hands it on to the executors."""
    servers = [find_origin(url) for url in spec.servers if not is_trusted(url, "")]
    return {f"spark.emr-serverless.driverEnv.{TRUSTED}": ",".join(servers)} if servers else {}


def make_canary_run(job_run: Mapping[str, Any], settings: Settings, python: str) -> dict[str, Any] | None:
    """Make the parameters of a stream's canary from those of the stream: a run that ends, with one small executor.

    Return None for loads that end, whose canary is one of them.
    """
    spark = settings.deployment.spark
    if spark.mode != "STREAMING":
        return None
    small = spark.model_copy(update={"mode": "BATCH", "driver": CANARY, "executor": CANARY, "max_executors": 1})
    properties = make_spark_conf(small, Limits(), python) | _trust_servers(settings.spec)
    conf = {"Classification": "spark-defaults", "Properties": properties}
    return {
        **{key: value for key, value in job_run.items() if key not in _LIFETIME},
        **_make_lifetime(small),
        "ConfigurationOverrides": {**job_run["ConfigurationOverrides"], "ApplicationConfiguration": [conf]},
    }


def _make_conf(settings: Settings, artifacts: Artifacts) -> dict[str, str]:
    spec, python = settings.spec, artifacts.manifest.python
    conf = make_spark_conf(settings.deployment.spark, spec.limits, python) | _trust_servers(spec)
    if settings.deployment.spark.mode == "STREAMING":
        # For its metrics; the file that goes with the job has the stage merged in.
        conf["spark.emr-serverless.driverEnv.LAKEWRITER_STAGE"] = settings.stage
    if artifacts.jar_uris:
        conf["spark.jars"] = ",".join([*artifacts.jar_uris, *filter(None, [conf.get("spark.jars")])])
    return conf


def make_spark_conf(spark: Spark, limits: Limits, python: str) -> dict[str, str]:
    """Make Spark's properties; ``deployment.spark.conf`` overrides all of them except the time zone.

    ``python`` is the version, such as ``3.11``, that the bundle was built for. EMR has several from 8.1 on, and which
    one is its default may differ by release; each is on the workers' path by its name:
    https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark810-release.html
    """
    interpreter = f"python{python}"
    tasks = compute_tasks_memory(spark.executor, limits)
    return {
        "spark.driver.cores": str(spark.driver.cores),
        "spark.driver.memory": spark.driver.memory,
        "spark.driver.memoryOverhead": f"{find_overhead(spark.driver, 'driver')}m",
        "spark.emr-serverless.driver.disk": spark.driver.disk,
        "spark.executor.cores": str(spark.executor.cores),
        "spark.executor.memory": spark.executor.memory,
        # Python's processes are outside the heap: https://spark.apache.org/docs/latest/configuration.html
        "spark.executor.memoryOverhead": f"{find_overhead(spark.executor, 'executor', tasks)}m",
        "spark.emr-serverless.executor.disk": spark.executor.disk,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": str(spark.max_executors),
        "spark.emr-serverless.driverEnv.PYTHONPATH": _PACKAGES,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": interpreter,
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": interpreter,
        "spark.executorEnv.PYTHONPATH": _PACKAGES,
        "spark.executorEnv.PYSPARK_PYTHON": interpreter,
        **spark.conf,
        # Appended, since Java takes the last value of a property that is given twice.
        **{name: f"{spark.conf.get(name, '')} {_UTC}".strip() for name in _JAVA_OPTIONS},
    }


def _make_lifetime(spark: Spark) -> Mapping[str, Any]:
    if spark.run_lasts is not None:
        return {"ExecutionTimeoutMinutes": spark.run_lasts // timedelta(minutes=1)}
    if spark.mode == "STREAMING":
        # EMR Serverless itself restarts a failed streaming job; 0 means no time-out.
        restarts = {"MaxFailedAttemptsPerHour": min(spark.attempts, MOST_RESTARTS)}
        return {"Mode": "STREAMING", "ExecutionTimeoutMinutes": 0, "RetryPolicy": restarts}
    # BATCH is the default of a run's mode. Fields of which no page or public definition shows that Step Functions sends
    # them are left out where they can be: docs/aws-claims.md.
    return {"ExecutionTimeoutMinutes": spark.timeout_minutes}


def allow_log_keys(sid: str, keys: Sequence[str], region: str, *further: str) -> iam.PolicyStatement:
    """Allow the keys of the job's logs and of its workers' disks, but not for what other services keep under them.

    The application of an earlier release keeps the key that it was made with.

    AWS lists both actions for the job's role and for the run's submitter, without saying through which service the
    key is used; the submitter needs ``further`` ones. A negated condition holds for a request without the condition
    key as well.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-log-encryption.html,
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/disk-encryption-cmk.html
    """
    others = name_services(["secretsmanager", "ssm", "sqs", "sns", "logs"], region)
    return iam.PolicyStatement(
        sid=sid,
        actions=["kms:Decrypt", *further, "kms:GenerateDataKey"],
        resources=list(keys),
        conditions={"StringNotEquals": {"kms:ViaService": others}},
    )


class JobPermissions(Construct):
    """The job role's permissions on this stack's artifacts, logs and key, not on data.

    ``policy`` is not attached to an existing role: its owner has to attach it.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        role: iam.IRole,
        artifacts: Artifacts,
        log_group: logs.ILogGroup,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id_)
        is_existing = settings.deployment.existing.job_role_arn is not None
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"{Stack.of(self).stack_name}: artifacts and logs of the job",
            path=settings.deployment.role_path,
            statements=[
                *_list_statements(artifacts, log_group, list_log_keys(settings, key)),
                *map(iam.PolicyStatement.from_json, _allow_artifact_key(settings)),
            ],
            roles=[] if is_existing else [role],
        )
        for readable in artifacts.readable_arns:
            acknowledge(
                policy,
                f"IAM5[Resource::{render_tokens(Stack.of(self), readable)}]",
                "A load that is running reads the artifacts of the release that it began with.",
            )
        acknowledge(
            policy,
            "IAM5[Resource::*]",
            "EMR Serverless looks for its log group by DescribeLogGroups, which takes no less.",
        )
        self.policy = policy


def _allow_artifact_key(settings: Settings) -> list[Statement]:
    return allow_key_of_objects("DecryptArtifacts", ["kms:Decrypt"], settings.deployment.artifact_kms_key_arn)


def list_log_keys(settings: Settings, key: kms.IKey | None) -> list[str]:
    """List the ARNs of the keys that the logs of this release's job runs, and of earlier ones, are encrypted with."""
    return [*([key.key_arn] if key else []), *settings.deployment.earlier_kms_key_arns]


def _list_statements(artifacts: Artifacts, log_group: logs.ILogGroup, keys: Sequence[str]) -> list[iam.PolicyStatement]:
    # The group's own ARN ends with its streams; CreateLogGroup may be asked for by the name alone.
    group = Stack.of(log_group).format_arn(
        service="logs",
        resource="log-group",
        resource_name=log_group.log_group_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    statements = [
        iam.PolicyStatement(sid="ReadArtifacts", actions=["s3:GetObject"], resources=list(artifacts.readable_arns)),
        iam.PolicyStatement(
            sid="WriteLogs",
            actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        ),
        # EMR Serverless lists it as required, though the group is there:
        # https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
        iam.PolicyStatement(
            sid="MakeLogGroup", actions=["logs:CreateLogGroup"], resources=[log_group.log_group_arn, group]
        ),
        iam.PolicyStatement(sid="FindLogGroup", actions=["logs:DescribeLogGroups"], resources=["*"]),
    ]
    if keys:
        statements.append(allow_log_keys("EncryptEventLog", keys, Stack.of(log_group).region))
    return statements
